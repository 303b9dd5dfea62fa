use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    num::NonZeroU16,
};

use thiserror::Error;

use super::{
    authority::{parse_port, split_port},
    host::Host,
    name::{DomainName, MAX_LABEL, MAX_NAME, is_numeric_label},
};

/// One entry of an allow or deny list: a host pattern, and the one port it is for, if it names one.
#[derive(Clone, PartialEq, Eq)]
pub struct DomainPattern {
    host: HostPattern,
    port: Option<NonZeroU16>,
    text: Box<str>,
}

/// Which hosts an entry is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// This name and no other.
    Name(DomainName),
    /// `*.x`: every name below `x`, at any depth, but not `x`.
    Subdomains(DomainName),
    /// This address and no other.
    Addr(IpAddr),
    /// `*`: every host. Only ever part of a deny list.
    Any,
}

/// Which list of the settings an entry stands in: a bare `*` is for denying only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// What may be reached.
    Allowed,
    /// What may not be reached, whatever else is allowed.
    Denied,
}

impl DomainPattern {
    /// Reads an entry of a decider's hello: lower case only, IPv6 bare or in brackets, no bare `*`.
    ///
    /// # Errors
    /// [`PatternError`], which says what is wrong but does not repeat the entry.
    pub fn parse_hello(entry: &str) -> Result<Self, PatternError> {
        check_characters(entry)?;
        if let Ok(addr) = entry.parse::<Ipv6Addr>() {
            return Ok(Self::new(HostPattern::Addr(addr.into()), None, entry));
        }
        let (host, port) = split_entry(entry)?;
        Ok(Self::new(parse_host(host, Grammar::Hello)?, port, entry))
    }

    /// Reads an entry of the settings file: case ignored, IPv6 in brackets, `localhost` the only name of one
    /// label, and `*` or `*:port` where `list` is [`ListKind::Denied`].
    ///
    /// # Errors
    /// [`PatternError`], which says what is wrong but does not repeat the entry.
    pub fn parse_settings(entry: &str, list: ListKind) -> Result<Self, PatternError> {
        check_characters(entry)?;
        if entry.parse::<Ipv6Addr>().is_ok() {
            return Err(PatternError::BareIpv6);
        }
        let (host, port) = split_entry(entry)?;
        let host = match (host, list) {
            ("*", ListKind::Denied) => HostPattern::Any,
            ("*", ListKind::Allowed) => return Err(PatternError::BareStar),
            _ => parse_host(&host.to_ascii_lowercase(), Grammar::Settings)?,
        };
        Ok(Self::new(host, port, entry))
    }

    /// Which hosts the entry is for.
    pub fn host(&self) -> &HostPattern {
        &self.host
    }

    /// The port it is for; every port if `None`.
    pub fn port(&self) -> Option<NonZeroU16> {
        self.port
    }

    /// The entry as it was configured, for the `rule` of an event and for looking up its reason.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the entry is for this target. Lists of many entries are asked through [`crate::lists::Lists`].
    pub fn matches(&self, host: &Host, port: u16) -> bool {
        self.port.is_none_or(|own| own.get() == port)
            && match (&self.host, host) {
                (HostPattern::Any, _) => true,
                (HostPattern::Name(own), Host::Name(name)) => own == name,
                (HostPattern::Subdomains(own), Host::Name(name)) => {
                    name.parents().any(|up| up == own.as_str())
                }
                (HostPattern::Addr(own), Host::Addr(addr)) => own == addr,
                _ => false,
            }
    }

    fn new(host: HostPattern, port: Option<NonZeroU16>, text: &str) -> Self {
        Self { host, port, text: text.into() }
    }
}

impl fmt::Display for DomainPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for DomainPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

/// What is wrong with an entry of an allow or deny list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PatternError {
    /// Nothing there.
    #[error("the entry is empty")]
    Empty,
    /// Anything outside ASCII; internationalised names must be written in their `xn--` form.
    #[error("only ASCII is allowed; write an international name in its xn-- form")]
    NotAscii,
    /// A blank or a control character.
    #[error("a blank or control character is not allowed")]
    Blank,
    /// `://` or a slash.
    #[error("expected a host name with an optional :port, not a URL, path or address range")]
    Url,
    /// `user@host`.
    #[error("user information is not allowed")]
    UserInfo,
    /// An upper-case letter in a decider's hello.
    #[error("must be lower case")]
    UpperCase,
    /// The part behind the colon.
    #[error("the port must be a number from 1 to 65535 without a leading zero")]
    Port,
    /// An IPv6 literal without brackets in the settings.
    #[error("an IPv6 address must stand in brackets, as in [2001:db8::1] or [2001:db8::1]:443")]
    BareIpv6,
    /// Brackets or colons around something else.
    #[error("not a valid IPv6 address")]
    BadIpv6,
    /// `1.2.3`, `0177.0.0.1`, `0x7f000001`; in a hello any name whose last label starts with a digit.
    #[error("the last label is a number, but this is no plain IPv4 address such as 192.0.2.1")]
    Numeric,
    /// `*` in an allow list.
    #[error("a bare * is not allowed here")]
    BareStar,
    /// A star anywhere but in a leading `*.`.
    #[error("a * may only be the whole first label, as in *.example.com")]
    InnerStar,
    /// `*.com`.
    #[error("a wildcard needs at least two labels behind it, as in *.example.com")]
    BroadWildcard,
    /// A name of one label that is not `localhost`, in the settings.
    #[error("a name needs at least two labels (localhost is the one exception)")]
    SingleLabel,
    /// A dot at the end.
    #[error("a trailing dot is not allowed")]
    TrailingDot,
    /// Two dots in a row, or one at the start.
    #[error("a label is empty")]
    EmptyLabel,
    /// A label over 63 characters, or a name over 253.
    #[error("the name is longer than 253 characters, or one of its labels longer than 63")]
    TooLong,
    /// In a decider's hello: a character that is in no host name, or a hyphen at the edge of a label.
    #[error("a label may only have letters, digits and inner hyphens")]
    BadLabel,
    /// In the settings, where underscores and hyphens may stand anywhere.
    #[error("a name may only have letters, digits, hyphens, underscores and dots")]
    BadCharacter,
}

#[derive(Clone, Copy, PartialEq)]
enum Grammar {
    Hello,
    Settings,
}

fn check_characters(entry: &str) -> Result<(), PatternError> {
    if entry.is_empty() {
        return Err(PatternError::Empty);
    }
    for c in entry.chars() {
        match c {
            ' ' | '\0'..='\x1f' | '\x7f' => return Err(PatternError::Blank),
            '/' => return Err(PatternError::Url),
            '@' => return Err(PatternError::UserInfo),
            _ if !c.is_ascii() => return Err(PatternError::NotAscii),
            _ => {}
        }
    }
    Ok(())
}

fn split_entry(entry: &str) -> Result<(&str, Option<NonZeroU16>), PatternError> {
    let (host, port) = split_port(entry.as_bytes());
    let port = match port {
        Some(digits) => Some(parse_port(digits).ok_or(PatternError::Port)?),
        None => None,
    };
    Ok((&entry[..host.len()], port))
}

fn parse_host(host: &str, grammar: Grammar) -> Result<HostPattern, PatternError> {
    if let Some(rest) = host.strip_prefix('[') {
        let inner = rest.strip_suffix(']').ok_or(PatternError::BadIpv6)?;
        let addr: Ipv6Addr = inner.parse().map_err(|_| PatternError::BadIpv6)?;
        return Ok(HostPattern::Addr(addr.into()));
    }
    if host.contains([':', ']']) {
        return Err(if grammar == Grammar::Settings {
            PatternError::BareIpv6
        } else {
            PatternError::BadIpv6
        });
    }
    if let Ok(addr) = host.parse::<Ipv4Addr>() {
        return Ok(HostPattern::Addr(addr.into()));
    }
    if let Some(base) = host.strip_prefix("*.") {
        check_name(base, grammar)?;
        if !base.contains('.') {
            return Err(PatternError::BroadWildcard);
        }
        return Ok(HostPattern::Subdomains(DomainName::from_canonical(base)));
    }
    if host == "*" {
        return Err(PatternError::BareStar);
    }
    check_name(host, grammar)?;
    if grammar == Grammar::Settings && !host.contains('.') && host != "localhost" {
        return Err(PatternError::SingleLabel);
    }
    Ok(HostPattern::Name(DomainName::from_canonical(host)))
}

/// Checks a lower-cased name. What a resolver could read as an address is never one (RFC 3696 section 2: no
/// top-level domain starts with a digit).
fn check_name(name: &str, grammar: Grammar) -> Result<(), PatternError> {
    if name.is_empty() {
        return Err(PatternError::Empty);
    }
    if name.contains('*') {
        return Err(PatternError::InnerStar);
    }
    if name.ends_with('.') {
        return Err(PatternError::TrailingDot);
    }
    if name.len() > MAX_NAME {
        return Err(PatternError::TooLong);
    }
    let mut last: &[u8] = b"";
    for label in name.as_bytes().split(|&b| b == b'.') {
        check_label(label, grammar)?;
        last = label;
    }
    let is_numeric = is_numeric_label(last) || (grammar == Grammar::Hello && last[0].is_ascii_digit());
    if is_numeric { Err(PatternError::Numeric) } else { Ok(()) }
}

fn check_label(label: &[u8], grammar: Grammar) -> Result<(), PatternError> {
    let (Some(&first), Some(&last)) = (label.first(), label.last()) else {
        return Err(PatternError::EmptyLabel);
    };
    if label.len() > MAX_LABEL {
        return Err(PatternError::TooLong);
    }
    if label.iter().any(u8::is_ascii_uppercase) {
        return Err(PatternError::UpperCase);
    }
    let is_plain = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-';
    match grammar {
        Grammar::Hello if !label.iter().all(is_plain) || first == b'-' || last == b'-' => {
            Err(PatternError::BadLabel)
        }
        Grammar::Settings if !label.iter().all(|b| is_plain(b) || *b == b'_') => {
            Err(PatternError::BadCharacter)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
