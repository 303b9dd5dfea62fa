use std::borrow::Cow;

use thiserror::Error;

mod string;

/// Reads JSON (RFC 8259) one value at a time, without building a tree and, where a string has no escapes,
/// without copying it.
#[derive(Debug)]
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    max_depth: usize,
}

/// Where a text stopped being acceptable, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{fault}, at byte {at}")]
pub struct ReadError {
    /// What is wrong.
    pub fault: Fault,
    /// Offset in bytes from the start of the text.
    pub at: usize,
}

/// What is wrong with a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Fault {
    /// Not UTF-8; surrogates encoded in UTF-8 and overlong forms included (RFC 3629 section 3).
    #[error("not UTF-8")]
    NotUtf8,
    /// U+FEFF in front (RFC 8259 section 8.1 forbids to send it).
    #[error("a byte order mark is not JSON")]
    ByteOrderMark,
    /// More bytes than the limit.
    #[error("longer than {0} bytes")]
    TooLong(usize),
    /// More arrays and objects in one another than the limit.
    #[error("nested deeper than {0} levels")]
    TooDeep(usize),
    /// The text ended inside a value.
    #[error("the text ends too early")]
    UnexpectedEnd,
    /// Something follows the one value.
    #[error("something follows the value")]
    TrailingData,
    /// What other notations, and many editors, have and JSON has not.
    #[error("a comment, which JSON does not have; take it out")]
    Comment,
    /// The same: a comma with nothing between it and the end.
    #[error("a trailing comma, which JSON does not have; take it out")]
    TrailingComma,
    /// Another kind of value, or no value at all.
    #[error("expected {0}")]
    Expected(&'static str),
    /// `null` where it is refused.
    #[error("null is not allowed")]
    Null,
    /// The same key twice in one object.
    #[error("the key is there twice")]
    DuplicateKey,
    /// A surrogate escape without its other half.
    #[error("a lone surrogate")]
    LoneSurrogate,
    /// A backslash followed by something that is no escape.
    #[error("an invalid escape")]
    BadEscape,
    /// A control character that had to be escaped.
    #[error("a control character in a string")]
    ControlCharacter,
    /// Digits that are no JSON number, like `01` or `1.`.
    #[error("an invalid number")]
    BadNumber,
}

/// The kind of value that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Object,
    Array,
    String,
    Number,
    Bool,
    Null,
}

impl<'a> Reader<'a> {
    /// Starts on a text of one value, which may nest `max_depth` arrays and objects.
    ///
    /// # Errors
    /// When the bytes are not UTF-8 or start with a byte order mark.
    pub fn new(bytes: &'a [u8], max_depth: usize) -> Result<Self, ReadError> {
        let text = std::str::from_utf8(bytes)
            .map_err(|e| ReadError { fault: Fault::NotUtf8, at: e.valid_up_to() })?;
        if text.starts_with('\u{feff}') {
            return Err(ReadError { fault: Fault::ByteOrderMark, at: 0 });
        }
        Ok(Self { text, at: 0, depth: 0, max_depth })
    }

    /// Checks that nothing but blanks follows.
    ///
    /// # Errors
    /// [`Fault::TrailingData`].
    pub fn end(mut self) -> Result<(), ReadError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.unwanted(Fault::TrailingData)),
        }
    }

    /// An error at the place reached.
    pub fn error(&self, fault: Fault) -> ReadError {
        ReadError { fault, at: self.at }
    }

    /// Reads an object, handing each key to `member`, which must read the value.
    ///
    /// Repeated keys are for `member` to find: it knows what it has seen.
    ///
    /// # Errors
    /// For anything that is no object, and whatever `member` returns.
    pub fn object<E: From<ReadError>>(
        &mut self,
        mut member: impl FnMut(&mut Self, Cow<'a, str>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(b'{', "an object")?;
        if self.take(b'}') {
            self.depth -= 1;
            return Ok(());
        }
        loop {
            let key = self.string().map_err(|e| match e.fault {
                Fault::Expected(_) => ReadError { fault: Fault::Expected("a key in double quotes"), ..e },
                _ => e,
            })?;
            if !self.take(b':') {
                return Err(self.expected("a colon").into());
            }
            member(self, key)?;
            if self.take(b'}') {
                self.depth -= 1;
                return Ok(());
            }
            self.comma("a comma or the end of the object", b'}')?;
        }
    }

    /// Reads an array; `element` must read one value each time it is called.
    ///
    /// # Errors
    /// For anything that is no array, and whatever `element` returns.
    pub fn array<E: From<ReadError>>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(b'[', "an array")?;
        if self.take(b']') {
            self.depth -= 1;
            return Ok(());
        }
        loop {
            element(self)?;
            if self.take(b']') {
                self.depth -= 1;
                return Ok(());
            }
            self.comma("a comma or the end of the array", b']')?;
        }
    }

    /// Reads an integer: digits, perhaps with a minus sign. `1.0`, `1e0` and `-0` are other ways to write a
    /// number that not every reader takes for the same integer, and are refused.
    ///
    /// # Errors
    /// For any other value, and for a number that does not fit.
    pub fn integer(&mut self) -> Result<i64, ReadError> {
        const WANTED: Fault = Fault::Expected("an integer");
        if self.kind()? != Kind::Number {
            return Err(self.error(WANTED));
        }
        let start = self.at;
        let digits = self.number()?;
        match digits.parse() {
            Ok(value) if digits != "-0" => Ok(value),
            _ => Err(ReadError { fault: WANTED, at: start }),
        }
    }

    /// Reads `true` or `false`.
    ///
    /// # Errors
    /// For any other value.
    pub fn boolean(&mut self) -> Result<bool, ReadError> {
        match self.kind()? {
            Kind::Bool if self.byte() == Some(b't') => self.literal("true").map(|()| true),
            Kind::Bool => self.literal("false").map(|()| false),
            _ => Err(self.error(Fault::Expected("true or false"))),
        }
    }

    /// Reads `null`.
    pub(super) fn null(&mut self) -> Result<(), ReadError> {
        self.peek();
        self.literal("null")
    }

    /// Reads a number and gives its text.
    pub(super) fn number(&mut self) -> Result<&'a str, ReadError> {
        self.peek();
        let start = self.at;
        let bytes = self.text.as_bytes();
        let digits = |at: &mut usize| {
            let from = *at;
            while bytes.get(*at).is_some_and(u8::is_ascii_digit) {
                *at += 1;
            }
            *at - from
        };
        let mut at = start + usize::from(bytes.get(start) == Some(&b'-'));
        let leading_zero = bytes.get(at) == Some(&b'0');
        let whole = digits(&mut at);
        let mut well_formed = whole > 0 && !(leading_zero && whole > 1);
        if bytes.get(at) == Some(&b'.') {
            at += 1;
            well_formed &= digits(&mut at) > 0;
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            at += 1;
            at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
            well_formed &= digits(&mut at) > 0;
        }
        if !well_formed {
            return Err(self.error(Fault::BadNumber));
        }
        self.at = at;
        Ok(&self.text[start..at])
    }

    /// The kind of the next value.
    pub(super) fn kind(&mut self) -> Result<Kind, ReadError> {
        match self.peek() {
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b'"') => Ok(Kind::String),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(b't' | b'f') => Ok(Kind::Bool),
            Some(b'n') => Ok(Kind::Null),
            Some(b'\'') => Err(self.error(Fault::Expected("a value; a string has double quotes"))),
            Some(_) => Err(self.unwanted(Fault::Expected("a value"))),
            None => Err(self.error(Fault::UnexpectedEnd)),
        }
    }

    fn open(&mut self, bracket: u8, wanted: &'static str) -> Result<(), ReadError> {
        if self.peek() != Some(bracket) {
            return Err(self.expected(wanted));
        }
        if self.depth == self.max_depth {
            return Err(self.error(Fault::TooDeep(self.max_depth)));
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    fn literal(&mut self, word: &'static str) -> Result<(), ReadError> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.error(Fault::Expected("a value")));
        }
        self.at += word.len();
        Ok(())
    }

    fn expected(&mut self, wanted: &'static str) -> ReadError {
        let fault = match self.peek() {
            None => Fault::UnexpectedEnd,
            Some(b'n') if self.text[self.at..].starts_with("null") => Fault::Null,
            Some(_) => return self.unwanted(Fault::Expected(wanted)),
        };
        self.error(fault)
    }

    /// `fault`, unless what stands here is a comment: whoever writes one does not see that it is what is wrong.
    fn unwanted(&self, fault: Fault) -> ReadError {
        let here = &self.text.as_bytes()[self.at..];
        let comment = ["//", "/*", "#"].iter().any(|start| here.starts_with(start.as_bytes()));
        self.error(if comment { Fault::Comment } else { fault })
    }

    /// Takes the comma between two members, behind which there must be another one.
    fn comma(&mut self, wanted: &'static str, end: u8) -> Result<(), ReadError> {
        if !self.take(b',') {
            return Err(self.expected(wanted));
        }
        let comma = self.at - 1;
        if self.peek() == Some(end) {
            return Err(ReadError { fault: Fault::TrailingComma, at: comma });
        }
        Ok(())
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// The next byte that is no blank.
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.byte() {
            self.at += 1;
        }
        self.byte()
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

#[cfg(test)]
mod tests;
