use proptest::prelude::*;
use srt_shared::domain::DomainPattern;

use super::*;

/// This host in these tests.
fn interfaces() -> io::Result<Vec<IpAddr>> {
    Ok(["127.0.0.1", "::1", "198.51.100.7", "10.9.9.9", "2001:db8:1::7", "fe80::7"]
        .map(|own| own.parse().unwrap())
        .into())
}

fn no_interfaces() -> io::Result<Vec<IpAddr>> {
    Err(io::ErrorKind::PermissionDenied.into())
}

fn addr(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn host(text: &str) -> Host {
    Host::from_bare(text).unwrap()
}

fn patterns(entries: &[&str]) -> Vec<DomainPattern> {
    entries.iter().map(|entry| DomainPattern::parse_hello(entry).unwrap()).collect()
}

fn ranges(entries: &[&str]) -> Vec<AddrRange> {
    entries.iter().map(|entry| entry.parse().unwrap()).collect()
}

/// A policy in short: lists, then `--allow-resolved` and `--deny-resolved`.
#[derive(Clone, Copy, Default)]
struct Setup<'a> {
    allow: &'a [&'a str],
    deny: &'a [&'a str],
    open_private: bool,
    allow_resolved: &'a [&'a str],
    deny_resolved: &'a [&'a str],
}

impl Setup<'_> {
    fn guard(self) -> Guard {
        let policy = AddressPolicy {
            lists: Arc::new(Lists::new(patterns(self.allow), patterns(self.deny))),
            deny_private: !self.open_private,
            allowed: ranges(self.allow_resolved),
            denied: ranges(self.deny_resolved),
        };
        Guard { policy, interfaces }
    }

    /// Why `name`, which resolves to `address`, may not be dialled at port 443.
    fn judge(self, name: &str, address: &str) -> Option<AddressRefused> {
        self.guard().check(&host(name), 443, &[addr(address)]).err()
    }
}

fn class(class: AddressClass) -> Option<AddressRefused> {
    Some(AddressRefused::Class(class))
}

/// The forms of RFC 4291, 2765, 6052 and 3056 in which IPv6 carries this IPv4 address.
fn embedded(v4: &str) -> Vec<String> {
    let [a, b, c, d] = v4.parse::<std::net::Ipv4Addr>().unwrap().octets();
    let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    vec![
        format!("::ffff:{v4}"),
        format!("::{v4}"),
        format!("::ffff:0:{v4}"),
        format!("64:ff9b::{v4}"),
        format!("2002:{high:x}:{low:x}::1"),
    ]
}

#[test]
fn every_class_is_refused_to_names_in_every_form() {
    use AddressClass::*;
    for (address, expected) in [
        ("127.0.0.1", Loopback),
        ("127.255.255.254", Loopback),
        ("0.0.0.0", Unspecified),
        ("0.1.2.3", Unspecified),
        ("169.254.169.254", LinkLocal),
        ("169.254.0.1", LinkLocal),
        ("224.0.0.1", Multicast),
        ("239.255.255.255", Multicast),
        ("255.255.255.255", Broadcast),
        ("100.100.100.200", CloudMetadata),
        ("168.63.129.16", CloudMetadata),
        ("192.0.0.192", CloudMetadata),
        ("198.51.100.7", ThisHost),
        ("10.9.9.9", ThisHost),
        ("10.0.0.1", Private),
        ("172.16.0.1", Private),
        ("172.31.255.255", Private),
        ("192.168.1.1", Private),
        ("100.64.0.1", Shared),
    ] {
        assert_eq!(Setup::default().judge("a.example", address), class(expected), "{address}");
        for form in embedded(address) {
            let got = Setup::default().judge("a.example", &form);
            // ::0.0.0.0 is the unspecified IPv6 address.
            assert_eq!(got, class(expected), "{form} carries {address}");
        }
    }
    for (address, expected) in [
        ("::1", Loopback),
        ("::", Unspecified),
        ("fe80::1", LinkLocal),
        ("febf::1", LinkLocal),
        ("ff02::1", Multicast),
        ("fd00:ec2::254", CloudMetadata),
        ("fd20:ce::254", CloudMetadata),
        ("fd00:c1::a9fe:a9fe", CloudMetadata),
        ("fd00:42::42", CloudMetadata),
        ("2001:db8:1::7", ThisHost),
        ("fc00::1", UniqueLocal),
        ("fdff::1", UniqueLocal),
    ] {
        assert_eq!(Setup::default().judge("a.example", address), class(expected), "{address}");
    }
}

#[test]
fn public_addresses_pass_and_keep_their_order_and_port() {
    let addresses =
        ["192.0.2.1", "2001:db8::1", "198.51.100.8", "64:ff9b::192.0.2.1", "2002:c000:201::1"].map(addr);
    let checked = Setup::default().guard().check(&host("a.example"), 8443, &addresses).unwrap();
    let dialled: Vec<_> = checked.iter().map(CheckedAddr::socket_addr).collect();
    assert_eq!(dialled, addresses.map(|address| SocketAddr::new(address, 8443)));
}

#[test]
fn what_is_denied_is_dropped_and_the_rest_is_dialled() {
    let addresses = ["10.0.0.1", "192.0.2.1", "::1", "2001:db8::1", "127.0.0.1"].map(addr);
    let checked = Setup::default().guard().check(&host("a.example"), 443, &addresses).unwrap();
    let dialled: Vec<_> = checked.iter().map(|checked| checked.socket_addr().ip()).collect();
    assert_eq!(dialled, [addr("192.0.2.1"), addr("2001:db8::1")]);
}

#[test]
fn the_reason_is_that_of_the_first_address() {
    let guard = Setup::default().guard();
    let check = |addresses: &[&str]| {
        guard
            .check(&host("a.example"), 443, &addresses.iter().map(|text| addr(text)).collect::<Vec<_>>())
            .unwrap_err()
    };
    assert_eq!(check(&["10.0.0.1", "127.0.0.1"]), AddressRefused::Class(AddressClass::Private));
    assert_eq!(check(&["127.0.0.1", "10.0.0.1"]), AddressRefused::Class(AddressClass::Loopback));
    assert_eq!(check(&[]), AddressRefused::None);
}

#[test]
fn private_ranges_are_open_where_the_policy_says_so_and_nothing_else_is() {
    let open = Setup { open_private: true, ..Setup::default() };
    for address in [
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "fc00::1",
        "::ffff:10.0.0.1",
        "64:ff9b::10.0.0.1",
    ] {
        assert_eq!(open.judge("a.example", address), None, "{address}");
    }
    for address in
        ["127.0.0.1", "169.254.1.1", "100.100.100.200", "fd00:ec2::254", "10.9.9.9", "::ffff:10.9.9.9"]
    {
        assert_ne!(open.judge("a.example", address), None, "{address}");
    }
}

#[test]
fn a_literal_on_the_allow_list_is_exempt_for_its_port() {
    let setup = Setup {
        allow: &["a.example", "127.0.0.1:443", "10.0.0.1", "fd00:ec2::254", "10.9.9.9"],
        ..Setup::default()
    };
    for name in ["a.example", "127.0.0.1", "10.0.0.1"] {
        for address in ["127.0.0.1", "10.0.0.1", "fd00:ec2::254", "10.9.9.9"] {
            assert_eq!(setup.judge(name, address), None, "{name} at {address}");
        }
    }
    let guard = setup.guard();
    assert_eq!(
        guard.check(&host("a.example"), 444, &[addr("127.0.0.1")]),
        Err(AddressRefused::Class(AddressClass::Loopback))
    );
    assert!(guard.check(&host("a.example"), 444, &[addr("10.0.0.1")]).is_ok());
    // Only that address, in that form: the list is narrow where it allows.
    for address in ["127.0.0.2", "::ffff:127.0.0.1", "64:ff9b::10.0.0.1", "10.0.0.2"] {
        assert_ne!(setup.judge("a.example", address), None, "{address}");
    }
}

#[test]
fn a_literal_target_is_dialled_only_if_it_is_listed() {
    for target in ["127.0.0.1", "::1", "10.0.0.1", "198.51.100.7"] {
        assert_ne!(Setup::default().judge(target, target), None, "{target}");
        assert_eq!(Setup { allow: &[target], ..Setup::default() }.judge(target, target), None, "{target}");
    }
    assert_eq!(Setup::default().judge("192.0.2.1", "192.0.2.1"), None);
}

#[test]
fn a_denied_literal_wins_over_everything() {
    let denied = class(AddressClass::DenyListed);
    let setup = Setup {
        allow: &["a.example", "127.0.0.1", "192.0.2.1", "localhost"],
        deny: &["127.0.0.1", "192.0.2.1:443"],
        allow_resolved: &["0.0.0.0/0", "::/0"],
        ..Setup::default()
    };
    for name in ["a.example", "localhost", "127.0.0.1"] {
        for address in
            ["127.0.0.1", "::ffff:127.0.0.1", "192.0.2.1", "64:ff9b::192.0.2.1", "2002:c000:201::1"]
        {
            assert_eq!(setup.judge(name, address), denied, "{name} at {address}");
        }
    }
    assert!(
        setup.guard().check(&host("a.example"), 80, &[addr("192.0.2.1")]).is_ok(),
        "denied for port 443 only"
    );
}

#[test]
fn denied_ranges_win_over_allowed_ones_and_reach_into_ipv6() {
    let setup = Setup {
        allow: &["a.example", "192.0.2.9"],
        allow_resolved: &["192.0.2.0/24", "10.0.0.0/8"],
        deny_resolved: &["192.0.2.0/28", "10.1.0.0/16", "2001:db8:bad::/48"],
        ..Setup::default()
    };
    let listed = class(AddressClass::Listed);
    for (address, expected) in [
        ("192.0.2.1", listed),
        ("::ffff:192.0.2.1", listed),
        ("64:ff9b::192.0.2.1", listed),
        ("10.1.0.1", listed),
        ("2001:db8:bad::1", listed),
        ("192.0.2.16", None),
        ("10.2.0.1", None),
        ("2001:db8:900d::1", None),
        // The literal is on the allow list.
        ("192.0.2.9", None),
    ] {
        assert_eq!(setup.judge("a.example", address), expected, "{address}");
    }
}

#[test]
fn allowed_ranges_open_exactly_what_they_name() {
    let setup = Setup {
        allow_resolved: &["127.0.0.0/8", "10.0.0.0/24", "198.51.100.7", "fc00::/16"],
        ..Setup::default()
    };
    for address in ["127.0.0.1", "127.1.2.3", "10.0.0.255", "198.51.100.7", "fc00::1"] {
        assert_eq!(setup.judge("a.example", address), None, "{address}");
    }
    for address in
        ["::1", "::ffff:127.0.0.1", "10.0.1.0", "10.9.9.9", "64:ff9b::10.0.0.1", "fc01::1", "169.254.169.254"]
    {
        assert_ne!(setup.judge("a.example", address), None, "{address}");
    }
}

#[test]
fn localhost_names_lead_to_loopback_or_a_listed_literal_only() {
    let setup = Setup {
        allow: &["localhost", "10.0.0.1:443"],
        allow_resolved: &["192.0.2.0/24", "10.0.0.0/8"],
        ..Setup::default()
    };
    for name in ["localhost", "app.localhost", "a.b.localhost"] {
        for address in ["127.0.0.1", "127.0.0.2", "::1", "10.0.0.1"] {
            assert_eq!(setup.judge(name, address), None, "{name} at {address}");
        }
        for address in ["192.0.2.1", "10.0.0.2", "198.51.100.7", "0.0.0.0", "2001:db8::1"] {
            assert_eq!(setup.judge(name, address), Some(AddressRefused::NotLoopback), "{name} at {address}");
        }
    }
    let denied = Setup { deny_resolved: &["127.0.0.0/8"], ..setup };
    assert_eq!(denied.judge("localhost", "127.0.0.1"), class(AddressClass::Listed));
    assert_eq!(denied.judge("localhost", "::1"), None);
    for name in ["localhost.example", "xlocalhost"] {
        assert_eq!(setup.judge(name, "127.0.0.1"), class(AddressClass::Loopback), "{name}");
    }
}

#[test]
fn without_this_hosts_addresses_only_what_is_exempt_passes() {
    let guard =
        Guard { interfaces: no_interfaces, ..Setup { allow: &["127.0.0.1"], ..Setup::default() }.guard() };
    let check = |address| guard.check(&host("a.example"), 443, &[addr(address)]);
    assert_eq!(check("192.0.2.1"), Err(AddressRefused::OwnAddressesUnknown));
    assert_eq!(check("::1"), Err(AddressRefused::Class(AddressClass::Loopback)));
    assert!(check("127.0.0.1").is_ok());
}

#[test]
fn the_real_interfaces_are_refused() {
    let guard = Guard::new(AddressPolicy::default());
    for own in interfaces::list().unwrap() {
        assert!(guard.check(&host("a.example"), 443, &[own]).is_err(), "{own}");
    }
}

#[test]
fn a_refusal_never_tells_the_address() {
    for address in ["10.1.2.3", "127.9.8.7", "169.254.169.254", "fd00:ec2::254"] {
        let text = Setup::default().judge("a.example", address).unwrap().to_string();
        assert!(text.starts_with("resolved to a ") && !text.contains(address), "{text}");
    }
}

/// Addresses as likely to be in a class as not.
fn any_address() -> impl Strategy<Value = IpAddr> {
    let v4 = prop_oneof![
        any::<[u8; 4]>(),
        (prop::sample::select(vec![0, 10, 100, 127, 169, 172, 192, 198, 224, 255]), any::<[u8; 3]>())
            .prop_map(|(a, [b, c, d])| [a, b, c, d]),
    ];
    prop_oneof![
        v4.clone().prop_map(IpAddr::from),
        (v4, 0usize..5)
            .prop_map(|(v4, form)| addr(&embedded(&std::net::Ipv4Addr::from(v4).to_string())[form])),
        any::<[u16; 8]>().prop_map(IpAddr::from),
        (prop::sample::select(vec![0u16, 0xfc00, 0xfd00, 0xfe80, 0xff02, 0x2002, 0x64]), any::<[u16; 7]>())
            .prop_map(|(a, [b, c, d, e, f, g, h])| IpAddr::from([a, b, c, d, e, f, g, h])),
    ]
}

proptest! {
    /// Carrying an address in another form never opens what the address itself would not.
    #[test]
    fn no_form_opens_more_than_the_address_it_carries(v4: [u8; 4], open_private: bool) {
        let setup = Setup { open_private, deny: &["192.0.2.1"], deny_resolved: &["203.0.113.0/24"], ..Setup::default() };
        let plain = std::net::Ipv4Addr::from(v4).to_string();
        if setup.judge("a.example", &plain).is_some() {
            for form in embedded(&plain) {
                prop_assert!(setup.judge("a.example", &form).is_some(), "{form}");
            }
        }
    }

    /// Nothing passes that any of the always-denied rules covers, without an exemption.
    #[test]
    fn nothing_denied_passes(address in any_address(), open_private: bool, name in "(a\\.example|localhost|192\\.0\\.2\\.1)") {
        let setup = Setup { open_private, ..Setup::default() };
        let passed = setup.judge(&name, &address.to_string()).is_none();
        let loopback_name = name == "localhost";
        if passed && !loopback_name {
            prop_assert!(classify(address).is_none() && !interfaces().unwrap().contains(&address));
            prop_assert!(open_private || classify_private(address).is_none());
        }
        if passed && loopback_name {
            prop_assert_eq!(classify(address), Some(AddressClass::Loopback));
        }
    }
}
