use proptest::prelude::*;

use super::*;

fn name(text: &str) -> HostPattern {
    HostPattern::Name(DomainName::from_canonical(text))
}

fn below(text: &str) -> HostPattern {
    HostPattern::Subdomains(DomainName::from_canonical(text))
}

fn addr(text: &str) -> HostPattern {
    HostPattern::Addr(text.parse().unwrap())
}

#[test]
fn hello_accepts() {
    let long = format!("{0}.{0}.{0}.{1}.com", "a".repeat(63), "a".repeat(57));
    assert_eq!(long.len(), MAX_NAME);
    let cases = [
        ("a", name("a"), None),
        ("localhost", name("localhost"), None),
        ("intranet:1", name("intranet"), Some(1)),
        ("a.example", name("a.example"), None),
        ("1a.example", name("1a.example"), None),
        ("a.b1", name("a.b1"), None),
        ("xn--bcher-kva.example", name("xn--bcher-kva.example"), None),
        ("a.example:65535", name("a.example"), Some(65535)),
        ("*.a.b", below("a.b"), None),
        ("*.a.b:443", below("a.b"), Some(443)),
        ("127.0.0.1", addr("127.0.0.1"), None),
        ("127.0.0.1:80", addr("127.0.0.1"), Some(80)),
        ("0.0.0.0", addr("0.0.0.0"), None),
        ("::1", addr("::1"), None),
        ("[::1]", addr("::1"), None),
        ("[::1]:80", addr("::1"), Some(80)),
        ("[0:0:0:0:0:0:0:1]", addr("::1"), None),
        // Not a port: the whole of it is an address.
        ("::1:80", addr("::1:80"), None),
        ("2001:DB8::1", addr("2001:db8::1"), None),
        ("[2001:DB8::1]:1", addr("2001:db8::1"), Some(1)),
        ("::ffff:1.2.3.4", addr("::ffff:1.2.3.4"), None),
        (&long, name(&long), None),
    ];
    for (entry, host, port) in cases {
        let pattern = DomainPattern::parse_hello(entry).unwrap_or_else(|e| panic!("{entry}: {e}"));
        assert_eq!((pattern.host(), pattern.port().map(u16::from)), (&host, port), "{entry}");
        assert_eq!(pattern.as_str(), entry);
    }
}

#[test]
fn hello_refuses() {
    let long_label = format!("{}.example", "a".repeat(64));
    let long = format!("{0}.{0}.{0}.{1}.com", "a".repeat(63), "a".repeat(58));
    use PatternError::*;
    let cases = [
        ("", Empty),
        ("A.example", UpperCase),
        ("*.A.example", UpperCase),
        ("https://a.example", Url),
        ("a.example/x", Url),
        ("10.0.0.0/8", Url),
        ("*", BareStar),
        ("*:22", BareStar),
        ("*.com", BroadWildcard),
        ("*.localhost", BroadWildcard),
        ("*.", Empty),
        ("a.*.example", InnerStar),
        ("*.*.b.c", InnerStar),
        ("**.b.c", InnerStar),
        ("a*.b.c", InnerStar),
        ("a. example", Blank),
        ("a.b\t", Blank),
        ("a.b\u{7f}", Blank),
        ("a.b\0", Blank),
        ("u@a.example", UserInfo),
        ("a.example:0", Port),
        ("a.example:65536", Port),
        ("a.example:99999999999999999999", Port),
        ("a.example:080", Port),
        ("a.example:", Port),
        ("a.example:+1", Port),
        ("*.example:0", Port),
        ("1.2.3.4:0", Port),
        ("[::1]:", Port),
        ("[::1]:0", Port),
        ("b\u{fc}cher.example", NotAscii),
        ("a.example.", TrailingDot),
        ("a..b", EmptyLabel),
        (".a.b", EmptyLabel),
        ("a_b.example", BadLabel),
        ("-a.example", BadLabel),
        ("a-.example", BadLabel),
        ("a.-b.example", BadLabel),
        ("a.b-", BadLabel),
        ("a!b.example", BadLabel),
        ("[1.2.3.4]", BadIpv6),
        ("[::1", BadIpv6),
        ("[::1]x", BadIpv6),
        ("::1]", BadIpv6),
        ("[]", BadIpv6),
        ("[fe80::1%eth0]", BadIpv6),
        ("a:b:c", Port),
        ("a:b:1", BadIpv6),
        ("127.0.0.1.", TrailingDot),
        ("*.127.0.0.1", Numeric),
        ("*.1.2", Numeric),
        ("1.2.3", Numeric),
        ("1.2.3.4.5", Numeric),
        ("256.0.0.1", Numeric),
        ("0177.0.0.1", Numeric),
        ("0x7f000001", Numeric),
        ("2130706433", Numeric),
        ("a.0x1", Numeric),
        ("a.1b", Numeric),
        (&long_label, TooLong),
        (&long, TooLong),
    ];
    for (entry, error) in cases {
        assert_eq!(DomainPattern::parse_hello(entry), Err(error), "{entry:?}");
    }
}

#[test]
fn settings_accept() {
    let cases = [
        ("localhost", name("localhost"), None),
        ("LOCALHOST:80", name("localhost"), Some(80)),
        ("A.Example", name("a.example"), None),
        ("*.A.b:8443", below("a.b"), Some(8443)),
        // Names that exist, though they are no host names by RFC 952.
        ("a_b.example", name("a_b.example"), None),
        ("_x.a.example", name("_x.a.example"), None),
        ("-a.example", name("-a.example"), None),
        ("a.1b", name("a.1b"), None),
        ("10.1.2.3", addr("10.1.2.3"), None),
        ("127.0.0.1:3000", addr("127.0.0.1"), Some(3000)),
        ("[::1]", addr("::1"), None),
        ("[2001:DB8::1]:443", addr("2001:db8::1"), Some(443)),
    ];
    for (entry, host, port) in cases {
        for list in [ListKind::Allowed, ListKind::Denied] {
            let pattern =
                DomainPattern::parse_settings(entry, list).unwrap_or_else(|e| panic!("{entry}: {e}"));
            assert_eq!((pattern.host(), pattern.port().map(u16::from)), (&host, port), "{entry}");
            assert_eq!(pattern.as_str(), entry);
        }
    }
}

#[test]
fn settings_take_a_bare_star_for_denying_only() {
    for (entry, port) in [("*", None), ("*:22", Some(22))] {
        let pattern = DomainPattern::parse_settings(entry, ListKind::Denied).unwrap();
        assert_eq!((pattern.host(), pattern.port().map(u16::from)), (&HostPattern::Any, port));
        let refused = DomainPattern::parse_settings(entry, ListKind::Allowed);
        assert_eq!(refused, Err(PatternError::BareStar), "{entry}");
    }
}

#[test]
fn settings_refuse() {
    use PatternError::*;
    let cases = [
        ("", Empty),
        ("https://a.com", Url),
        ("a.com/x", Url),
        ("10.0.0.0/8", Url),
        ("u@a.b", UserInfo),
        ("2001:db8::1", BareIpv6),
        ("::1", BareIpv6),
        ("::1:443", BareIpv6),
        ("2001:db8::1:443", BareIpv6),
        ("[::1", BadIpv6),
        ("[1.2.3.4]", BadIpv6),
        ("[fe80::1%1]", BadIpv6),
        ("intranet", SingleLabel),
        ("foo:80", SingleLabel),
        ("a.com:0", Port),
        ("a.com:65536", Port),
        ("a.com:080", Port),
        ("a.com:", Port),
        ("a.com:-1", Port),
        ("a.b:8 0", Blank),
        (" a.b", Blank),
        ("a b.c", Blank),
        ("*:0", Port),
        ("**", InnerStar),
        ("*.com", BroadWildcard),
        ("*.localhost", BroadWildcard),
        ("*.*", InnerStar),
        ("a.*.com", InnerStar),
        ("*a.com", InnerStar),
        ("**.a.b", InnerStar),
        ("a.b.", TrailingDot),
        ("*.a.b.", TrailingDot),
        ("a..b", EmptyLabel),
        (".a.b", EmptyLabel),
        ("b\u{fc}cher.example", NotAscii),
        ("a.b?x", BadCharacter),
        ("a.b#x", BadCharacter),
        ("a%2eb.c", BadCharacter),
        ("1.2.3", Numeric),
        ("0177.0.0.1", Numeric),
        ("0x7f.0.0.1", Numeric),
        ("*.1.2", Numeric),
    ];
    for (entry, error) in cases {
        for list in [ListKind::Allowed, ListKind::Denied] {
            assert_eq!(DomainPattern::parse_settings(entry, list), Err(error), "{entry:?}");
        }
    }
    // Said for what it is, not as a port that is missing.
    assert_eq!(DomainPattern::parse_settings("example.com:443:1", ListKind::Denied), Err(BareIpv6));
}

#[test]
fn wildcards_match_below_and_nothing_else() {
    let pattern = DomainPattern::parse_hello("*.x.example:443").unwrap();
    let matches = |host: &str, port| pattern.matches(&Host::from_authority(host).unwrap(), port);
    assert!(matches("a.x.example", 443));
    assert!(matches("c.b.a.X.Example.", 443));
    for (host, port) in [
        ("a.x.example", 80),
        ("x.example", 443),
        ("ax.example", 443),
        ("a.x.example.evil.test", 443),
        ("127.0.0.1", 443),
        ("[::1]", 443),
    ] {
        assert!(!matches(host, port), "{host}:{port}");
    }
}

proptest! {
    /// An entry of the hello means the same in the settings, where both take it.
    #[test]
    fn grammars_agree(entry in r"(\*\.)?[a-z0-9_.-]{1,12}(:[0-9]{1,5})?") {
        let hello = DomainPattern::parse_hello(&entry);
        let settings = DomainPattern::parse_settings(&entry, ListKind::Allowed);
        if let (Ok(hello), Ok(settings)) = (hello, settings) {
            prop_assert_eq!(hello, settings);
        }
    }

    /// Whatever a pattern without a wildcard names, the reader of targets reads as that very host.
    #[test]
    fn patterns_name_canonical_hosts(entry in "[a-zA-Z0-9_.:\\[\\]-]{1,16}") {
        if let Ok(pattern) = DomainPattern::parse_settings(&entry, ListKind::Allowed) {
            let host = match pattern.host() {
                HostPattern::Name(name) => Host::Name(name.clone()),
                HostPattern::Addr(addr) => Host::Addr(*addr),
                other => return Err(TestCaseError::fail(format!("{entry} became {other:?}"))),
            };
            prop_assert_eq!(Host::from_bare(host.to_string()), Ok(host.clone()));
            prop_assert!(pattern.matches(&host, pattern.port().map_or(1, u16::from)));
        }
    }

    #[test]
    fn any_text_is_refused_or_read_without_a_panic(entry in ".{0,20}") {
        let _ = DomainPattern::parse_hello(&entry);
        let _ = DomainPattern::parse_settings(&entry, ListKind::Denied);
    }
}
