//! The header or trailer fields of one message, in the order and spelling they came in.

use std::fmt;

use bytes::Bytes;
use thiserror::Error;

/// One field line: the name as spelled, the value without the white space around it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name as spelled: a token, so ASCII.
    pub name: &'a [u8],
    /// The value's bytes: visible ASCII, space, tab, and any byte from 0x80.
    pub value: &'a [u8],
}

impl Field<'_> {
    /// Whether this is the field `name`, in any case. Other spellings (`_` for `-`) are other fields here.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }
}

/// Names only: a value may be a secret.
impl fmt::Debug for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: <{} bytes>", self.name.escape_ascii(), self.value.len())
    }
}

/// A field that may come once came more often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the field is there more than once")]
pub struct RepeatedField;

/// Fields as an index into the bytes they came in: nothing is copied, and a clone is cheap.
#[derive(Clone, Default)]
pub struct Fields {
    /// What the spans point into: the whole head or trailer section.
    bytes: Bytes,
    spans: Vec<FieldSpan>,
}

impl Fields {
    pub(super) fn new(bytes: Bytes, spans: Vec<FieldSpan>) -> Self {
        Self { bytes, spans }
    }

    /// Number of field lines.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is no field at all.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The fields in the order they came.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Field<'_>> + Clone {
        self.spans
            .iter()
            .map(|span| Field { name: span.name.of(&self.bytes), value: span.value.of(&self.bytes) })
    }

    /// The values of `name` in any case, in the order they came.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + Clone {
        self.iter().filter(move |field| field.is(name)).map(|field| field.value)
    }

    /// The value of a field that must not be repeated, equal or not: two parsers may pick different lines.
    pub fn single(&self, name: &str) -> Result<Option<&[u8]>, RepeatedField> {
        let mut found = None;
        for field in self.iter().filter(|field| field.is(name)) {
            if found.replace(field.value).is_some() {
                return Err(RepeatedField);
            }
        }
        Ok(found)
    }

    pub(super) fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Where one field line's name and value are.
#[derive(Clone, Copy)]
pub(super) struct FieldSpan {
    pub(super) name: Span,
    pub(super) value: Span,
}

/// A range of a head. `u32` halves the index; heads are far below 4 GiB (`HEAD_MAX`).
#[derive(Clone, Copy, Default)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

const _: () = assert!(crate::limits::HEAD_MAX < u32::MAX as usize);

impl Span {
    /// The range `start..end` of something no longer than `HEAD_MAX`.
    pub(super) fn new(start: usize, end: usize) -> Self {
        debug_assert!(start <= end && end <= crate::limits::HEAD_MAX);
        Self { start: start as u32, end: end as u32 }
    }

    /// Where `part` lies inside `whole`, which it must be a slice of.
    pub(super) fn within(whole: &[u8], part: &[u8]) -> Self {
        let start = part.as_ptr().addr() - whole.as_ptr().addr();
        Self::new(start, start + part.len())
    }

    pub(super) fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..self.end as usize]
    }
}
