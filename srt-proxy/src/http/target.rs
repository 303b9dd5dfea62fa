//! What a request line asks for: the forms of a request target (RFC 9112 3.2).

use std::num::NonZeroU16;
use std::str;

use bytes::Bytes;
use memchr::{memchr, memmem};
use srt_shared::domain::{Authority, AuthorityError, Host};
use thiserror::Error;

/// Why a target cannot be understood in exactly one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TargetError {
    /// Neither `/path`, `http://…`, `https://…` nor `*`.
    #[error("the request target is neither a path nor an http or https URI")]
    Form,
    /// A URI of another scheme than http and https.
    #[error("the scheme of the request target is neither http nor https")]
    Scheme,
    /// The authority of an absolute URI, or the target of a CONNECT.
    #[error("the authority in the request target is malformed: {0}")]
    Authority(#[from] AuthorityError),
    /// A CONNECT without port; there is no default (RFC 9110 9.3.6).
    #[error("the CONNECT target has no port")]
    NoPort,
    /// A byte that is not visible ASCII.
    #[error("the request target has a byte that is not visible ASCII")]
    Byte,
}

/// The schemes that are proxied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Cleartext; default port 80.
    Http,
    /// TLS; default port 443.
    Https,
}

impl Scheme {
    /// The port meant when none is given.
    pub fn default_port(self) -> NonZeroU16 {
        const HTTP: NonZeroU16 = NonZeroU16::new(80).expect("invariant: not 0");
        const HTTPS: NonZeroU16 = NonZeroU16::new(443).expect("invariant: not 0");
        match self {
            Self::Http => HTTP,
            Self::Https => HTTPS,
        }
    }
}

/// A request target, by its form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestTarget {
    /// `/path?query`
    Origin(PathAndQuery),
    /// `http://authority/path?query`
    Absolute {
        /// Which protocol to speak upstream.
        scheme: Scheme,
        /// Whom to ask.
        authority: Authority,
        /// What to ask for there.
        resource: PathAndQuery,
    },
    /// `host:port` of a CONNECT
    Connect {
        /// Where the tunnel leads.
        host: Host,
        /// Its port.
        port: NonZeroU16,
    },
    /// `*`, the server as a whole.
    Asterisk,
}

impl RequestTarget {
    /// Reads `spelled`, the target of a request with `method`.
    pub fn parse(method: &str, spelled: &Bytes) -> Result<Self, TargetError> {
        if method == "CONNECT" {
            let Authority { host, port } = Authority::parse(spelled)?;
            return Ok(Self::Connect { host, port: port.ok_or(TargetError::NoPort)? });
        }
        match &spelled[..] {
            b"*" => Ok(Self::Asterisk),
            [b'/', ..] => Ok(Self::Origin(PathAndQuery::parse(spelled.clone())?)),
            _ => Self::parse_absolute(spelled),
        }
    }

    fn parse_absolute(spelled: &Bytes) -> Result<Self, TargetError> {
        let colon = memmem::find(spelled, b"://").ok_or(TargetError::Form)?;
        let (scheme, rest) = (&spelled[..colon], &spelled[colon + 3..]);
        let scheme = if scheme.eq_ignore_ascii_case(b"http") {
            Scheme::Http
        } else if scheme.eq_ignore_ascii_case(b"https") {
            Scheme::Https
        } else if is_scheme(scheme) {
            return Err(TargetError::Scheme);
        } else {
            return Err(TargetError::Form);
        };
        // RFC 3986 3.2: the authority ends at the first of these. A backslash does not end it, so it is a
        // bad character in a host and not, as for browsers, a slash.
        let authority_len = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
        let (authority, resource) = rest.split_at(authority_len);
        let authority = Authority::parse(authority)?;
        let resource = match resource {
            [] => Bytes::from_static(b"/"),
            [b'/', ..] => spelled.slice_ref(resource),
            // `http://example.com?a=1`: the path is empty, which on the wire is `/` (RFC 9112 3.2.1).
            _ => [b"/", resource].concat().into(),
        };
        Ok(Self::Absolute { scheme, authority, resource: PathAndQuery::parse(resource)? })
    }
}

/// RFC 3986 3.1
fn is_scheme(bytes: &[u8]) -> bool {
    matches!(bytes, [first, rest @ ..] if first.is_ascii_alphabetic()
        && rest.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte)))
}

/// Path and query of a request: the bytes that go upstream, exactly as the client spelled them, without a fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathAndQuery {
    /// Begins with a slash; visible ASCII without `#`.
    spelled: Bytes,
    path_len: usize,
    had_fragment: bool,
}

impl PathAndQuery {
    /// Reads an origin-form target (also HTTP/2's `:path`).
    pub fn parse(spelled: Bytes) -> Result<Self, TargetError> {
        if !spelled.iter().all(u8::is_ascii_graphic) {
            return Err(TargetError::Byte);
        }
        if spelled.first() != Some(&b'/') {
            return Err(TargetError::Form);
        }
        // It never belongs on the wire: some servers cut it while others take it for part of the path.
        let fragment = memchr(b'#', &spelled);
        let spelled = spelled.slice(..fragment.unwrap_or(spelled.len()));
        let path_len = memchr(b'?', &spelled).unwrap_or(spelled.len());
        Ok(Self { spelled, path_len, had_fragment: fragment.is_some() })
    }

    /// The bytes for the request line, a `?` without query included.
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.spelled).expect("invariant: checked to be ASCII")
    }

    /// What no client of the web sends, if it has that: a fragment, which has been cut off here, or `//` or `/\` at its
    /// beginning, behind which URL parsers find a host.
    pub fn oddity(&self) -> Option<&'static str> {
        if self.had_fragment {
            Some("the request target has a fragment")
        } else if matches!(self.spelled[..], [b'/', b'/' | b'\\', ..]) {
            Some("the path begins with two slashes")
        } else {
            None
        }
    }

    /// The path, beginning with `/`, as spelled.
    pub fn path(&self) -> &str {
        &self.as_str()[..self.path_len]
    }

    /// The query without its `?`, as spelled; `None` also when it is empty.
    pub fn query(&self) -> Option<&str> {
        self.as_str().get(self.path_len + 1..).filter(|query| !query.is_empty())
    }
}

#[cfg(test)]
mod tests;
