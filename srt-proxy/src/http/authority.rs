//! `host[:port]`, as in an absolute URI, a CONNECT target or a Host field (RFC 3986 3.2).

use thiserror::Error;

/// Why a text is not `host[:port]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AuthorityError {
    /// An `@`: whatever stands before it only makes the host look like another one.
    #[error("it has user information")]
    UserInfo,
    /// Nothing before the port.
    #[error("the host is empty")]
    EmptyHost,
    /// A character that is in no DNS name and no address; `%`, `\` and commas among them.
    #[error("the host has a character that is in no name and no address")]
    HostCharacter,
    /// A `[` without its `]`, or something other than a port behind it.
    #[error("the brackets of an IPv6 address do not match")]
    Brackets,
    /// A port that is not 1 to 65535 in plain decimal.
    #[error("the port is not a number from 1 to 65535")]
    Port,
}

/// A host and perhaps a port, taken apart but not judged: which names and addresses are well-formed is for
/// the host's own parser to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Authority<'a> {
    /// Host as spelled, an IPv6 address with its brackets. ASCII, not empty.
    pub host: &'a str,
    /// Port if there is one, never 0.
    pub port: Option<u16>,
}

impl<'a> Authority<'a> {
    /// Takes `spelled` apart.
    pub fn parse(spelled: &'a [u8]) -> Result<Self, AuthorityError> {
        let spelled = str::from_utf8(spelled).map_err(|_| AuthorityError::HostCharacter)?;
        if spelled.contains('@') {
            return Err(AuthorityError::UserInfo);
        }
        let (host, port) = if spelled.starts_with('[') { split_bracketed(spelled)? } else { split(spelled)? };
        if host.is_empty() {
            return Err(AuthorityError::EmptyHost);
        }
        let port = port.map(parse_port).transpose()?;
        Ok(Self { host, port })
    }
}

/// `[address]` and what stands behind the colon after it.
fn split_bracketed(spelled: &str) -> Result<(&str, Option<&str>), AuthorityError> {
    let end = spelled.find(']').ok_or(AuthorityError::Brackets)? + 1;
    let (host, rest) = spelled.split_at(end);
    if !host[1..end - 1].bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.')) {
        // A zone (`%25eth0`) too: it says which of *our* links to use, which is not the client's to choose.
        return Err(AuthorityError::HostCharacter);
    }
    match rest.strip_prefix(':') {
        Some(port) => Ok((host, Some(port))),
        None if rest.is_empty() => Ok((host, None)),
        None => Err(AuthorityError::Brackets),
    }
}

/// A name or IPv4 address and what stands behind the first colon.
fn split(spelled: &str) -> Result<(&str, Option<&str>), AuthorityError> {
    let (host, port) = match spelled.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (spelled, None),
    };
    if host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_')) {
        Ok((host, port))
    } else {
        Err(AuthorityError::HostCharacter)
    }
}

fn parse_port(digits: &str) -> Result<u16, AuthorityError> {
    // `parse` alone would take a sign and leading zeros.
    match digits.as_bytes() {
        [b'1'..=b'9', ..] => digits.parse().map_err(|_| AuthorityError::Port),
        _ => Err(AuthorityError::Port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted() {
        for (spelled, host, port) in [
            ("example.com", "example.com", None),
            ("Example.COM.:443", "Example.COM.", Some(443)),
            ("a_b:1", "a_b", Some(1)),
            ("127.0.0.1:65535", "127.0.0.1", Some(65535)),
            ("[::1]", "[::1]", None),
            ("[::ffff:1.2.3.4]:80", "[::ffff:1.2.3.4]", Some(80)),
            // For the host's own parser to refuse.
            ("a..b", "a..b", None),
            ("[]:80", "[]", Some(80)),
        ] {
            assert_eq!(Authority::parse(spelled.as_bytes()), Ok(Authority { host, port }), "{spelled:?}");
        }
    }

    #[test]
    fn refused() {
        use AuthorityError::*;

        for (spelled, why) in [
            ("", EmptyHost),
            (":443", EmptyHost),
            ("user@example.com", UserInfo),
            ("user:pw@example.com:80", UserInfo),
            ("good.example\\@evil.example", UserInfo),
            ("@example.com", UserInfo),
            ("example.com@", UserInfo),
            ("example.com:", Port),
            ("example.com:0", Port),
            ("example.com:00443", Port),
            ("example.com:080", Port),
            ("example.com:+80", Port),
            ("example.com:-1", Port),
            ("example.com:65536", Port),
            ("example.com:99999999999999999999", Port),
            ("example.com:8o", Port),
            ("example.com:80 ", Port),
            ("example.com:https", Port),
            ("example.com:443/x", Port),
            ("example.com:443,evil.example", Port),
            ("::1:443", EmptyHost),
            ("fe80::1", Port),
            ("1:2:3", Port),
            ("[::1", Brackets),
            ("[::1]x", Brackets),
            ("[::1]]:80", Brackets),
            ("[::1]:", Port),
            ("[fe80::1%25lo]:80", HostCharacter),
            ("[v1.x]", HostCharacter),
            ("::1]", EmptyHost),
            ("a]", HostCharacter),
            ("%75p.example", HostCharacter),
            ("a b", HostCharacter),
            (" example.com", HostCharacter),
            ("example.com\t", HostCharacter),
            ("a,b", HostCharacter),
            ("a/b", HostCharacter),
            ("a\\b", HostCharacter),
            ("a?b", HostCharacter),
            ("a#b", HostCharacter),
            ("a\0b", HostCharacter),
            ("\u{fc}p.example", HostCharacter),
        ] {
            assert_eq!(Authority::parse(spelled.as_bytes()), Err(why), "{spelled:?}");
        }
        assert_eq!(Authority::parse(b"\xfcp.example"), Err(HostCharacter));
    }
}
