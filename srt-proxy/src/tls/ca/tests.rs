use super::*;
use crate::tls::testing::{KEY_USAGE, Pki, authority, host, to_pem};

/// Mints for a name and an address and lets openssl verify both against `ca`.
fn assert_signs(pki: &Pki, authority: &Authority, ca: &str, what: &str) {
    for host in [host("a.example"), host("192.0.2.1"), host("2001:db8::1")] {
        let leaf = authority.mint(&host, SystemTime::now()).unwrap();
        let verified = pki.verify(&pki.path(ca), &leaf.certified.cert, &host);
        assert_eq!(verified, Ok(()), "{what}: {host}");
    }
}

#[test]
fn every_form_of_key_is_read() {
    let pki = Pki::new();
    for kind in ["rsa:2048", "P-256", "P-384"] {
        pki.make_ca("ca", kind, "/CN=Test CA", &[KEY_USAGE]);
        let certificate = pki.read("ca.pem");
        let pkcs8 = pki.read("ca.key");
        assert!(pkcs8.starts_with("-----BEGIN PRIVATE KEY"));
        let traditional = pki.openssl("pkey -in ca.key -traditional");
        assert!(
            traditional.starts_with("-----BEGIN RSA PRIVATE KEY")
                || traditional.starts_with("-----BEGIN EC PRIVATE KEY")
        );
        for (form, key) in [("PKCS#8", pkcs8), ("PKCS#1 or SEC1", traditional)] {
            for text in [format!("{certificate}{key}"), format!("{key}{certificate}")] {
                assert_signs(&pki, &authority(text).unwrap(), "ca.pem", &format!("{kind}, {form}"));
            }
        }
    }
}

#[test]
fn whatever_else_is_in_the_text_is_ignored() {
    let pki = Pki::new();
    pki.make_ca("ca", "P-256", "/CN=Test CA", &[KEY_USAGE]);
    pki.make_ca("other", "P-256", "/CN=Other CA", &[KEY_USAGE]);
    let certificate = pki.openssl("x509 -in ca.pem -text");
    assert!(certificate.starts_with("Certificate:"));
    let parameters = pki.openssl("ecparam -name prime256v1");
    let key = pki.read("ca.key");
    let other = pki.read("other.pem");
    for text in [
        format!("{certificate}{key}{other}"),
        format!("{parameters}{key}\n\nBag Attributes\n  friendlyName: x\n{certificate}{other}{parameters}"),
        format!("{certificate}{key}").replace('\n', "\r\n"),
        format!("{certificate}{}", key.trim_end()),
    ] {
        assert_signs(&pki, &authority(text.clone()).unwrap(), "ca.pem", &text);
    }
}

/// rcgen alone loses all but the last of these, and the leaf verifies nowhere.
#[test]
fn names_that_are_hard_to_write_again_are_kept() {
    let pki = Pki::new();
    for subject in [
        "/DC=org/DC=example/DC=corp/OU=one/OU=two/CN=x",
        "/O=Example+OU=Sandbox/CN=multi-valued",
        "/C=DE/O=Ünïcode GmbH/CN=☃",
        "/O=same/O=same",
        "/emailAddress=a@example.com/serialNumber=7/CN=x",
    ] {
        pki.make_ca("ca", "P-256", subject, &[KEY_USAGE]);
        assert_signs(&pki, &pki.authority("ca"), "ca.pem", subject);
    }
}

#[test]
fn an_intermediate_ca_sends_its_own_certificate_along() {
    let pki = Pki::new();
    pki.make_ca("root", "P-256", "/CN=Root", &[KEY_USAGE]);
    pki.make_key("ca", "P-256");
    pki.openssl_with("req -new -key ca.key -out ca.csr", &["-subj", "/CN=Intermediate"]);
    let extensions = format!(
        "basicConstraints=critical,CA:TRUE,pathlen:0\n{KEY_USAGE}\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid"
    );
    pki.write("ca.cnf", extensions);
    pki.openssl("x509 -req -in ca.csr -CA root.pem -CAkey root.key -CAcreateserial -days 3 -extfile ca.cnf -out ca.pem");
    assert_signs(&pki, &pki.authority("ca"), "root.pem", "intermediate");
}

#[test]
fn a_constrained_ca_is_good_for_its_own_names() {
    let pki = Pki::new();
    for constraint in
        ["permitted;DNS:.corp.example", "permitted;DNS:corp.example", "excluded;DNS:.corp.example"]
    {
        let constraint = format!("nameConstraints=critical,{constraint}");
        pki.make_ca("ca", "P-256", "/CN=Constrained", &[KEY_USAGE, &constraint]);
        pki.authority("ca");
    }
}

#[test]
fn a_ca_without_key_usage_and_key_identifier_is_used() {
    let pki = Pki::new();
    pki.make_ca("ca", "P-256", "/CN=Bare", &["subjectKeyIdentifier=none"]);
    let text = pki.openssl("x509 -in ca.pem -noout -text");
    assert!(!text.contains("Subject Key Identifier") && !text.contains("Key Usage"), "{text}");
    let leaf = pki.authority("ca").mint(&host("a.example"), SystemTime::now()).unwrap();
    pki.write("leaf.der", &leaf.certified.cert[0]);
    pki.openssl("x509 -inform der -in leaf.der -out leaf.pem");
    pki.openssl("verify -CAfile ca.pem leaf.pem");
}

/// A CA of our own making, with one thing changed.
fn self_made(change: impl FnOnce(&mut CertificateParams)) -> String {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    change(&mut params);
    params.self_signed(&key).unwrap().pem() + &key.serialize_pem()
}

#[test]
fn a_ca_that_clients_would_not_accept_is_refused() {
    let now = OffsetDateTime::now_utc();
    let text = self_made(|_| {});
    let (certificate, key) = text.split_at(text.find("-----BEGIN PRIVATE KEY").unwrap());
    let other = self_made(|_| {});
    let pki = Pki::new();
    let encrypted = pki.openssl("genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -aes128 -pass pass:x");
    let old_encrypted = pki.openssl("genrsa -traditional -aes128 -passout pass:x 2048");
    pki.make_key("small", "rsa:1024");
    pki.make_key("curve", "P-521");
    let ed25519 = pki.openssl("genpkey -algorithm ED25519");
    let broken = to_pem(b"no certificate");

    for (what, text, expected) in [
        ("nothing wrong", text.clone(), None),
        ("empty", String::new(), Some(CaError::NoCertificate)),
        ("no PEM", "hello\n".to_owned(), Some(CaError::NoCertificate)),
        ("no key", certificate.to_owned(), Some(CaError::NoKey)),
        ("no certificate", key.to_owned(), Some(CaError::NoCertificate)),
        ("no end", text[..text.len() - 30].to_owned(), Some(CaError::Pem)),
        ("no base64", text.replace("MI", "!!"), Some(CaError::Pem)),
        ("encrypted", format!("{certificate}{encrypted}"), Some(CaError::EncryptedKey)),
        ("encrypted the old way", format!("{certificate}{old_encrypted}"), Some(CaError::EncryptedKey)),
        ("RSA-1024", format!("{certificate}{}", pki.read("small.key")), Some(CaError::UnusableKey)),
        ("P-521", format!("{certificate}{}", pki.read("curve.key")), Some(CaError::UnusableKey)),
        ("Ed25519", format!("{certificate}{ed25519}"), Some(CaError::UnusableKey)),
        ("no certificate inside", format!("{broken}{key}"), Some(CaError::BadCertificate)),
        ("another key", format!("{certificate}{other}"), Some(CaError::KeyMismatch)),
        ("no CA", self_made(|params| params.is_ca = IsCa::NoCa), Some(CaError::NotACa)),
        ("explicitly no CA", self_made(|params| params.is_ca = IsCa::ExplicitNoCa), Some(CaError::NotACa)),
        (
            "no keyCertSign",
            self_made(|params| params.key_usages = vec![KeyUsagePurpose::DigitalSignature]),
            Some(CaError::MayNotSign),
        ),
        ("expired", self_made(|params| params.not_after = now - Duration::HOUR), Some(CaError::Expired)),
        (
            "too early",
            self_made(|params| params.not_before = now + Duration::HOUR),
            Some(CaError::NotYetValid),
        ),
    ] {
        let error = authority(text).map(|_| ()).err();
        let (error, expected) =
            (error.map(|error| error.to_string()), expected.map(|error| error.to_string()));
        assert_eq!(error, expected, "{what}");
    }
}

/// What only the probe finds: a CA for something else than servers.
#[test]
fn a_ca_whose_leaves_do_not_verify_is_refused() {
    let pki = Pki::new();
    pki.make_ca(
        "ca",
        "P-256",
        "/CN=Mail",
        &[KEY_USAGE, "nameConstraints=critical,excluded;DNS:probe.invalid"],
    );
    let error = authority(pki.ca_text("ca")).unwrap_err();
    assert!(matches!(error, CaError::Probe(_)), "{error}");
}

#[test]
fn errors_and_debug_output_quote_no_key() {
    let text = self_made(|_| {});
    let secret: Vec<_> = text.lines().filter(|line| line.len() == 64).map(str::to_owned).collect();
    assert!(!secret.is_empty());
    let good = format!("{:?}", authority(text.clone()).unwrap());
    let bad = authority(text.replace("-----END PRIVATE", "-----END BROKEN")).unwrap_err();
    for output in [good, format!("{bad:?} {bad}")] {
        assert!(secret.iter().all(|line| !output.contains(line)), "{output}");
    }
}

#[test]
fn a_generated_ca_is_as_good_as_a_given_one() {
    let pki = Pki::new();
    let authority = Authority::generate().unwrap();
    pki.write("ca.pem", authority.certificate_pem());
    assert_signs(&pki, &authority, "ca.pem", "generated");
    let text = pki.openssl("x509 -in ca.pem -noout -text");
    for part in [
        "CA:TRUE, pathlen:0",
        "Certificate Sign",
        "X509v3 Subject Key Identifier",
        "CN = srt-proxy session CA",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert_ne!(authority.certificate_pem(), Authority::generate().unwrap().certificate_pem());
}

#[test]
fn the_certificate_is_given_out_without_the_key() {
    let pki = Pki::new();
    pki.make_ca("ca", "P-256", "/CN=Test CA", &[KEY_USAGE]);
    assert_eq!(pki.authority("ca").certificate_pem(), pki.read("ca.pem"));
}
