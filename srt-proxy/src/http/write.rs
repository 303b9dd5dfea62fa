//! Writes heads and chunk framing. The version is always our own, HTTP/1.1 (RFC 9110 2.5).

use std::ops::Deref;

use bytes::BytesMut;

use super::{fields::Field, framing::FramingField, target::PathAndQuery};

/// What follows the data of every chunk.
pub const CHUNK_END: &[u8] = b"\r\n";

/// The end of a chunked body without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Appends the head of a request: `Host` first, then `fields`, then the framing.
pub fn write_request_head<'a>(
    out: &mut BytesMut,
    method: &str,
    target: &PathAndQuery,
    host: &str,
    fields: impl Iterator<Item = Field<'a>>,
    framing: FramingField,
) {
    todo!()
}

/// Appends the head of a response: `fields`, the framing, and `Connection: close` if asked for.
pub fn write_response_head<'a>(
    out: &mut BytesMut,
    status: u16,
    reason: &[u8],
    fields: impl Iterator<Item = Field<'a>>,
    framing: FramingField,
    close: bool,
) {
    todo!()
}

/// The line before the data of a chunk; dereferences to its bytes.
#[derive(Debug, Clone, Copy)]
pub struct ChunkHeader {
    line: [u8; 18],
    start: usize,
}

impl Deref for ChunkHeader {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.line[self.start..]
    }
}

/// The line before a chunk of `len` bytes. Not for 0, which would end the body.
pub fn chunk_header(len: usize) -> ChunkHeader {
    todo!()
}

/// Appends the end of a chunked body with `trailers`.
pub fn write_last_chunk<'a>(out: &mut BytesMut, trailers: impl Iterator<Item = Field<'a>>) {
    todo!()
}
