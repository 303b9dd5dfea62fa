//! A trust store for Java: PKCS #12 (RFC 7292), written by hand.
//!
//! Certificates are public, so the store is neither encrypted nor sealed with a MAC; Java reads such a store when no
//! password is given. Each entry carries Java's own `trustedKeyUsage` attribute, without which Java takes a
//! certificate in a PKCS #12 file for part of a key's chain and trusts nothing.

use std::borrow::Cow;

/// What is in the way of a trust store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Longer than any certificate.
    #[error("certificate {0} of the bundle is larger than a trust store can hold")]
    TooLarge(usize),
}

/// pkcs-7-data (RFC 2315).
const OID_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01];
/// certBag (RFC 7292 section 4.2.3).
const OID_CERT_BAG: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x0c, 0x0a, 0x01, 0x03];
/// x509Certificate (RFC 7292 section 4.2.3).
const OID_X509: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x16, 0x01];
/// friendlyName (RFC 2985 section 5.5.1): the alias, which must differ between entries.
const OID_FRIENDLY_NAME: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x14];
/// trustedKeyUsage, Oracle's 2.16.840.1.113894.746875.1.1.
const OID_TRUSTED_KEY_USAGE: &[u8] =
    &[0x60, 0x86, 0x48, 0x01, 0x86, 0xf9, 0x66, 0xad, 0xca, 0x7b, 0x01, 0x01];
/// anyExtendedKeyUsage (RFC 5280 section 4.2.1.12).
const OID_ANY_USAGE: &[u8] = &[0x55, 0x1d, 0x25, 0x00];

const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OID: u8 = 0x06;
const BMP_STRING: u8 = 0x1e;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const EXPLICIT_0: u8 = 0xa0;

/// DER lengths are written in up to four bytes here.
const LARGEST: usize = 1 << 24;

/// A trust store with these certificates (DER).
///
/// # Errors
/// For a certificate of absurd size.
pub fn trust_store(certificates: impl Iterator<Item = Vec<u8>>) -> Result<Vec<u8>, CertificateError> {
    let mut bags = Vec::new();
    for (index, certificate) in certificates.enumerate() {
        if certificate.len() > LARGEST {
            return Err(CertificateError::TooLarge(index));
        }
        bags.extend(cert_bag(&certificate, index));
    }
    let safe_contents = tlv(SEQUENCE, &bags);
    let authenticated_safe = tlv(SEQUENCE, &content_info(&safe_contents));
    Ok(tlv(SEQUENCE, &[tlv(INTEGER, &[3]), content_info(&authenticated_safe)].concat()))
}

/// SafeBag of one trusted certificate.
fn cert_bag(certificate: &[u8], index: usize) -> Vec<u8> {
    let cert = tlv(SEQUENCE, &[tlv(OID, OID_X509), explicit(&tlv(OCTET_STRING, certificate))].concat());
    let alias: Vec<u8> = format!("srt-{index}").encode_utf16().flat_map(u16::to_be_bytes).collect();
    let attributes = [
        attribute(OID_FRIENDLY_NAME, &tlv(BMP_STRING, &alias)),
        attribute(OID_TRUSTED_KEY_USAGE, &tlv(OID, OID_ANY_USAGE)),
    ]
    .concat();
    tlv(SEQUENCE, &[tlv(OID, OID_CERT_BAG), explicit(&cert), tlv(SET, &attributes)].concat())
}

fn attribute(oid: &[u8], value: &[u8]) -> Vec<u8> {
    tlv(SEQUENCE, &[tlv(OID, oid), tlv(SET, value)].concat())
}

/// ContentInfo of type data: the content as an octet string.
fn content_info(content: &[u8]) -> Vec<u8> {
    tlv(SEQUENCE, &[tlv(OID, OID_DATA), explicit(&tlv(OCTET_STRING, content))].concat())
}

fn explicit(content: &[u8]) -> Vec<u8> {
    tlv(EXPLICIT_0, content)
}

/// One DER element.
fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let significant = &length[length.iter().position(|&b| b != 0).unwrap_or(length.len() - 1)..];
    let length: Cow<'_, [u8]> = match significant {
        [short @ 0..=0x7f] => Cow::Owned(vec![*short]),
        long => [&[0x80 | long.len() as u8], long].concat().into(),
    };
    [&[tag], &*length, content].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_minimal() {
        assert_eq!(tlv(4, &[]), [4, 0]);
        assert_eq!(tlv(4, &[7; 127])[..2], [4, 127]);
        assert_eq!(tlv(4, &[7; 128])[..3], [4, 0x81, 128]);
        assert_eq!(tlv(4, &[7; 300])[..4], [4, 0x82, 1, 44]);
        assert_eq!(tlv(4, &[7; 70_000])[..5], [4, 0x83, 1, 0x11, 0x70]);
    }

    /// Asks the real thing: with the store as its trust store, and no password, Java must find each certificate
    /// trusted.
    #[test]
    fn java_trusts_every_certificate_in_it() {
        use crate::trust::Bundle;
        use std::process::Command;

        let dir = tempfile::tempdir().unwrap();
        let (pem, store) = (dir.path().join("ca.pem"), dir.path().join("trust.p12"));
        let mut bundle = Bundle::default();
        for name in ["one", "two"] {
            let made = Command::new("openssl")
                .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
                .args(["-keyout", "/dev/null", "-subj", &format!("/CN=srt test {name}"), "-out"])
                .arg(&pem)
                .output()
                .expect("openssl is needed for this test");
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            bundle.add_file(&pem);
        }
        std::fs::write(&store, trust_store(bundle.certificates()).unwrap()).unwrap();
        let program = dir.path().join("Count.java");
        std::fs::write(
            &program,
            r#"import javax.net.ssl.*; import java.security.KeyStore;
            public class Count { public static void main(String[] a) throws Exception {
                var factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
                factory.init((KeyStore) null);
                for (var m : factory.getTrustManagers())
                    for (var c : ((X509TrustManager) m).getAcceptedIssuers())
                        System.out.println(c.getSubjectX500Principal().getName());
            } }"#,
        )
        .unwrap();
        let ran = Command::new("java")
            .arg(format!("-Djavax.net.ssl.trustStore={}", store.display()))
            .arg("-Djavax.net.ssl.trustStoreType=PKCS12")
            .arg(&program)
            .output()
            .expect("java is needed for this test");
        let mut names: Vec<_> = std::str::from_utf8(&ran.stdout).unwrap().lines().collect();
        names.sort_unstable();
        assert_eq!(names, ["CN=srt test one", "CN=srt test two"], "{}", String::from_utf8_lossy(&ran.stderr));
    }
}
