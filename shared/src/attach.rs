//! The attach protocol: how a launcher points a sandbox at a running proxy.
//!
//! Types, reading and writing of the packets. Descriptors travel beside the first packet: the session socket,
//! then one for each of [`Attach::listeners`], in that order.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    domain::{DomainPattern, ListKind, PatternError},
    event::Event,
    json::{self, JsonError, Limits, Null},
    limits::{MAX_ATTACH_PACKET, MAX_MESSAGE_DEPTH, MAX_SESSION_NAME},
};

const PROTO: u32 = 1;

/// What a launcher asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attach {
    name: String,
    listeners: Vec<ListenerKind>,
    allowed_domains: Vec<DomainPattern>,
}

/// What a listening socket of the sandbox is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListenerKind {
    /// HTTP and SOCKS5 on one port.
    Proxy,
    /// Intercepted connections.
    Transparent,
    /// Questions to the resolver by datagram.
    DnsUdp,
    /// Questions to the resolver by stream.
    DnsTcp,
}

impl Attach {
    /// Checks the parts.
    ///
    /// # Errors
    /// [`AttachError`] for a bad name, no listener, or two listeners of one kind.
    pub fn new(
        name: String,
        listeners: Vec<ListenerKind>,
        allowed_domains: Vec<DomainPattern>,
    ) -> Result<Self, AttachError> {
        // The name goes into every event line and onto terminals.
        if name.is_empty() || name.len() > MAX_SESSION_NAME || name.chars().any(char::is_control) {
            return Err(AttachError::Name);
        }
        if listeners.is_empty() {
            return Err(AttachError::NoListener);
        }
        if let Some((_, kind)) =
            listeners.iter().enumerate().find(|(at, kind)| listeners[..*at].contains(kind))
        {
            return Err(AttachError::RepeatedListener(*kind));
        }
        Ok(Self { name, listeners, allowed_domains })
    }

    /// The name of the session in events: 1 to 128 bytes without control characters.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the descriptors behind the session socket are, in their order; each kind at most once.
    pub fn listeners(&self) -> &[ListenerKind] {
        &self.listeners
    }

    /// Hosts that this session may reach besides those of the settings, in the grammar of the settings.
    pub fn allowed_domains(&self) -> &[DomainPattern] {
        &self.allowed_domains
    }

    /// The packet.
    ///
    /// # Errors
    /// [`AttachError::TooLong`].
    pub fn encode(&self) -> Result<Vec<u8>, AttachError> {
        encode(&AttachPacket {
            t: "attach".into(),
            proto: PROTO,
            name: self.name.as_str().into(),
            listeners: self.listeners.as_slice().into(),
            allowed_domains: self.allowed_domains.iter().map(|entry| entry.as_str().into()).collect(),
        })
    }

    /// Reads a packet. How many descriptors came with it is for the caller to compare.
    ///
    /// # Errors
    /// [`AttachError`]; the packet is then to be refused and its descriptors closed.
    pub fn parse(packet: &[u8]) -> Result<Self, AttachError> {
        check(packet)?;
        let packet: AttachPacket<'_> = serde_json::from_slice(packet)?;
        check_header(&packet.t, "attach", packet.proto)?;
        let allowed_domains = packet.allowed_domains.iter().enumerate().map(|(index, entry)| {
            DomainPattern::parse_settings(entry, ListKind::Allowed)
                .map_err(|source| AttachError::Entry { index, source })
        });
        let allowed_domains = allowed_domains.collect::<Result<_, _>>()?;
        Self::new(packet.name.into_owned(), packet.listeners.into_owned(), allowed_domains)
    }
}

/// What the proxy sends on the session socket: first one of the first two, then events.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The session is served.
    Attached {
        /// The certificates to trust in the sandbox, where TLS is terminated.
        ca_pem: Option<String>,
    },
    /// It is not, and why.
    Refused {
        /// For people.
        reason: String,
    },
    /// Something happened in the session.
    Event(Box<Event>),
}

impl Answer {
    /// The packet.
    ///
    /// # Errors
    /// [`AttachError::TooLong`].
    pub fn encode(&self) -> Result<Vec<u8>, AttachError> {
        match self {
            Self::Attached { ca_pem } => {
                let ca_pem = ca_pem.as_deref().map(Cow::Borrowed);
                encode(&AttachedPacket { t: "attached".into(), proto: PROTO, ca_pem })
            }
            Self::Refused { reason } => {
                encode(&RefusedPacket { t: "refused".into(), reason: reason.as_str().into() })
            }
            Self::Event(event) => encode(event),
        }
    }

    /// Reads a packet.
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn parse(packet: &[u8]) -> Result<Self, AttachError> {
        check(packet)?;
        let tag: Tag<'_> = serde_json::from_slice(packet)?;
        match tag.t.as_deref() {
            Some("attached") => {
                let packet: AttachedPacket<'_> = serde_json::from_slice(packet)?;
                check_header(&packet.t, "attached", packet.proto)?;
                Ok(Self::Attached { ca_pem: packet.ca_pem.map(Cow::into_owned) })
            }
            Some("refused") => {
                let packet: RefusedPacket<'_> = serde_json::from_slice(packet)?;
                Ok(Self::Refused { reason: packet.reason.into_owned() })
            }
            Some(_) => Err(AttachError::Kind),
            None => Ok(Self::Event(serde_json::from_slice(packet)?)),
        }
    }
}

/// Why a packet of the attach protocol is refused.
#[derive(Debug, Error)]
pub enum AttachError {
    /// More than 64 KiB.
    #[error("the packet is longer than {MAX_ATTACH_PACKET} bytes")]
    TooLong,
    /// Not strict JSON.
    #[error("malformed packet: {0}")]
    Json(#[from] JsonError),
    /// Not the keys or the kinds of values agreed on.
    #[error("malformed packet: {0}")]
    Shape(#[from] serde_json::Error),
    /// Another `t`.
    #[error("unknown kind of packet")]
    Kind,
    /// Another `proto`.
    #[error("protocol version {0}, where {PROTO} is spoken")]
    Version(u32),
    /// The session's name.
    #[error("name must be 1 to {MAX_SESSION_NAME} bytes without control characters")]
    Name,
    /// An empty list.
    #[error("listeners is empty: a session without a listener can do nothing")]
    NoListener,
    /// One kind twice.
    #[error("listeners has {0:?} twice")]
    RepeatedListener(ListenerKind),
    /// An entry of the allow list.
    #[error("allowedDomains[{index}]: {source}")]
    Entry {
        /// Counted from 0.
        index: usize,
        /// What is wrong with it.
        source: PatternError,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AttachPacket<'a> {
    t: Cow<'a, str>,
    proto: u32,
    name: Cow<'a, str>,
    listeners: Cow<'a, [ListenerKind]>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    allowed_domains: Vec<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AttachedPacket<'a> {
    t: Cow<'a, str>,
    proto: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ca_pem: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RefusedPacket<'a> {
    t: Cow<'a, str>,
    reason: Cow<'a, str>,
}

/// Tells the packets of a session apart: events have no `t`.
#[derive(Deserialize)]
struct Tag<'a> {
    t: Option<Cow<'a, str>>,
}

fn encode(packet: &impl Serialize) -> Result<Vec<u8>, AttachError> {
    let bytes = serde_json::to_vec(packet)?;
    if bytes.len() > MAX_ATTACH_PACKET { Err(AttachError::TooLong) } else { Ok(bytes) }
}

fn check(packet: &[u8]) -> Result<(), AttachError> {
    if packet.len() > MAX_ATTACH_PACKET {
        return Err(AttachError::TooLong);
    }
    let limits = Limits { max_bytes: MAX_ATTACH_PACKET, max_depth: MAX_MESSAGE_DEPTH, null: Null::Refused };
    Ok(json::check(packet, limits)?)
}

fn check_header(t: &str, wanted: &str, proto: u32) -> Result<(), AttachError> {
    if t != wanted {
        return Err(AttachError::Kind);
    }
    if proto != PROTO { Err(AttachError::Version(proto)) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
