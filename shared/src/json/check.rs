use std::{borrow::Cow, collections::HashSet};

use thiserror::Error;

use super::{
    path::Path,
    reader::{Fault, Kind, ReadError, Reader},
};

/// How much a document may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Its length in bytes.
    pub max_bytes: usize,
    /// How many arrays and objects may lie in one another.
    pub max_depth: usize,
    /// Whether it may have a `null`.
    pub null: Null,
}

/// What a `null` in a document means to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Null {
    /// An error wherever it stands.
    Refused,
    /// A value like another: the caller's own types accept or refuse it.
    Passed,
}

/// Why a document is refused, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{fault} (line {line}, column {column})", if path.is_empty() { String::new() } else { format!("{path}: ") })]
pub struct JsonError {
    /// The place in the document, as `network.allowedDomains[3]`; empty for the document itself.
    pub path: String,
    /// What is wrong.
    pub fault: Fault,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
}

/// Checks that the bytes are one JSON value within the limits which every parser reads alike.
///
/// # Errors
/// The first fault found.
pub fn check(bytes: &[u8], limits: Limits) -> Result<(), JsonError> {
    let mut walk = Walk { path: Path::default(), null: limits.null };
    walk.document(bytes, limits).map_err(|error| {
        let (line, column) = position(bytes, error.at);
        JsonError { path: walk.path.into_text(), fault: error.fault, line, column }
    })
}

struct Walk {
    path: Path,
    null: Null,
}

impl Walk {
    fn document(&mut self, bytes: &[u8], limits: Limits) -> Result<(), ReadError> {
        if bytes.len() > limits.max_bytes {
            return Err(ReadError { fault: Fault::TooLong(limits.max_bytes), at: limits.max_bytes });
        }
        let mut reader = Reader::new(bytes, limits.max_depth)?;
        self.value(&mut reader)?;
        reader.end()
    }

    /// On an error the path stays as it is: it names the place.
    fn value<'a>(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        match reader.kind()? {
            Kind::Object => {
                let mut seen: HashSet<Cow<'a, str>> = HashSet::new();
                reader.object(|reader, key| {
                    self.path.push_key(&key);
                    if !seen.insert(key) {
                        return Err(reader.error(Fault::DuplicateKey));
                    }
                    self.value(reader)?;
                    self.path.pop();
                    Ok(())
                })
            }
            Kind::Array => {
                let mut index = 0;
                reader.array(|reader| {
                    self.path.push_index(index);
                    self.value(reader)?;
                    self.path.pop();
                    index += 1;
                    Ok(())
                })
            }
            Kind::String => reader.string().map(drop),
            Kind::Number => reader.number().map(drop),
            Kind::Bool => reader.boolean().map(drop),
            Kind::Null => {
                let refusal = reader.error(Fault::Null);
                reader.null()?;
                if self.null == Null::Refused { Err(refusal) } else { Ok(()) }
            }
        }
    }
}

fn position(bytes: &[u8], at: usize) -> (usize, usize) {
    let before = &bytes[..at.min(bytes.len())];
    let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |newline| newline + 1);
    let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
    (line, 1 + String::from_utf8_lossy(&before[line_start..]).chars().count())
}

#[cfg(test)]
mod tests;
