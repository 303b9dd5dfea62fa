use std::borrow::Cow;

use super::{Fault, ReadError, Reader};

impl<'a> Reader<'a> {
    /// Reads a string.
    ///
    /// # Errors
    /// For any other value, a bad escape, a lone surrogate, or a raw control character.
    pub fn string(&mut self) -> Result<Cow<'a, str>, ReadError> {
        if !self.take(b'"') {
            return Err(self.expected("a string"));
        }
        let start = self.at;
        self.at += plain_prefix(&self.text.as_bytes()[start..]);
        if self.byte() == Some(b'"') {
            let plain = &self.text[start..self.at];
            self.at += 1;
            return Ok(Cow::Borrowed(plain));
        }
        self.escaped_string(start).map(Cow::Owned)
    }

    /// Goes on behind the first run of plain characters of a string, which began at `start`.
    fn escaped_string(&mut self, start: usize) -> Result<String, ReadError> {
        let mut out = String::from(&self.text[start..self.at]);
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(_) => return Err(self.error(Fault::ControlCharacter)),
                None => return Err(self.error(Fault::UnexpectedEnd)),
            }
            let run = plain_prefix(&self.text.as_bytes()[self.at..]);
            out.push_str(&self.text[self.at..self.at + run]);
            self.at += run;
        }
    }

    fn escape(&mut self) -> Result<char, ReadError> {
        let bad = self.error(Fault::BadEscape);
        self.at += 1;
        let letter = self.byte().ok_or(self.error(Fault::UnexpectedEnd))?;
        self.at += 1;
        Ok(match letter {
            b'"' | b'\\' | b'/' => letter.into(),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let lone = ReadError { fault: Fault::LoneSurrogate, at: bad.at };
                let high = self.hex(bad)?;
                let code = if (0xd800..0xdc00).contains(&high) {
                    if !self.text.as_bytes()[self.at..].starts_with(b"\\u") {
                        return Err(lone);
                    }
                    self.at += 2;
                    let low = self.hex(bad)?;
                    if !(0xdc00..0xe000).contains(&low) {
                        return Err(lone);
                    }
                    0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)
                } else {
                    high
                };
                char::from_u32(code).ok_or(lone)?
            }
            _ => return Err(bad),
        })
    }

    fn hex(&mut self, bad: ReadError) -> Result<u32, ReadError> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).ok_or(bad)?;
        let value = digits
            .iter()
            .try_fold(0, |sum, &digit| char::from(digit).to_digit(16).map(|digit| sum * 16 + digit));
        self.at += 4;
        value.ok_or(bad)
    }
}

/// How many bytes at the start of a string's content need no thought: up to a quote, backslash or control.
///
/// Eight bytes at a time, because a body shown to a decider is tens of megabytes of base64.
pub(super) fn plain_prefix(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    // The top bit of each byte that is zero in `word`; also of some bytes above one, never below the first.
    let zeroes = |word: u64| word.wrapping_sub(ONES) & !word & TOPS;
    let mut at = 0;
    for chunk in bytes.chunks_exact(8) {
        let word = u64::from_le_bytes(chunk.try_into().expect("invariant: the chunk has eight bytes"));
        let control = word.wrapping_sub(ONES * 0x20) & !word & TOPS;
        let special =
            control | zeroes(word ^ (ONES * u64::from(b'"'))) | zeroes(word ^ (ONES * u64::from(b'\\')));
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let tail = &bytes[at..];
    at + tail.iter().position(|&b| matches!(b, b'"' | b'\\' | 0..0x20)).unwrap_or(tail.len())
}
