//! The trust bundle: certificates in PEM, and nothing else of the files they come from.

use std::fs;
use std::path::Path;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// Where distributions keep the bundle that programs read by default: Debian and Alpine, Fedora, openSUSE, Arch and
/// NixOS. Ours is bound over each that exists, so that programs that read no variable trust it too.
pub const SYSTEM_BUNDLES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs/ca-bundle.crt",
];

/// Certificates in PEM, in the order they were added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bundle {
    pem: String,
}

impl Bundle {
    /// The system's roots. A caller's own `SSL_CERT_FILE` counts as such, because that is what the caller's programs
    /// trust today.
    pub fn of_system(ssl_cert_file: Option<&Path>) -> Self {
        let mut bundle = Self::default();
        let system = SYSTEM_BUNDLES.iter().map(Path::new).find(|path| path.is_file());
        if let Some(path) = ssl_cert_file.or(system) {
            bundle.add_file(path);
        }
        bundle
    }

    /// Adds the certificates of a text. Anything else in it, a private key above all, stays out.
    pub fn add(&mut self, text: &str) {
        let mut rest = text;
        while let Some(begin) = rest.find(BEGIN)
            && let Some(length) = rest[begin..].find(END)
        {
            let block = &rest[begin..begin + length + END.len()];
            // An unfinished block must not swallow what lies between it and the next.
            let block = &block[block.rfind(BEGIN).unwrap_or(0)..];
            self.pem.push_str(block);
            self.pem.push('\n');
            rest = &rest[begin + length + END.len()..];
        }
    }

    /// Adds the certificates of a file. One that is missing, cannot be read or holds none is passed over: lists of
    /// paths are shared between machines.
    pub fn add_file(&mut self, path: &Path) {
        if let Ok(bytes) = fs::read(path) {
            self.add(&String::from_utf8_lossy(&bytes));
        }
    }

    /// The certificates in PEM.
    pub fn as_pem(&self) -> &str {
        &self.pem
    }

    /// The certificates in DER. Blocks that are no base64 are left out.
    pub fn certificates(&self) -> impl Iterator<Item = Vec<u8>> {
        self.pem.split(BEGIN).skip(1).filter_map(|block| {
            let text: String = block.split(END).next()?.split_whitespace().collect();
            decode_base64(&text)
        })
    }
}

/// Standard base64 with padding. Twenty lines beside a dependency that nothing else here needs.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_certificates_get_in() {
        let mut bundle = Bundle::default();
        bundle.add(
            "text\n-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n\
             -----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\nmore\n\
             -----BEGIN CERTIFICATE-----\nunfinished\n-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n\
             -----END PRIVATE KEY-----\n-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----",
        );
        assert_eq!(
            bundle.as_pem(),
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n\
             -----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n"
        );
        assert_eq!(bundle.certificates().collect::<Vec<_>>(), [vec![0, 0, 0], vec![1, 2, 3]]);
    }

    #[test]
    fn missing_files_and_files_without_certificates_add_nothing() {
        let mut bundle = Bundle::default();
        bundle.add_file(Path::new("/nonexistent.pem"));
        bundle.add_file(Path::new("/"));
        bundle.add_file(Path::new("/proc/self/status"));
        assert_eq!(bundle, Bundle::default());
    }

    #[test]
    fn base64_of_every_length() {
        for (text, bytes) in [("", &b""[..]), ("AA==", b"\0"), ("AAE=", b"\0\x01"), ("AAEC", b"\0\x01\x02")] {
            assert_eq!(decode_base64(text).as_deref(), Some(bytes));
        }
        for bad in ["A", "A===", "AA=", "AA A", "A\u{e9}==", "===="] {
            assert_eq!(decode_base64(bad), None, "{bad:?}");
        }
    }
}
