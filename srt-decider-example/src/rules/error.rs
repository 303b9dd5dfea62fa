use std::{fmt, path::Path};

use thiserror::Error;

/// What is wrong with a rules file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesError {
    file: Box<str>,
    /// From 1; 0 for the file as a whole.
    line: usize,
    fault: Fault,
}

impl RulesError {
    /// An error at a line; line 0 is the file as a whole.
    pub fn new(file: &Path, line: usize, fault: Fault) -> Self {
        Self { file: file.display().to_string().into(), line, fault }
    }

    /// The line, from 1; 0 for the file as a whole.
    pub fn line(&self) -> usize {
        self.line
    }

    /// What is wrong.
    pub fn fault(&self) -> &Fault {
        &self.fault
    }
}

impl fmt::Display for RulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.fault),
            line => write!(f, "{}:{line}: {}", self.file, self.fault),
        }
    }
}

impl std::error::Error for RulesError {}

/// What is wrong with a rules file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// Not there, or not ours to read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// More than a megabyte.
    #[error("longer than {} bytes", crate::limits::MAX_RULES_FILE)]
    TooLong,
    /// Another encoding.
    #[error("not UTF-8")]
    NotUtf8,
    /// Not TOML.
    #[error("not TOML: {0}")]
    Toml(String),
    /// A key or word that does not exist.
    #[error("unknown {what} `{word}`{}", match nearest {
        Some(nearest) => format!("; did you mean `{nearest}`?"),
        None => format!("; known are {known}"),
    })]
    Unknown {
        /// A key, an action, …
        what: &'static str,
        /// What was written.
        word: Box<str>,
        /// What was likely meant.
        nearest: Option<&'static str>,
        /// What could be written.
        known: Box<str>,
    },
    /// A key that must be there.
    #[error("{0}")]
    Missing(&'static str),
    /// A value of another kind.
    #[error("`{key}` is {found}, expected {wanted}")]
    Kind {
        /// The key.
        key: Box<str>,
        /// The kind of value written.
        found: &'static str,
        /// The kind of value that belongs there.
        wanted: &'static str,
    },
    /// A value that means nothing.
    #[error("`{key}`: {why}")]
    Value {
        /// The key.
        key: Box<str>,
        /// What is wrong with the value.
        why: String,
    },
    /// A key that means nothing for this action.
    #[error("`{key}` has no meaning with action = {action:?}")]
    Stray {
        /// The key.
        key: &'static str,
        /// The action.
        action: &'static str,
    },
}
