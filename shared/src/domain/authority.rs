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
        let (host, port) = split_port(text.as_ref());
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
