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
        todo!()
    }
}
