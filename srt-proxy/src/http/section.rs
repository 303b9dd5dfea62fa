//! Finds the end of a section of CRLF lines (a head, or a trailer section) in bytes that dribble in.

use memchr::memchr_iter;

/// What is wrong with a section before its fields are even looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SectionError {
    BareLf,
    TooLong,
    TooManyLines,
}

/// Bounds of a section.
#[derive(Debug, Clone, Copy)]
pub(super) struct SectionLimits {
    /// Bytes, the final empty line included.
    pub(super) bytes: usize,
    /// Lines, the final empty line excluded.
    pub(super) lines: usize,
}

/// A scan that goes on where it stopped, so that each byte is looked at once however small the pieces are.
///
/// A line feed without a carriage return before it is refused here: lexers tend to take it for a line end
/// (RFC 9112 2.2 lets them), and then one parser sees a line where another sees a value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SectionScan {
    scanned: usize,
    line_start: usize,
    lines: usize,
}

/// A complete section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Section {
    /// Bytes up to and with the final empty line.
    pub(super) len: usize,
    /// Lines without the final empty one.
    pub(super) lines: usize,
}

impl SectionScan {
    /// Goes on with `buf`, which must begin with what the last call saw. `None` asks for more bytes.
    pub(super) fn find_end(
        &mut self,
        buf: &[u8],
        limits: SectionLimits,
    ) -> Result<Option<Section>, SectionError> {
        for at in memchr_iter(b'\n', &buf[self.scanned..]) {
            let lf = self.scanned + at;
            if lf >= limits.bytes {
                return Err(SectionError::TooLong);
            }
            if lf == self.line_start || buf[lf - 1] != b'\r' {
                return Err(SectionError::BareLf);
            }
            if lf - 1 == self.line_start {
                return Ok(Some(Section { len: lf + 1, lines: self.lines }));
            }
            self.line_start = lf + 1;
            self.lines += 1;
            if self.lines > limits.lines {
                return Err(SectionError::TooManyLines);
            }
        }
        self.scanned = buf.len();
        if buf.len() > limits.bytes { Err(SectionError::TooLong) } else { Ok(None) }
    }
}
