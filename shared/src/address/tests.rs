use proptest::prelude::*;

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap_or_else(|_| panic!("{text}"))
}

#[test]
fn classes_of_the_denied_set() {
    use AddressClass::*;
    for (class, addrs) in [
        (Loopback, &["127.0.0.1", "127.255.255.255", "::1"][..]),
        (Unspecified, &["0.0.0.0", "0.255.255.255", "::"]),
        (LinkLocal, &["169.254.0.0", "169.254.169.254", "169.254.255.255", "fe80::", "febf:ffff::1"]),
        (Multicast, &["224.0.0.1", "239.255.255.255", "ff00::", "ff02::1", "ffff::"]),
        (Broadcast, &["255.255.255.255"]),
        (
            CloudMetadata,
            &[
                "100.100.100.200",
                "168.63.129.16",
                "192.0.0.192",
                "fd00:ec2::",
                "fd00:ec2::254",
                "fd00:ec2:ffff::1",
                "fd20:ce::254",
                "fd00:c1::a9fe:a9fe",
                "fd00:42::42",
            ],
        ),
    ] {
        for addr in addrs {
            assert_eq!(classify(ip(addr)), Some(class), "{addr}");
        }
    }
}

#[test]
fn neighbours_of_the_denied_set_pass() {
    for addr in [
        "1.0.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "223.255.255.255",
        "240.0.0.1",
        "255.255.255.254",
        "100.100.100.199",
        "100.100.100.201",
        "168.63.129.17",
        "192.0.0.193",
        "10.0.0.1",
        "192.168.0.1",
        "fe7f::1",
        "fec0::1",
        "feff::1",
        "fd00:ec1::1",
        "fd00:ec3::1",
        "fd20:ce::253",
        "fd20:ce::1:254",
        "fd00:42::43",
        "2001:db8::1",
        "64:ff9b:1::7f00:1",
        "64:ff9b::1:7f00:1",
    ] {
        assert_eq!(classify(ip(addr)), None, "{addr}");
    }
}

#[test]
fn private_classes_and_their_neighbours() {
    use AddressClass::*;
    for (class, addrs) in [
        (
            Some(Private),
            &["10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.255.255"][..],
        ),
        (Some(Shared), &["100.64.0.0", "100.127.255.255"]),
        (Some(UniqueLocal), &["fc00::", "fdff:ffff::1"]),
        (Some(Private), &["::ffff:10.0.0.1", "64:ff9b::172.16.0.1", "2002:c0a8:1::"]),
        (
            None,
            &[
                "9.255.255.255",
                "11.0.0.0",
                "172.15.255.255",
                "172.32.0.0",
                "192.167.255.255",
                "192.169.0.0",
                "100.63.255.255",
                "100.128.0.0",
                "fbff::1",
                "fe00::1",
                "8.8.8.8",
                "2001:db8::1",
                "127.0.0.1",
            ],
        ),
    ] {
        for addr in addrs {
            assert_eq!(classify_private(ip(addr)), class, "{addr}");
        }
    }
}

fn forms(v4: Ipv4Addr) -> [Ipv6Addr; 5] {
    let low = u128::from(u32::from(v4));
    [
        low.into(),
        (0xffff << 32 | low).into(),
        (0xffff << 48 | low).into(),
        (0x64_ff9b_u128 << 96 | low).into(),
        (0x2002_u128 << 112 | low << 80 | 0x1234).into(),
    ]
}

#[test]
fn no_ipv4_in_other_addresses() {
    for addr in [
        "::",
        "::1",
        "1::ffff:127.0.0.1",
        "::fffe:127.0.0.1",
        "::1:ffff:127.0.0.1",
        "64:ff9b:1::127.0.0.1",
        "65:ff9b::127.0.0.1",
        "2003:7f00:1::",
        "::ffff:0:1:127.0.0.1",
        "fe80::127.0.0.1",
    ] {
        let IpAddr::V6(v6) = ip(addr) else { panic!("{addr}") };
        assert_eq!(embedded_ipv4(v6), None, "{addr}");
    }
}

#[test]
fn ranges_deny_wide_and_allow_narrow() {
    let range: AddrRange = "10.0.0.0/8".parse().unwrap();
    assert!(range.contains(ip("10.255.0.1")) && range.reaches(ip("10.255.0.1")));
    assert!(!range.contains(ip("11.0.0.1")) && !range.reaches(ip("11.0.0.1")));
    for form in forms(Ipv4Addr::new(10, 1, 2, 3)) {
        assert!(range.reaches(form.into()), "{form}");
        assert!(!range.contains(form.into()), "{form}");
    }
    assert!(!range.reaches(ip("64:ff9b:1::10.0.0.1")));
}

#[test]
fn everything_in_ipv6_is_no_ipv4() {
    let range: AddrRange = "::/0".parse().unwrap();
    assert!(range.reaches(ip("2001:db8::1")));
    assert!(!range.reaches(ip("10.0.0.1")));
}

#[test]
fn a_mapped_range_is_the_ipv4_range_it_spells() {
    let range: AddrRange = "::ffff:10.0.0.0/104".parse().unwrap();
    assert_eq!(range.to_string(), "10.0.0.0/8");
    assert!(range.reaches(ip("10.9.9.9")) && range.reaches(ip("::ffff:10.9.9.9")));
}

#[test]
fn range_texts() {
    for (text, written) in [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("192.168.1.1", "192.168.1.1"),
        ("192.168.1.1/32", "192.168.1.1"),
        ("FC00::/7", "fc00::/7"),
        ("2001:db8::1", "2001:db8::1"),
    ] {
        assert_eq!(
            text.parse::<AddrRange>().map(|range| range.to_string()).as_deref(),
            Ok(written),
            "{text}"
        );
    }
    use AddrRangeError::*;
    for (text, error) in [
        ("", Address),
        ("a.com", Address),
        ("10.0.0.0/33", Prefix),
        ("fc00::/129", Prefix),
        ("10.0.0.0/", Prefix),
        ("10.0.0.0/08", Prefix),
        ("10.0.0.0/+8", Prefix),
        ("10.0.0.0/-1", Prefix),
        ("10.0.0.0/8/8", Prefix),
        ("10.0.0.0/255.0.0.0", Prefix),
        ("10.0.0/8", Address),
        ("010.0.0.0/8", Address),
        ("[fc00::]/7", Address),
        ("10.0.0.1:80", Address),
        ("fe80::1%eth0", Address),
        (" 10.0.0.1", Address),
        ("*", Address),
    ] {
        assert_eq!(text.parse::<AddrRange>(), Err(error), "{text:?}");
    }
}

proptest! {
    /// No form of a denied IPv4 address is less denied than the address itself.
    #[test]
    fn every_form_is_judged_by_what_it_carries(v4 in arb_v4()) {
        for form in forms(v4) {
            // The two IPv6 addresses whose last 32 bits are not an IPv4 address.
            if form.is_unspecified() || form.is_loopback() {
                continue;
            }
            prop_assert_eq!(embedded_ipv4(form), Some(v4));
            prop_assert_eq!(classify(form.into()), classify(v4.into()));
            prop_assert_eq!(classify_private(form.into()), classify_private(v4.into()));
        }
    }
}

fn arb_v4() -> impl Strategy<Value = Ipv4Addr> {
    prop_oneof![
        any::<u32>().prop_map(Ipv4Addr::from),
        proptest::sample::select(
            &[0, 1, 0x7f00_0001, 0xa9fe_a9fe, 0xffff_ffff, 0x6464_64c8, 0xe000_0001][..]
        )
        .prop_map(|bits: u32| Ipv4Addr::from(bits)),
    ]
}
