use thiserror::Error;

use super::{edits::EditsError, frame::FrameError, verdict::DenialError};
use crate::{domain::PatternError, field_name::FieldNameError, json::ReadError};

/// How a message breaks the protocol. The text names the field and the fault, never a value: it may be a
/// credential.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// The stream is no sequence of frames.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The payload is not strict JSON, or a value is of the wrong kind.
    #[error("malformed message: {0}")]
    Json(#[from] ReadError),
    /// A key no message has.
    #[error("the key {0:?} is in no message")]
    UnknownKey(Box<str>),
    /// A key twice.
    #[error("{0} is there twice")]
    RepeatedKey(&'static str),
    /// A key of another message.
    #[error("{0} does not belong into this message")]
    StrayKey(&'static str),
    /// A key that must be there.
    #[error("{0} is missing")]
    MissingKey(&'static str),
    /// A value out of its range, or not one of the agreed words.
    #[error("{key} is not {wanted}")]
    Value {
        /// The key.
        key: &'static str,
        /// What was agreed on.
        wanted: &'static str,
    },
    /// An optional field that is there but empty.
    #[error("{0} is empty: it must be left out then")]
    Empty(&'static str),
    /// An entry of a list in a hello.
    #[error("{list}[{index}]: {source}")]
    Entry {
        /// Which list.
        list: &'static str,
        /// Counted from 0.
        index: usize,
        /// What is wrong with it.
        source: PatternError,
    },
    /// An entry of a list in a hello that is there twice.
    #[error("{list}[{index}] repeats an entry")]
    RepeatedEntry {
        /// Which list.
        list: &'static str,
        /// Counted from 0.
        index: usize,
    },
    /// A header name.
    #[error("{key}: {name:?} is {source}")]
    Name {
        /// Where it stands.
        key: &'static str,
        /// The name.
        name: Box<str>,
        /// What is wrong with it.
        source: FieldNameError,
    },
    /// The edits of an allow.
    #[error("allow: {0}")]
    Edits(#[from] EditsError),
    /// A deny.
    #[error("deny: {0}")]
    Denial(#[from] DenialError),
    /// Longer than 1 MiB without being a `body`.
    #[error("a message other than body is longer than {} bytes", crate::limits::MAX_FRAME)]
    TooLong,
}
