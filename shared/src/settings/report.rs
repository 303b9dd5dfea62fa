use std::fmt;

/// One thing that is wrong with a settings document, or that has no effect in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The place in the document, as `network.allowedDomains[3]`; empty for the document itself.
    pub path: String,
    /// What is wrong there, and what was expected.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.text) } else { write!(f, "{}: {}", self.path, self.text) }
    }
}

/// What reading a document has found so far. Reading goes on behind an error, so that all are told at once.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) errors: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
}

impl Report {
    pub(super) fn error(&mut self, place: &Place, text: impl Into<String>) {
        self.errors.push(place.problem(text));
    }

    pub(super) fn warn(&mut self, place: &Place, text: impl Into<String>) {
        self.warnings.push(place.problem(text));
    }
}

/// A place in a document, in the spelling of [`Problem::path`].
#[derive(Debug, Default, Clone)]
pub(super) struct Place(String);

impl Place {
    pub(super) fn key(&self, key: &str) -> Self {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$');
        if key.is_empty() || !key.chars().all(plain) {
            Self(format!("{}[{key:?}]", self.0))
        } else if self.0.is_empty() {
            Self(key.into())
        } else {
            Self(format!("{}.{key}", self.0))
        }
    }

    pub(super) fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    fn problem(&self, text: impl Into<String>) -> Problem {
        Problem { path: self.0.clone(), text: text.into() }
    }
}
