use std::{borrow::Borrow, fmt, sync::Arc};

/// The longest name in text form: 255 octets on the wire leave 253 characters (RFC 1035 section 2.3.4).
pub(super) const MAX_NAME: usize = 253;
/// The longest label (RFC 1035 section 2.3.4).
pub(super) const MAX_LABEL: usize = 63;

/// A canonical DNS name: lower-case ASCII, no final dot, 1 to 253 bytes, labels of 1 to 63 bytes, and never a
/// spelling that some resolver would take for an IPv4 address.
///
/// Cloning is cheap: one name is shared by the tunnel, its requests and their events.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DomainName(Arc<str>);

impl DomainName {
    /// Takes text that a reader of this module has already canonicalised and checked.
    pub(super) fn from_canonical(text: &str) -> Self {
        debug_assert!(!text.is_empty() && text.len() <= MAX_NAME && !text.ends_with('.'));
        Self(text.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is `localhost` or a name below it, which RFC 6761 section 6.3 reserves for loopback.
    pub fn is_localhost(&self) -> bool {
        self.0.strip_suffix("localhost").is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }

    /// The names above this one, nearest first: `b.c` and `c` for `a.b.c`.
    pub fn parents(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('.').map(|(dot, _)| &self.0[dot + 1..])
    }
}

impl Borrow<str> for DomainName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether getaddrinfo or a URL parser would read a host that ends in this label as an IPv4 address: the last
/// label is a decimal, octal or hexadecimal number (`inet_aton`, WHATWG URL "ends in a number").
pub(super) fn is_numeric_label(label: &[u8]) -> bool {
    match label {
        [b'0', b'x' | b'X', hex @ ..] => hex.iter().all(u8::is_ascii_hexdigit),
        _ => !label.is_empty() && label.iter().all(u8::is_ascii_digit),
    }
}
