use std::collections::HashSet;

use x509_parser::prelude::{FromDer, X509Certificate};

use super::*;
use crate::tls::{
    Authority,
    testing::{KEY_USAGE, Pki, host},
};

fn text_of(pki: &Pki, leaf: &Leaf) -> String {
    pki.write("leaf.der", &leaf.certified.cert[0]);
    pki.openssl("x509 -inform der -in leaf.der -noout -text")
}

#[test]
fn the_profile_is_what_strict_clients_ask_for() {
    let pki = Pki::new();
    pki.make_ca("ca", "P-256", "/CN=Test CA", &[KEY_USAGE]);
    let authority = pki.authority("ca");
    let key_id = pki.openssl("x509 -in ca.pem -noout -ext subjectKeyIdentifier");
    let key_id = key_id.lines().nth(1).unwrap().trim();
    let text = text_of(&pki, &authority.mint(&host("api.example.com"), SystemTime::now()).unwrap());
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let after = |line: &str| {
        let at = lines.iter().position(|&other| other == line).unwrap_or_else(|| panic!("{line}: {text}"));
        lines[at + 1]
    };
    assert_eq!(after("X509v3 Authority Key Identifier:"), key_id);
    assert_ne!(after("X509v3 Subject Key Identifier:"), key_id);
    assert_eq!(after("X509v3 Subject Alternative Name:"), "DNS:api.example.com");
    assert_eq!(after("X509v3 Key Usage: critical"), "Digital Signature");
    assert_eq!(after("X509v3 Extended Key Usage:"), "TLS Web Server Authentication");
    assert_eq!(after("X509v3 Basic Constraints: critical"), "CA:FALSE");
    for line in
        ["Version: 3 (0x2)", "Issuer: CN = Test CA", "Subject: CN = api.example.com", "NIST CURVE: P-256"]
    {
        assert!(lines.contains(&line), "{line} is not in {text}");
    }
}

#[test]
fn a_name_too_long_for_the_subject_is_in_the_critical_san_only() {
    let pki = Pki::new();
    let authority = Authority::generate().unwrap();
    let ca = pki.write("ca.pem", authority.certificate_pem());
    let label = "a".repeat(60);
    for name in [
        "abc.example".to_owned(),
        format!("{label}.org"),
        format!("{label}.info"),
        format!("{label}.{label}.{label}.{label}.com"),
    ] {
        let host = host(&name);
        let leaf = authority.mint(&host, SystemTime::now()).unwrap();
        let text = text_of(&pki, &leaf);
        let critical = text.contains("X509v3 Subject Alternative Name: critical");
        assert_eq!(critical, name.len() > 64, "{text}");
        assert_eq!(text.contains(&format!("Subject: CN = {name}\n")), name.len() <= 64, "{text}");
        assert_eq!(pki.verify(&ca, &leaf.certified.cert, &host), Ok(()), "{name}");
    }
}

#[test]
fn odd_names_and_addresses_verify() {
    let pki = Pki::new();
    let authority = Authority::generate().unwrap();
    let ca = pki.write("ca.pem", authority.certificate_pem());
    for name in
        ["x_y.example.com", "localhost", "127.0.0.1", "::1", "::ffff:127.0.0.1", "xn--bcher-kva.example"]
    {
        let host = host(name);
        let leaf = authority.mint(&host, SystemTime::now()).unwrap();
        assert_eq!(pki.verify(&ca, &leaf.certified.cert, &host), Ok(()), "{name}");
        assert!(pki.verify(&ca, &leaf.certified.cert, &crate::tls::testing::host("other.example")).is_err());
    }
}

#[test]
fn serial_numbers_are_positive_and_never_the_same() {
    let authority = Authority::generate().unwrap();
    let mut serials = HashSet::new();
    for _ in 0..500 {
        let leaf = authority.mint(&host("a.example"), SystemTime::now()).unwrap();
        let (_, certificate) = X509Certificate::from_der(&leaf.certified.cert[0]).unwrap();
        let serial = certificate.raw_serial().to_vec();
        assert!(serial[0] < 0x80 && serial.len() <= 16, "{serial:x?}");
        assert!(serials.insert(serial));
    }
}

#[test]
fn a_leaf_is_valid_from_an_hour_ago_for_at_most_397_days() {
    let authority = Authority::generate().unwrap();
    let now = SystemTime::now();
    let leaf = authority.mint(&host("a.example"), now).unwrap();
    let (_, certificate) = X509Certificate::from_der(&leaf.certified.cert[0]).unwrap();
    let validity = certificate.validity();
    let age = OffsetDateTime::from(now) - validity.not_before.to_datetime();
    // The session CA itself is no older than that.
    assert!((3599..=3601).contains(&age.whole_seconds()), "{age}");
    let rest = validity.not_after.to_datetime() - OffsetDateTime::from(now);
    assert!((29..=397).contains(&rest.whole_days()), "{rest}");
    assert!(leaf.renew_at > now && leaf.renew_at < SystemTime::from(validity.not_after.to_datetime()));
}

#[test]
fn a_leaf_is_never_valid_longer_than_its_ca() {
    let pki = Pki::new();
    pki.make_ca("ca", "P-256", "/CN=Three Days", &[KEY_USAGE]);
    let authority = pki.authority("ca");
    let day = Duration::from_secs(24 * 3600);
    for days in 0..3 {
        let leaf = authority.mint(&host("a.example"), SystemTime::now() + day * days).unwrap();
        let (_, leaf) = X509Certificate::from_der(&leaf.certified.cert[0]).unwrap();
        let ca = pki.read("ca.pem");
        let ca: CertificateDer<'_> =
            rustls::pki_types::pem::PemObject::from_pem_slice(ca.as_bytes()).unwrap();
        let (_, ca) = X509Certificate::from_der(&ca).unwrap();
        assert_eq!(leaf.validity().not_after, ca.validity().not_after);
        assert!(leaf.validity().not_before >= ca.validity().not_before);
    }
    let late = authority.mint(&host("a.example"), SystemTime::now() + day * 4);
    assert!(matches!(late, Err(MintError::Expired)));
}
