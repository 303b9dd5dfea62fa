//! Writes heads and chunk framing. The version is always our own, HTTP/1.1 (RFC 9110 2.5).

use std::{
    fmt::{self, Write},
    ops::Deref,
};

use bytes::{BufMut, BytesMut};

use super::{fields::Field, framing::FramingField, target::PathAndQuery};

/// What follows the data of every chunk.
pub const CHUNK_END: &[u8] = b"\r\n";

/// The end of a chunked body without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Appends the head of a request: `Host` first (RFC 9110 7.2), then `fields`, then the framing.
///
/// `host` is the canonical authority. `fields` come from a parsed message or from checked edits, so none of
/// the parts can hold a line end.
pub fn write_request_head<'a>(
    out: &mut BytesMut,
    method: &str,
    target: &PathAndQuery,
    host: &str,
    fields: impl Iterator<Item = Field<'a>>,
    framing: FramingField,
) {
    for part in [method, " ", target.as_str(), " HTTP/1.1\r\nHost: ", host, "\r\n"] {
        out.put_slice(part.as_bytes());
    }
    write_fields(out, fields);
    write_framing(out, framing);
    out.put_slice(b"\r\n");
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
    write_formatted(out, format_args!("HTTP/1.1 {status:03} "));
    out.put_slice(reason);
    out.put_slice(b"\r\n");
    write_fields(out, fields);
    write_framing(out, framing);
    if close {
        out.put_slice(b"Connection: close\r\n");
    }
    out.put_slice(b"\r\n");
}

fn write_fields<'a>(out: &mut BytesMut, fields: impl Iterator<Item = Field<'a>>) {
    for Field { name, value } in fields {
        out.reserve(name.len() + value.len() + 4);
        out.put_slice(name);
        out.put_slice(b": ");
        out.put_slice(value);
        out.put_slice(b"\r\n");
    }
}

fn write_framing(out: &mut BytesMut, framing: FramingField) {
    match framing {
        FramingField::Absent => {}
        FramingField::Length(length) => write_formatted(out, format_args!("Content-Length: {length}\r\n")),
        FramingField::Chunked => out.put_slice(b"Transfer-Encoding: chunked\r\n"),
    }
}

fn write_formatted(out: &mut BytesMut, text: fmt::Arguments<'_>) {
    out.write_fmt(text).expect("invariant: a buffer in memory takes all");
}

/// The line before the data of a chunk; dereferences to its bytes.
#[derive(Debug, Clone, Copy)]
pub struct ChunkHeader {
    line: [u8; Self::MAX],
    start: usize,
}

impl ChunkHeader {
    /// Sixteen digits and CRLF.
    const MAX: usize = 18;
}

impl Deref for ChunkHeader {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.line[self.start..]
    }
}

/// The line before a chunk of `len` bytes, which must not be 0: that would end the body.
pub fn chunk_header(len: usize) -> ChunkHeader {
    debug_assert!(len > 0);
    let mut line = *b"0000000000000000\r\n";
    let mut start = ChunkHeader::MAX - 2;
    let mut left = len;
    while left > 0 {
        start -= 1;
        line[start] = b"0123456789abcdef"[left & 0xf];
        left >>= 4;
    }
    ChunkHeader { line, start }
}

/// Appends the end of a chunked body with `trailers`.
pub fn write_last_chunk<'a>(out: &mut BytesMut, trailers: impl Iterator<Item = Field<'a>>) {
    out.put_slice(b"0\r\n");
    write_fields(out, trailers);
    out.put_slice(b"\r\n");
}

#[cfg(test)]
mod tests;
