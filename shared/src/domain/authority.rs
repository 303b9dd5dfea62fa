use std::{fmt, num::NonZeroU16};

use thiserror::Error;

use super::host::{Host, HostError};

/// A host and, where one was written, a port: the authority of a URL, a CONNECT target, a `Host` header.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Authority {
    /// The canonical host.
    pub host: Host,
    /// The port, if one was written.
    pub port: Option<NonZeroU16>,
}

impl Authority {
    /// Reads `host`, `host:port`, `[ipv6]` or `[ipv6]:port`. User information is refused.
    ///
    /// # Errors
    /// [`AuthorityError`] when the host or the port is not spelled in the one way everybody reads alike.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, AuthorityError> {
        let text = text.as_ref();
        if text.contains(&b'@') {
            return Err(AuthorityError::UserInfo);
        }
        let (host, port) = split_port(text);
        let port = match port {
            Some(digits) => Some(parse_port(digits).ok_or(AuthorityError::Port)?),
            None => None,
        };
        Ok(Self { host: Host::from_authority(host)?, port })
    }
}

/// Why a spelling is no authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AuthorityError {
    /// An `@`: whatever stands before it only makes the host look like another one.
    #[error("user information is not allowed")]
    UserInfo,
    /// The host part.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Empty, zero, above 65535, a leading zero, or no number.
    #[error("the port is no number from 1 to 65535")]
    Port,
}

impl Host {
    /// The authority to write in a `Host` header or an absolute URL: IPv6 in brackets, the port left out when
    /// it is the scheme's own (RFC 9110 section 4.2.3).
    pub fn authority(&self, port: u16, default_port: u16) -> String {
        let bracketed = Bracketed(self);
        if port == default_port { bracketed.to_string() } else { format!("{bracketed}:{port}") }
    }
}

/// Splits the part behind the last colon off, unless that colon belongs to an IPv6 literal in brackets.
pub(super) fn split_port(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    match text.iter().rposition(|&b| b == b':' || b == b']') {
        Some(at) if text[at] == b':' => (&text[..at], Some(&text[at + 1..])),
        _ => (text, None),
    }
}

/// Reads a port as every parser would: digits only, no leading zero, 1 to 65535.
pub(super) fn parse_port(digits: &[u8]) -> Option<NonZeroU16> {
    if digits.first() == Some(&b'0') || digits.len() > 5 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().try_fold(0u16, |sum, digit| {
        sum.checked_mul(10).and_then(|sum| sum.checked_add(u16::from(digit - b'0')))
    })?;
    NonZeroU16::new(value)
}

struct Bracketed<'a>(&'a Host);

impl fmt::Display for Bracketed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Host::Addr(std::net::IpAddr::V6(addr)) => write!(f, "[{addr}]"),
            host => write!(f, "{host}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_hosts_with_and_without_a_port() {
        for (text, host, port) in [
            ("Example.COM.", "example.com", None),
            ("example.com:443", "example.com", Some(443)),
            ("example.com.:1", "example.com", Some(1)),
            ("127.0.0.1:65535", "127.0.0.1", Some(65535)),
            ("[::1]", "::1", None),
            ("[0:0::1]:8080", "::1", Some(8080)),
            ("a_b:1", "a_b", Some(1)),
            ("[::ffff:1.2.3.4]:80", "::ffff:1.2.3.4", Some(80)),
        ] {
            let authority = Authority::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!((authority.host.to_string().as_str(), authority.port.map(u16::from)), (host, port));
        }
    }

    #[test]
    fn refuses_what_readers_disagree_on() {
        use AuthorityError::{Host, Port, UserInfo};
        for (text, error) in [
            ("", Host(HostError::Empty)),
            (":443", Host(HostError::Empty)),
            ("example.com:", Port),
            ("example.com:0", Port),
            ("example.com:65536", Port),
            ("example.com:00443", Port),
            ("example.com:+443", Port),
            ("example.com:4 43", Port),
            ("example.com:http", Port),
            ("example.com:443:443", Host(HostError::BareIpv6)),
            ("::1", Host(HostError::BareIpv6)),
            ("[::1]443", Host(HostError::BadIpv6)),
            ("[::1]:", Port),
            ("[::1", Host(HostError::BadIpv6)),
            ("[::1%25eth0]:443", Host(HostError::BadIpv6)),
            ("user@example.com:443", UserInfo),
            ("user:pass@example.com", UserInfo),
            ("good.example\\@evil.example", UserInfo),
            ("@example.com", UserInfo),
            ("example.com@", UserInfo),
            ("example.com:80 ", Port),
            ("example.com:443,evil.example", Port),
            ("example.com:99999999999999999999", Port),
            ("fe80::1", Host(HostError::BareIpv6)),
            ("[::1]]:80", Host(HostError::BadIpv6)),
            ("[v1.x]", Host(HostError::BadIpv6)),
            ("a]", Host(HostError::BadCharacter)),
            ("%75p.example", Host(HostError::BadCharacter)),
            (" example.com", Host(HostError::BadCharacter)),
            ("example.com\t", Host(HostError::BadCharacter)),
            ("a,b", Host(HostError::BadCharacter)),
            ("a\\b", Host(HostError::BadCharacter)),
            ("a?b", Host(HostError::BadCharacter)),
            ("a#b", Host(HostError::BadCharacter)),
            ("a\0b", Host(HostError::BadCharacter)),
            ("\u{fc}p.example", Host(HostError::BadCharacter)),
            ("example.com/:443", Host(HostError::BadCharacter)),
            ("user:pw@example.com:80", UserInfo),
            ("example.com:080", Port),
            ("example.com:-1", Port),
            ("example.com:8o", Port),
            ("example.com:443/x", Port),
            ("::1:443", Host(HostError::BareIpv6)),
            ("1:2:3", Host(HostError::BareIpv6)),
            ("::1]", Host(HostError::BareIpv6)),
            ("[::1]x", Host(HostError::BadIpv6)),
            ("[]:80", Host(HostError::BadIpv6)),
            ("a b", Host(HostError::BadCharacter)),
            ("a..b", Host(HostError::EmptyLabel)),
        ] {
            assert_eq!(Authority::parse(text), Err(error), "{text:?}");
        }
        assert_eq!(Authority::parse(b"\xfcp.example"), Err(Host(HostError::BadCharacter)));
    }

    #[test]
    fn writes_brackets_and_leaves_the_default_port_out() {
        let write = |host: &str, port, default| Host::from_bare(host).unwrap().authority(port, default);
        assert_eq!(write("example.com", 443, 443), "example.com");
        assert_eq!(write("example.com", 443, 80), "example.com:443");
        assert_eq!(write("127.0.0.1", 80, 80), "127.0.0.1");
        assert_eq!(write("::1", 80, 80), "[::1]");
        assert_eq!(write("::1", 8080, 80), "[::1]:8080");
    }
}
