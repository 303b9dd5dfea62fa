use std::path::Path;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    error::{Fault, RulesError},
    nearest::nearest,
};

/// The file that is being read: knows the line of every value.
pub(super) struct Document<'d> {
    pub(super) path: &'d Path,
    text: &'d str,
}

/// A table of which every key is known.
pub(super) struct Section<'d> {
    pub(super) document: &'d Document<'d>,
    table: &'d DeTable<'d>,
    /// Where it begins, for what is missing in it.
    start: usize,
}

pub(super) type Value<'d> = Spanned<DeValue<'d>>;

impl<'d> Document<'d> {
    pub(super) fn new(path: &'d Path, text: &'d str) -> Self {
        Self { path, text }
    }

    pub(super) fn parse(&self) -> Result<Spanned<DeTable<'d>>, RulesError> {
        DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            self.fault(at, Fault::Toml(error.message().lines().collect::<Vec<_>>().join(", ")))
        })
    }

    /// An error at a byte of the text.
    pub(super) fn fault(&self, at: usize, fault: Fault) -> RulesError {
        RulesError::new(self.path, self.line(at), fault)
    }

    pub(super) fn value_fault(&self, at: &Value<'_>, key: &str, why: impl ToString) -> RulesError {
        self.fault(at.span().start, Fault::Value { key: key.into(), why: why.to_string() })
    }

    pub(super) fn kind_fault(&self, at: &Value<'_>, key: &str, wanted: &'static str) -> RulesError {
        let found = match at.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.fault(at.span().start, Fault::Kind { key: key.into(), found, wanted })
    }

    pub(super) fn unknown(
        &self,
        at: usize,
        what: &'static str,
        word: &str,
        known: &[&'static str],
    ) -> RulesError {
        let nearest = nearest(word, known);
        self.fault(at, Fault::Unknown { what, word: word.into(), nearest, known: known.join(", ").into() })
    }

    pub(super) fn line(&self, at: usize) -> usize {
        1 + self.text.as_bytes()[..at.min(self.text.len())].iter().filter(|&&byte| byte == b'\n').count()
    }
}

impl<'d> Section<'d> {
    /// A table that may have these keys and no others.
    pub(super) fn new(
        document: &'d Document<'d>,
        table: &'d DeTable<'d>,
        start: usize,
        known: &[&'static str],
    ) -> Result<Self, RulesError> {
        // The first in the file, not in the alphabet.
        let unknown = table.keys().filter(|key| !known.contains(&key.get_ref().as_ref()));
        if let Some(key) = unknown.min_by_key(|key| key.span().start) {
            return Err(document.unknown(key.span().start, "key", key.get_ref(), known));
        }
        Ok(Self { document, table, start })
    }

    pub(super) fn find(&self, key: &str) -> Option<&'d Value<'d>> {
        self.table.get(key)
    }

    /// The entries of a table whose keys are the writer's own, in the order of the file.
    pub(super) fn entries(
        document: &Document<'_>,
        key: &str,
        value: &'d Value<'d>,
    ) -> Result<Vec<(&'d str, &'d Value<'d>)>, RulesError> {
        let DeValue::Table(table) = value.get_ref() else {
            return Err(document.kind_fault(value, key, "a table such as { name = \"value\" }"));
        };
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        Ok(entries.into_iter().map(|(key, value)| (key.get_ref().as_ref(), value)).collect())
    }

    pub(super) fn missing(&self, what: &'static str) -> RulesError {
        self.document.fault(self.start, Fault::Missing(what))
    }

    pub(super) fn refuse(&self, action: &'static str, keys: &[&'static str]) -> Result<(), RulesError> {
        match keys.iter().find_map(|&key| Some((key, self.table.get_key_value(key)?))) {
            Some((key, (at, _))) => Err(self.document.fault(at.span().start, Fault::Stray { key, action })),
            None => Ok(()),
        }
    }

    pub(super) fn line(&self) -> usize {
        self.document.line(self.start)
    }
}
