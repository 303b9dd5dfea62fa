use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use thiserror::Error;

use super::name::{DomainName, MAX_LABEL, MAX_NAME, is_numeric_label};

/// A canonical target host: what lists are asked about, a decider is told, a resolver is given.
///
/// Two spellings of one host are one `Host`, and a name is never something that a resolver could turn into an
/// address by itself. An IPv4-mapped IPv6 literal stays the IPv6 literal it is; deny rules look inside it
/// (see [`crate::address::embedded_ipv4`]), allow rules do not.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// A DNS name.
    Name(DomainName),
    /// An IP literal.
    Addr(IpAddr),
}

impl Host {
    /// Reads the host of a URL authority, a CONNECT target or a `Host` header, where IPv6 stands in brackets.
    ///
    /// # Errors
    /// [`HostError`] for anything that is not exactly one host in ASCII, spelled so that every reader would
    /// agree on it.
    pub fn from_authority(text: impl AsRef<[u8]>) -> Result<Self, HostError> {
        let text = text.as_ref();
        match text {
            [b'[', inner @ .., b']'] => parse_v6(inner).map(Self::Addr),
            [b'[', ..] => Err(HostError::BadIpv6),
            _ if text.contains(&b':') => Err(HostError::BareIpv6),
            _ => parse_v4_or_name(text),
        }
    }

    /// Reads a host that stands alone, as in a SOCKS request or a TLS server name: IPv6 without brackets.
    ///
    /// # Errors
    /// As [`Host::from_authority`]; brackets are refused.
    pub fn from_bare(text: impl AsRef<[u8]>) -> Result<Self, HostError> {
        let text = text.as_ref();
        if text.contains(&b':') { parse_v6(text).map(Self::Addr) } else { parse_v4_or_name(text) }
    }

    /// The address, if this is a literal.
    pub fn addr(&self) -> Option<IpAddr> {
        match self {
            Self::Addr(addr) => Some(*addr),
            Self::Name(_) => None,
        }
    }

    /// The name, if this is one.
    pub fn name(&self) -> Option<&DomainName> {
        match self {
            Self::Name(name) => Some(name),
            Self::Addr(_) => None,
        }
    }
}

impl From<IpAddr> for Host {
    fn from(addr: IpAddr) -> Self {
        Self::Addr(addr)
    }
}

/// Canonical text, IPv6 without brackets: the form of the decider protocol and of events.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name.as_str()),
            Self::Addr(addr) => write!(f, "{addr}"),
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a spelling is not a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HostError {
    /// Nothing is there, or only a dot.
    #[error("the host is empty")]
    Empty,
    /// More than 253 bytes.
    #[error("the host name is longer than 253 characters")]
    TooLong,
    /// Two dots in a row, or one at the start.
    #[error("the host name has an empty label")]
    EmptyLabel,
    /// A label of more than 63 bytes.
    #[error("the host name has a label longer than 63 characters")]
    LabelTooLong,
    /// Anything but letters, digits, `-`, `_` and dots: blanks, controls, `%`, `@`, non-ASCII.
    #[error("the host has a character that no host name has")]
    BadCharacter,
    /// `127.1`, `0x7f000001`, `0177.0.0.1`, `2130706433`: some readers see an address, others a name.
    #[error("the host ends in a number but is no plain IPv4 address")]
    AmbiguousNumber,
    /// An IPv6 literal without brackets, where a port could follow.
    #[error("an IPv6 address must stand in brackets here")]
    BareIpv6,
    /// Brackets or colons around something that is no IPv6 address; zone identifiers included.
    #[error("the host is no valid IPv6 address")]
    BadIpv6,
}

fn parse_v6(text: &[u8]) -> Result<IpAddr, HostError> {
    let text = std::str::from_utf8(text).map_err(|_| HostError::BadIpv6)?;
    text.parse::<Ipv6Addr>().map(IpAddr::V6).map_err(|_| HostError::BadIpv6)
}

fn parse_v4_or_name(text: &[u8]) -> Result<Host, HostError> {
    // "example.com." is the same host as "example.com" (RFC 1034 section 3.1), but only for some programs.
    let text = text.strip_suffix(b".").unwrap_or(text);
    if text.is_empty() {
        return Err(HostError::Empty);
    }
    if text.len() > MAX_NAME {
        return Err(HostError::TooLong);
    }
    let mut lower = [0u8; MAX_NAME];
    let lower = &mut lower[..text.len()];
    let mut label = 0;
    for (to, &from) in lower.iter_mut().zip(text) {
        match from {
            b'.' if label == 0 => return Err(HostError::EmptyLabel),
            b'.' => label = 0,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' if label == MAX_LABEL => {
                return Err(HostError::LabelTooLong);
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => label += 1,
            _ => return Err(HostError::BadCharacter),
        }
        *to = from.to_ascii_lowercase();
    }
    if label == 0 {
        return Err(HostError::EmptyLabel);
    }
    let text = std::str::from_utf8(lower).expect("invariant: every byte was checked to be ASCII");
    if is_numeric_label(&lower[lower.len() - label..]) {
        // std takes only four decimal parts without leading zeros, the one spelling nobody disputes.
        let addr = text.parse::<Ipv4Addr>().map_err(|_| HostError::AmbiguousNumber)?;
        return Ok(Host::Addr(addr.into()));
    }
    Ok(Host::Name(DomainName::from_canonical(text)))
}

#[cfg(test)]
mod tests;
