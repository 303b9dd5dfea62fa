//! Heads of requests and responses. Only [`HeadReader`](super::HeadReader) makes them, so holding one
//! means the strict parser accepted it.

use std::{fmt, str};

use bytes::Bytes;

use super::{
    fields::{Fields, Span},
    target::{RequestTarget, TargetError},
};

/// Version of a message. There is no other: 0.9 has no heads, 1.2 does not exist, 2 is framed differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `HTTP/1.0`: no chunks, and the connection ends unless both sides say otherwise.
    Http10,
    /// `HTTP/1.1`
    Http11,
}

/// Head of a request.
#[derive(Clone)]
pub struct RequestHead {
    pub(super) method: Span,
    pub(super) target: Bytes,
    pub(super) version: Version,
    pub(super) fields: Fields,
}

impl RequestHead {
    /// The method: a token without lower-case letters.
    pub fn method(&self) -> &str {
        ascii(self.method.of(self.fields.bytes()))
    }

    /// The request target exactly as spelled: visible ASCII, at least one character.
    pub fn target(&self) -> &str {
        ascii(&self.target)
    }

    /// What the target means.
    pub fn request_target(&self) -> Result<RequestTarget, TargetError> {
        RequestTarget::parse(self.method(), &self.target)
    }

    /// The version the client speaks.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The header fields.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }
}

/// Without target and values, which may hold secrets.
impl fmt::Debug for RequestHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestHead")
            .field("method", &self.method())
            .field("target_len", &self.target().len())
            .field("version", &self.version)
            .field("fields", &self.fields)
            .finish()
    }
}

/// Head of a response.
#[derive(Debug, Clone)]
pub struct ResponseHead {
    pub(super) version: Version,
    pub(super) status: u16,
    pub(super) reason: Bytes,
    pub(super) fields: Fields,
}

impl ResponseHead {
    /// The version the server speaks.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The status code, 100 to 999.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The reason phrase as spelled, often empty; may hold bytes above 0x7f.
    pub fn reason(&self) -> &[u8] {
        &self.reason
    }

    /// The header fields.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }
}

fn ascii(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("invariant: the parser let only ASCII through")
}
