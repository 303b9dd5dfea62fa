use proptest::prelude::*;

use super::*;

fn canonical(text: &str) -> Result<String, HostError> {
    Host::from_authority(text).map(|host| host.to_string())
}

#[test]
fn spellings_of_one_host_are_one() {
    let label = "a".repeat(63);
    let longest = format!("{label}.{label}.{label}.{}", "a".repeat(61));
    assert_eq!(longest.len(), MAX_NAME);
    for (text, host) in [
        ("example.com", "example.com"),
        ("EXAMPLE.Com", "example.com"),
        ("example.com.", "example.com"),
        ("localhost", "localhost"),
        ("a_b.-x-.example", "a_b.-x-.example"),
        ("_dmarc.example.com", "_dmarc.example.com"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("1.2.3.4", "1.2.3.4"),
        ("127.0.0.1.", "127.0.0.1"),
        ("3com.1a", "3com.1a"),
        ("1.2.3.4.example", "1.2.3.4.example"),
        ("0x7f.example", "0x7f.example"),
        ("[::1]", "::1"),
        ("[0000:0000::0001]", "::1"),
        ("[::0.0.0.1]", "::1"),
        ("[2001:DB8::A]", "2001:db8::a"),
        // Not 127.0.0.1: deny rules look inside, allow rules do not.
        ("[::ffff:127.0.0.1]", "::ffff:127.0.0.1"),
        ("[::ffff:7f00:1]", "::ffff:127.0.0.1"),
        (&longest, &longest),
    ] {
        assert_eq!(canonical(text).as_deref(), Ok(host), "{text}");
    }
}

#[test]
fn refuses_what_is_no_host() {
    use HostError::*;
    let label = "a".repeat(63);
    let too_long = format!("{label}.{label}.{label}.{}", "a".repeat(62));
    for (text, error) in [
        ("", Empty),
        (".", Empty),
        ("..", EmptyLabel),
        (".a", EmptyLabel),
        ("a..b", EmptyLabel),
        ("a..", EmptyLabel),
        ("a.example..", EmptyLabel),
        (&"a".repeat(64), LabelTooLong),
        (&format!("{}.example", "a".repeat(64)), LabelTooLong),
        (&too_long, TooLong),
        ("a b", BadCharacter),
        (" a", BadCharacter),
        ("a\t", BadCharacter),
        ("a\r\n", BadCharacter),
        ("a\0b", BadCharacter),
        ("a\u{7f}", BadCharacter),
        ("b\u{fc}cher.example", BadCharacter),
        ("user@example.com", BadCharacter),
        ("example.com%00", BadCharacter),
        ("%65xample.com", BadCharacter),
        ("127.0.0.1%25lo", BadCharacter),
        ("a/b", BadCharacter),
        ("a\\b", BadCharacter),
        ("a?b", BadCharacter),
        ("a#b", BadCharacter),
        ("*.example.com", BadCharacter),
        ("a,b", BadCharacter),
        ("::1", BareIpv6),
        ("example.com:80", BareIpv6),
        ("[::1", BadIpv6),
        ("[]", BadIpv6),
        ("[a]", BadIpv6),
        ("[1.2.3.4]", BadIpv6),
        ("[example.com]", BadIpv6),
        ("[fe80::1%eth0]", BadIpv6),
        ("[fe80::1%25eth0]", BadIpv6),
        ("[::1].", BadIpv6),
        ("[[::1]]", BadIpv6),
        ("[::1 ]", BadIpv6),
    ] {
        assert_eq!(canonical(text), Err(error), "{text:?}");
    }
    assert_eq!(Host::from_authority(b"a\xff"), Err(BadCharacter));
    assert_eq!(Host::from_authority(b"[::\xff]"), Err(BadIpv6));
}

/// getaddrinfo takes each of these for an address, a DNS library for a name.
#[test]
fn refuses_numbers_that_only_some_read_as_an_address() {
    for text in [
        "127.1",
        "127.0.1",
        "127.0.0.01",
        "0177.0.0.1",
        "0x7f.0.0.1",
        "0x7f000001",
        "0X7F000001",
        "2130706433",
        "017700000001",
        "127.000.000.001",
        "0",
        "1",
        "256.0.0.1",
        "1.2.3.4.5",
        "1.2.3",
        "0x",
        "a.0x",
        "a.1",
        "a.0x1f",
        "example.08",
        "1.0x7f.",
        "4294967296",
        "127.0.0.1.1.",
    ] {
        assert_eq!(canonical(text), Err(HostError::AmbiguousNumber), "{text}");
    }
}

#[test]
fn a_bare_host_has_no_brackets() {
    let bare = |text: &str| Host::from_bare(text).map(|host| host.to_string());
    assert_eq!(bare("::1").as_deref(), Ok("::1"));
    assert_eq!(bare("2001:DB8:0::1").as_deref(), Ok("2001:db8::1"));
    assert_eq!(bare("Example.com.").as_deref(), Ok("example.com"));
    assert_eq!(bare("10.0.0.1").as_deref(), Ok("10.0.0.1"));
    assert_eq!(bare("[::1]"), Err(HostError::BadIpv6));
    assert_eq!(bare("::1%lo"), Err(HostError::BadIpv6));
    assert_eq!(bare("example.com:80"), Err(HostError::BadIpv6));
}

#[test]
fn localhost_is_a_whole_label() {
    let is_localhost = |text: &str| Host::from_authority(text).unwrap().name().unwrap().is_localhost();
    assert!(is_localhost("localhost"));
    assert!(is_localhost("a.b.LOCALHOST."));
    assert!(!is_localhost("notlocalhost"));
    assert!(!is_localhost("localhost.example.com"));
}

proptest! {
    #[test]
    fn canonical_form_is_its_own_canonical_form(text in "[a-zA-Z0-9_.:\\[\\]%-]{0,24}") {
        if let Ok(host) = Host::from_authority(&text) {
            prop_assert_eq!(Host::from_authority(host.authority(1, 1)), Ok(host.clone()));
            prop_assert_eq!(Host::from_bare(host.to_string()), Ok(host));
        }
    }

    #[test]
    fn case_and_a_final_dot_change_nothing(name in "[a-z0-9_-]{1,8}(\\.[a-z0-9_-]{1,8}){0,3}") {
        let host = Host::from_authority(&name);
        prop_assert_eq!(&Host::from_authority(name.to_ascii_uppercase()), &host);
        prop_assert_eq!(&Host::from_authority(format!("{name}.")), &host);
    }

    #[test]
    fn every_address_survives(v4: u32, v6: u128) {
        for addr in [IpAddr::V4(v4.into()), IpAddr::V6(v6.into())] {
            let host = Host::from(addr);
            prop_assert_eq!(Host::from_bare(host.to_string()), Ok(host));
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Host::from_authority(&bytes);
        let _ = Host::from_bare(&bytes);
    }
}
