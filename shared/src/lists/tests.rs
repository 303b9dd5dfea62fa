use proptest::prelude::*;

use super::*;
use crate::domain::ListKind;

fn entry(text: &str) -> DomainPattern {
    DomainPattern::parse_settings(text, ListKind::Denied).unwrap()
}

fn lists(allowed: &[&str], denied: &[&str]) -> Lists {
    let entries = |texts: &[&str]| texts.iter().copied().map(entry).collect();
    Lists::new(entries(allowed), entries(denied))
}

fn check(lists: &Lists, target: &str, port: u16) -> String {
    match lists.check(&Host::from_bare(target).unwrap(), port) {
        ListAnswer::Allowed(entry) => format!("allowed by {entry}"),
        ListAnswer::Denied(entry) => format!("denied by {entry}"),
        ListAnswer::NotListed => "not listed".into(),
    }
}

#[test]
fn names_the_entry_that_decides() {
    let lists = lists(
        &["a.x.test", "*.x.test", "*.b.x.test:80", "127.0.0.1:3000", "[2001:db8::1]", "x.test:443"],
        &["evil.x.test", "*.deep.x.test:22", "*:25", "10.0.0.1"],
    );
    for (host, port, answer) in [
        ("a.x.test", 1, "allowed by a.x.test"),
        ("c.x.test", 1, "allowed by *.x.test"),
        // Both entries match; the first configured one is named.
        ("c.b.x.test", 80, "allowed by *.x.test"),
        ("x.test", 443, "allowed by x.test:443"),
        ("x.test", 80, "not listed"),
        ("xx.test", 443, "not listed"),
        ("evil.x.test", 443, "denied by evil.x.test"),
        ("a.evil.x.test", 443, "allowed by *.x.test"),
        ("a.deep.x.test", 22, "denied by *.deep.x.test:22"),
        ("deep.x.test", 22, "allowed by *.x.test"),
        ("a.deep.x.test", 23, "allowed by *.x.test"),
        ("a.x.test", 25, "denied by *:25"),
        ("nowhere.test", 25, "denied by *:25"),
        ("127.0.0.1", 3000, "allowed by 127.0.0.1:3000"),
        ("127.0.0.1", 25, "denied by *:25"),
        ("127.0.0.1", 3001, "not listed"),
        ("127.0.0.2", 3000, "not listed"),
        ("2001:db8::1", 7, "allowed by [2001:db8::1]"),
        ("10.0.0.1", 7, "denied by 10.0.0.1"),
    ] {
        assert_eq!(check(&lists, host, port), answer, "{host}:{port}");
    }
}

#[test]
fn empty_lists_allow_nothing() {
    assert_eq!(check(&Lists::default(), "example.com", 443), "not listed");
}

#[test]
fn a_star_denies_every_host() {
    let lists = lists(&["a.test", "127.0.0.1"], &["*"]);
    assert_eq!(check(&lists, "a.test", 1), "denied by *");
    assert_eq!(check(&lists, "127.0.0.1", 1), "denied by *");
}

/// Denying is wide, allowing is narrow.
#[test]
fn ipv4_in_ipv6_is_denied_but_not_allowed() {
    let forms = ["::ffff:10.0.0.1", "::10.0.0.1", "::ffff:0:10.0.0.1", "64:ff9b::10.0.0.1", "2002:a00:1::1"];
    for form in forms {
        let addr: IpAddr = form.parse().unwrap();
        let denying = lists(&[&format!("[{form}]")], &["10.0.0.1:80"]);
        assert_eq!(check(&denying, form, 80), "denied by 10.0.0.1:80");
        assert!(denying.denies_addr(addr, 80).is_some(), "{form}");
        assert!(denying.denies_addr(addr, 81).is_none(), "{form}");

        let allowing = lists(&["10.0.0.1"], &[]);
        assert_eq!(check(&allowing, form, 80), "not listed");
        assert!(allowing.exempts(addr, 80).is_none(), "{form}");
    }
}

#[test]
fn only_literals_exempt_and_only_their_port() {
    let lists = lists(&["127.0.0.1:3000", "*.x.test", "[::1]"], &[]);
    let exempts = |addr: &str, port| lists.exempts(addr.parse().unwrap(), port).map(|entry| entry.as_str());
    assert_eq!(exempts("127.0.0.1", 3000), Some("127.0.0.1:3000"));
    assert_eq!(exempts("127.0.0.1", 3001), None);
    assert_eq!(exempts("127.0.0.2", 3000), None);
    assert_eq!(exempts("::1", 1), Some("[::1]"));
}

proptest! {
    /// The index gives what a scan of the configured entries gives, entry for entry.
    #[test]
    fn agrees_with_a_scan(
        allowed in proptest::collection::vec(arb_entry(), 0..8),
        denied in proptest::collection::vec(arb_entry(), 0..4),
        host in prop_oneof!["[ab](\\.[ab]){0,3}", "10\\.0\\.0\\.[12]", "::ffff:10\\.0\\.0\\.[12]", "::[12]"],
        port in 1u16..4,
    ) {
        let lists = Lists::new(allowed.clone(), denied.clone());
        let host = Host::from_bare(host).unwrap();
        let embedded = match &host {
            Host::Addr(IpAddr::V6(v6)) => embedded_ipv4(*v6).map(|v4| Host::Addr(v4.into())),
            _ => None,
        };
        let denies = |entry: &&DomainPattern| {
            entry.matches(&host, port) || embedded.as_ref().is_some_and(|host| entry.matches(host, port))
        };
        let scan = match (denied.iter().find(denies), allowed.iter().find(|entry| entry.matches(&host, port))) {
            (Some(entry), _) => ListAnswer::Denied(entry),
            (None, Some(entry)) => ListAnswer::Allowed(entry),
            (None, None) => ListAnswer::NotListed,
        };
        prop_assert_eq!(lists.check(&host, port), scan);
    }
}

fn arb_entry() -> impl Strategy<Value = DomainPattern> {
    prop_oneof![
        "(\\*\\.)?[ab](\\.[ab]){1,2}(:[123])?",
        "10\\.0\\.0\\.[12](:[123])?",
        "\\[::(ffff:10\\.0\\.0\\.)?[12]\\](:[123])?",
        "\\*:[123]",
    ]
    .prop_map(|text| entry(&text))
}
