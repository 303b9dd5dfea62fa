//! What a sender says about the connection (RFC 9110 7.6.1, RFC 9112 9.3).

use thiserror::Error;

use super::{
    fields::Fields,
    head::Version,
    name::{is_hop_by_hop, is_same},
};
use crate::limits;

/// More options than anybody needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ConnectionError {
    /// More than [`limits::CONNECTION_OPTIONS_MAX`].
    #[error("the Connection field has more than {} options", limits::CONNECTION_OPTIONS_MAX)]
    TooManyOptions,
}

/// The options of all `Connection` fields of a message.
#[derive(Debug, Clone, Default)]
pub struct ConnectionOptions<'a> {
    close: bool,
    keep_alive: bool,
    upgrade: bool,
    /// Field names that end at this hop because the sender says so.
    named: Vec<&'a [u8]>,
}

impl<'a> ConnectionOptions<'a> {
    /// Collects the options of a message.
    pub fn parse(fields: &'a Fields) -> Result<Self, ConnectionError> {
        todo!()
    }

    /// Whether the sender leaves the connection open behind this message.
    pub fn persists(&self, version: Version) -> bool {
        !self.close && (version == Version::Http11 || self.keep_alive)
    }

    /// Whether the sender wants to go on in another protocol.
    pub fn upgrades(&self) -> bool {
        self.upgrade
    }

    /// Whether the sender named this field, in any spelling.
    pub(super) fn names(&self, name: &[u8]) -> bool {
        self.named.iter().any(|named| is_same(named, name))
    }
}

/// Whether a request says that its sender understands trailers (`TE: trailers`, RFC 9110 10.1.4).
pub fn accepts_trailers(fields: &Fields) -> bool {
    todo!()
}
