//! Takes a body off a buffer, piece by piece, without copying it.

use bytes::{Buf, Bytes, BytesMut};
use thiserror::Error;

use super::{
    fields::Fields,
    framing::BodyFraming,
    head_reader::parse_trailers,
    section::{SectionError, SectionLimits, SectionScan},
};
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
    /// A control character in a chunk extension, or a CR or LF alone at the end of the line.
    #[error("a chunk-size line has a control character")]
    ChunkLine,
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
    state: State,
    started: bool,
    trailers: Option<Fields>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Bytes left of a body of known length, never 0.
    Length(u64),
    UntilClose,
    /// Inside a chunk-size line.
    SizeLine(SizeLine),
    /// Bytes left of a chunk, never 0.
    Chunk(u64),
    /// At the CRLF behind the data of a chunk.
    ChunkEnd,
    Trailers(SectionScan),
    Complete,
    Failed(BodyError),
}

const TRAILERS: SectionLimits =
    SectionLimits { bytes: limits::TRAILERS_MAX, lines: limits::TRAILER_FIELDS_MAX };

impl BodyReader {
    /// A reader for the body that follows a head.
    pub fn new(framing: BodyFraming) -> Self {
        let state = match framing {
            BodyFraming::None | BodyFraming::Length(0) => State::Complete,
            BodyFraming::Length(length) => State::Length(length),
            BodyFraming::Chunked => State::SizeLine(SizeLine::default()),
            BodyFraming::UntilClose => State::UntilClose,
        };
        Self { state, started: false, trailers: None }
    }

    /// Takes the next piece off the front of `buf`. After an error it stays an error.
    pub fn read(&mut self, buf: &mut BytesMut) -> Result<BodyPiece, BodyError> {
        let result = self.advance(buf);
        if let Err(error) = result {
            self.state = State::Failed(error);
        }
        result
    }

    fn advance(&mut self, buf: &mut BytesMut) -> Result<BodyPiece, BodyError> {
        loop {
            match self.state {
                State::Complete => return Ok(BodyPiece::End),
                State::Failed(error) => return Err(error),
                _ if buf.is_empty() => return Ok(BodyPiece::NeedMore),
                State::Length(left) => {
                    let (data, left) = take(buf, left);
                    self.state = left.map_or(State::Complete, State::Length);
                    return Ok(self.data(data));
                }
                State::UntilClose => {
                    let data = buf.split().freeze();
                    return Ok(self.data(data));
                }
                State::Chunk(left) => {
                    let (data, left) = take(buf, left);
                    self.state = left.map_or(State::ChunkEnd, State::Chunk);
                    return Ok(self.data(data));
                }
                State::SizeLine(ref mut line) => {
                    let Some(size) = line.read(buf)? else { return Ok(BodyPiece::NeedMore) };
                    self.state = match size {
                        0 => State::Trailers(SectionScan::default()),
                        size => State::Chunk(size),
                    };
                }
                State::ChunkEnd => {
                    match buf[..] {
                        [b'\r'] => return Ok(BodyPiece::NeedMore),
                        [b'\r', b'\n', ..] => buf.advance(2),
                        _ => return Err(BodyError::ChunkEnd),
                    }
                    self.state = State::SizeLine(SizeLine::default());
                }
                State::Trailers(ref mut scan) => {
                    let Some(section) = scan.find_end(buf, TRAILERS)? else { return Ok(BodyPiece::NeedMore) };
                    let bytes = buf.split_to(section.len).freeze();
                    if section.lines > 0 {
                        self.trailers =
                            Some(parse_trailers(bytes, section).map_err(|_| BodyError::Trailers)?);
                    }
                    self.state = State::Complete;
                }
            }
        }
    }

    fn data(&mut self, data: Bytes) -> BodyPiece {
        self.started = true;
        BodyPiece::Data(data)
    }

    /// The peer closed its side, and `read` took all there was. An error unless that was the end.
    pub fn on_eof(&mut self) -> Result<(), BodyError> {
        match self.state {
            State::Complete => Ok(()),
            State::UntilClose => {
                self.state = State::Complete;
                Ok(())
            }
            State::Failed(error) => Err(error),
            _ => {
                self.state = State::Failed(BodyError::Truncated);
                Err(BodyError::Truncated)
            }
        }
    }

    /// Whether the body was read to its end.
    pub fn is_complete(&self) -> bool {
        matches!(self.state, State::Complete)
    }

    /// Whether any byte of the body was handed out.
    pub fn has_started(&self) -> bool {
        self.started
    }

    /// Bytes still to come, where the framing says so beforehand.
    pub fn remaining(&self) -> Option<u64> {
        match self.state {
            State::Complete => Some(0),
            State::Length(left) => Some(left),
            _ => None,
        }
    }

    /// The trailer fields of a complete chunked body, if it had any. A request's are never asked for.
    pub fn take_trailers(&mut self) -> Option<Fields> {
        self.trailers.take()
    }
}

impl From<SectionError> for BodyError {
    fn from(error: SectionError) -> Self {
        match error {
            SectionError::BareLf => Self::Trailers,
            SectionError::TooLong | SectionError::TooManyLines => Self::TrailersTooLarge,
        }
    }
}

/// Takes at most `left` bytes off `buf`, and says how many are left to come after them.
fn take(buf: &mut BytesMut, left: u64) -> (Bytes, Option<u64>) {
    let len = usize::try_from(left).map_or(buf.len(), |left| left.min(buf.len()));
    let data = buf.split_to(len).freeze();
    (data, Some(left - len as u64).filter(|left| *left > 0))
}

/// A chunk-size line, `1*HEXDIG *( ";" extension ) CRLF` (RFC 9112 7.1), read byte by byte because it is
/// three or four bytes long. Extensions are thrown away.
#[derive(Debug, Clone, Copy, Default)]
struct SizeLine {
    size: u64,
    len: usize,
    part: Part,
}

#[derive(Debug, Clone, Copy, Default)]
enum Part {
    #[default]
    Size,
    Extension,
    Lf,
}

impl SizeLine {
    /// The size once the line is complete.
    fn read(&mut self, buf: &mut BytesMut) -> Result<Option<u64>, BodyError> {
        for at in 0..buf.len() {
            let byte = buf[at];
            match (self.part, byte) {
                (Part::Lf, b'\n') => {
                    buf.advance(at + 1);
                    return Ok(Some(self.size));
                }
                (Part::Size, b'\r') if self.len > 0 => self.part = Part::Lf,
                (Part::Size, b';') if self.len > 0 => self.part = Part::Extension,
                (Part::Size, _) => self.push_digit(byte)?,
                (Part::Extension, b'\r') => self.part = Part::Lf,
                (Part::Extension, b'\t' | b' '..=b'~' | 0x80..) => {}
                // A bare LF above all: some parsers end the line there.
                (Part::Extension | Part::Lf, _) => return Err(BodyError::ChunkLine),
            }
            self.len += 1;
            if self.len > limits::CHUNK_LINE_MAX {
                return Err(BodyError::ChunkLineTooLong);
            }
        }
        buf.clear();
        Ok(None)
    }

    fn push_digit(&mut self, byte: u8) -> Result<(), BodyError> {
        // Sixteen digits cannot overflow, and nobody needs the zeros that would make more.
        let digit = char::from(byte).to_digit(16).filter(|_| self.len < 16).ok_or(BodyError::ChunkSize)?;
        self.size = self.size << 4 | u64::from(digit);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
