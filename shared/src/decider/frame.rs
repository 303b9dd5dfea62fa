//! Frames: a length in four bytes, big-endian, and that many bytes of payload. No I/O.

use thiserror::Error;

use crate::limits;

const LENGTH: usize = 4;
/// Room kept for the next read, and what an emptied buffer shrinks to.
const READ_ROOM: usize = 16 << 10;
/// How far ahead of the bytes received the buffer grows: a length alone must not claim 44 MiB.
const MAX_ROOM: usize = 1 << 20;

/// Which end reads, which decides how long a frame may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Never receives a `body`.
    Proxy,
    /// Receives `body` frames. That no other frame is as long is for [`super::parse_from_proxy`] to see.
    Decider,
}

/// Cuts a stream of bytes into frames.
#[derive(Debug)]
pub struct FrameReader {
    buffer: Vec<u8>,
    /// Where the frames not yet taken start.
    start: usize,
    limit: usize,
}

impl FrameReader {
    /// A reader at the start of a stream.
    pub fn new(side: Side) -> Self {
        let limit = match side {
            Side::Proxy => limits::MAX_FRAME,
            Side::Decider => limits::MAX_BODY_FRAME,
        };
        Self { buffer: Vec::new(), start: 0, limit }
    }

    /// The buffer to append received bytes to, with room for a read. Bytes already in it are to be left alone.
    pub fn tail(&mut self) -> &mut Vec<u8> {
        self.buffer.drain(..self.start);
        self.start = 0;
        if self.buffer.is_empty() {
            self.buffer.shrink_to(READ_ROOM);
        }
        let missing = match self.pending_length() {
            Some(length) => (LENGTH + length).saturating_sub(self.buffer.len()),
            None => 0,
        };
        self.buffer.reserve(missing.clamp(READ_ROOM, MAX_ROOM));
        &mut self.buffer
    }

    /// The payload of the next frame, if all of it is there.
    ///
    /// # Errors
    /// As soon as its length is known to be wrong. The stream is useless from there.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, FrameError> {
        let Some(length) = self.pending_length() else { return Ok(None) };
        if length == 0 {
            return Err(FrameError::Empty);
        }
        if length > self.limit {
            return Err(FrameError::TooLong { length, limit: self.limit });
        }
        let from = self.start + LENGTH;
        if self.buffer.len() - from < length {
            return Ok(None);
        }
        self.start = from + length;
        Ok(Some(&self.buffer[from..from + length]))
    }

    /// Whether the stream may end here without having been cut off inside a frame.
    pub fn is_between_frames(&self) -> bool {
        self.start == self.buffer.len()
    }

    fn pending_length(&self) -> Option<usize> {
        let length: [u8; LENGTH] = self.buffer.get(self.start..self.start + LENGTH)?.try_into().ok()?;
        usize::try_from(u32::from_be_bytes(length)).ok()
    }
}

/// Why a stream is no sequence of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// A frame without a payload is no JSON object.
    #[error("a frame of length 0")]
    Empty,
    /// Longer than this side may be sent.
    #[error("a frame of {length} bytes, where {limit} is the limit")]
    TooLong {
        /// What the frame says.
        length: usize,
        /// What this side takes.
        limit: usize,
    },
}

/// The payload written is longer than its kind of frame may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the frame is longer than {limit} bytes")]
pub struct FrameTooLong {
    /// What the kind of frame may have.
    pub limit: usize,
}

/// Appends one frame to `out`, its payload written by `payload`. On an error `out` is as it was before, so
/// frames may be gathered in one buffer and sent with one write.
pub(super) fn append<E: From<FrameTooLong>>(
    out: &mut Vec<u8>,
    limit: usize,
    payload: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH]);
    let written = payload(out).and_then(|()| {
        let length = out.len() - start - LENGTH;
        if length > limit {
            return Err(FrameTooLong { limit }.into());
        }
        u32::try_from(length).map_err(|_| FrameTooLong { limit }.into())
    });
    match written {
        Ok(length) => {
            out[start..start + LENGTH].copy_from_slice(&length.to_be_bytes());
            Ok(())
        }
        Err(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests;
