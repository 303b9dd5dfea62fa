//! Takes a body off a buffer, piece by piece, without copying it.

use bytes::{Bytes, BytesMut};
use thiserror::Error;

use super::{fields::Fields, framing::BodyFraming};
use crate::limits;

/// Why bytes are not the body they were announced to be. The connection ends, and so must the message on
/// the other leg, visibly: it must not look complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BodyError {
    /// The peer closed before the end.
    #[error("the connection ended inside the body")]
    Truncated,
    /// Not one to sixteen hexadecimal digits followed by `;` or CRLF.
    #[error("a chunk size is malformed")]
    ChunkSize,
    /// More than [`limits::CHUNK_LINE_MAX`] bytes.
    #[error("a chunk-size line is longer than {} bytes", limits::CHUNK_LINE_MAX)]
    ChunkLineTooLong,
    /// A control character in a chunk extension.
    #[error("a chunk extension has a control character")]
    ChunkExtension,
    /// Chunk data that is not followed by CRLF.
    #[error("chunk data is not followed by CRLF")]
    ChunkEnd,
    /// A trailer section that is not made of fields.
    #[error("the trailer section is malformed")]
    Trailers,
    /// More than [`limits::TRAILERS_MAX`] bytes or [`limits::TRAILER_FIELDS_MAX`] fields.
    #[error("the trailer section is too large")]
    TrailersTooLarge,
}

/// What the buffer held.
#[derive(Debug, PartialEq, Eq)]
pub enum BodyPiece {
    /// The next bytes of the body, never empty.
    Data(Bytes),
    /// Nothing complete: read more into the buffer, or say [`BodyReader::on_eof`].
    NeedMore,
    /// The body is complete. What is left in the buffer is the next message.
    End,
}

/// Reads one body.
#[derive(Debug)]
pub struct BodyReader {
    started: bool,
    trailers: Option<Fields>,
}

impl BodyReader {
    /// A reader for the body that follows a head.
    pub fn new(framing: BodyFraming) -> Self {
        todo!()
    }

    /// Takes the next piece off the front of `buf`. After an error it stays an error.
    pub fn read(&mut self, buf: &mut BytesMut) -> Result<BodyPiece, BodyError> {
        todo!()
    }

    /// The peer closed its side, and `read` took all there was. An error unless that was the end.
    pub fn on_eof(&mut self) -> Result<(), BodyError> {
        todo!()
    }

    /// Whether the body was read to its end.
    pub fn is_complete(&self) -> bool {
        todo!()
    }

    /// Whether any byte of the body was handed out.
    pub fn has_started(&self) -> bool {
        self.started
    }

    /// Bytes still to come, where the framing says so beforehand.
    pub fn remaining(&self) -> Option<u64> {
        todo!()
    }

    /// The trailer fields of a complete chunked body, if it had any. A request's are never asked for.
    pub fn take_trailers(&mut self) -> Option<Fields> {
        self.trailers.take()
    }
}
