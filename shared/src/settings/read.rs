//! Readers of JSON values that report every fault with its place and go on.
//!
//! `serde` stops at the first fault, takes `null` for an absent key and cannot tell a typo from a key of a
//! newer release; a settings file needs all three otherwise.

use std::{collections::BTreeMap, fmt::Display};

use serde_json::{Map, Value};

use super::{
    report::{Place, Report},
    spelling,
};

/// Reads one value; `None` when it was wrong, which is then in the report.
pub(super) trait Reader<T>: Fn(&Value, &Place, &mut Report) -> Option<T> {}

impl<T, F: Fn(&Value, &Place, &mut Report) -> Option<T>> Reader<T> for F {}

/// What becomes of a key that nobody asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    /// A warning, so that files written for newer releases keep working; an error where it looks like a typo.
    Warned,
    /// An error: a key that says how a secret is kept must not go unheard.
    Refused,
    /// Nothing: the reference accepts any key in a part that only other platforms read.
    Ignored,
}

/// The keys of one object while they are read.
pub(super) struct Object<'a> {
    map: &'a Map<String, Value>,
    place: &'a Place,
    report: &'a mut Report,
    known: Vec<&'static str>,
}

impl<'a> Object<'a> {
    pub(super) fn open(value: &'a Value, place: &'a Place, report: &'a mut Report) -> Option<Self> {
        match value {
            Value::Object(map) => Some(Self { map, place, report, known: Vec::new() }),
            other => wrong(other, "an object", place, report),
        }
    }

    pub(super) fn optional<T>(&mut self, key: &'static str, reader: impl Reader<T>) -> Option<T> {
        self.known.push(key);
        let value = self.map.get(key)?;
        reader(value, &self.place.key(key), self.report)
    }

    pub(super) fn required<T>(&mut self, key: &'static str, reader: impl Reader<T>) -> Option<T> {
        if !self.map.contains_key(key) {
            self.report.error(&self.place.key(key), "missing; the key is required");
        }
        self.optional(key, reader)
    }

    /// Whether the key is there, whatever its value.
    pub(super) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// Reports a fault of the object as a whole.
    pub(super) fn error(&mut self, text: impl Into<String>) {
        self.report.error(self.place, text);
    }

    /// Reports a fault of the value of one key.
    pub(super) fn error_at(&mut self, key: &str, text: impl Into<String>) {
        self.report.error(&self.place.key(key), text);
    }

    /// Reports that an entry of a map under `key` has no effect.
    pub(super) fn warn_at(&mut self, key: &str, entry: &str, text: impl Into<String>) {
        self.report.warn(&self.place.key(key).key(entry), text);
    }

    /// Judges the keys that nobody asked for.
    pub(super) fn finish(self, unknown: Unknown) {
        if unknown == Unknown::Ignored {
            return;
        }
        for key in self.map.keys().filter(|key| !self.known.contains(&key.as_str())) {
            let place = self.place.key(key);
            if let Some(meant) = spelling::nearest(key, &self.known) {
                self.report.error(&place, format!("unknown key; `{meant}` is probably meant"));
            } else if unknown == Unknown::Refused {
                self.report.error(&place, format!("unknown key; known are {}", self.known.join(", ")));
            } else {
                self.report.warn(&place, "not known to this release and has no effect");
            }
        }
    }
}

/// `true` or `false`.
pub(super) fn boolean(value: &Value, place: &Place, report: &mut Report) -> Option<bool> {
    value.as_bool().or_else(|| wrong(value, "true or false", place, report))
}

/// Any string.
pub(super) fn text(value: &Value, place: &Place, report: &mut Report) -> Option<String> {
    match value.as_str() {
        Some(text) => Some(text.into()),
        None => wrong(value, "a string", place, report),
    }
}

/// A string with something in it.
pub(super) fn non_empty(value: &Value, place: &Place, report: &mut Report) -> Option<String> {
    let text = text(value, place, report)?;
    if text.is_empty() {
        report.error(place, "must not be empty");
        return None;
    }
    Some(text)
}

/// An absolute path.
pub(super) fn absolute_path(value: &Value, place: &Place, report: &mut Report) -> Option<String> {
    let text = non_empty(value, place, report)?;
    if !text.starts_with('/') {
        report.error(place, format!("expected an absolute path, found {text:?}"));
        return None;
    }
    Some(text)
}

/// A whole number from `min` to `max`. `3.0` is one, since JavaScript, which writes many of these files, cannot
/// tell it from `3`.
pub(super) fn number(min: u32, max: u32) -> impl Reader<u32> {
    move |value: &Value, place: &Place, report: &mut Report| {
        let wanted = || format!("a whole number from {min} to {max}");
        let Some(number) = value.as_f64() else {
            return wrong(value, &wanted(), place, report);
        };
        if number.fract() != 0.0 || number < min.into() || number > max.into() {
            report.error(place, format!("expected {}, found {value}", wanted()));
            return None;
        }
        // Exact: between two u32 and without a fraction.
        Some(number as u32)
    }
}

/// A string that `parse` understands.
pub(super) fn parsed<T, E: Display>(parse: impl Fn(&str) -> Result<T, E>) -> impl Reader<T> {
    move |value: &Value, place: &Place, report: &mut Report| {
        let Some(text) = value.as_str() else {
            return wrong(value, "a string", place, report);
        };
        parse(text).map_err(|e| report.error(place, format!("{e}, found {text:?}"))).ok()
    }
}

/// As [`parsed`], for text that may hold a password: the report does not repeat it.
pub(super) fn parsed_secret<T, E: Display>(parse: impl Fn(&str) -> Result<T, E>) -> impl Reader<T> {
    move |value: &Value, place: &Place, report: &mut Report| {
        let Some(text) = value.as_str() else {
            return wrong(value, "a string", place, report);
        };
        parse(text).map_err(|e| report.error(place, e.to_string())).ok()
    }
}

/// A list; its faulty elements are left out and reported.
pub(super) fn list<T>(element: impl Reader<T>) -> impl Reader<Vec<T>> {
    move |value: &Value, place: &Place, report: &mut Report| match value {
        Value::Array(values) => Some(
            values
                .iter()
                .enumerate()
                .filter_map(|(i, value)| element(value, &place.index(i), report))
                .collect(),
        ),
        other => wrong(other, "a list", place, report),
    }
}

/// An object with keys of the user's own.
pub(super) fn map<T>(element: impl Reader<T>) -> impl Reader<BTreeMap<String, T>> {
    move |value: &Value, place: &Place, report: &mut Report| match value {
        Value::Object(map) => Some(
            map.iter()
                .filter_map(|(key, value)| Some((key.clone(), element(value, &place.key(key), report)?)))
                .collect(),
        ),
        other => wrong(other, "an object", place, report),
    }
}

/// Reports that another kind of value was expected.
pub(super) fn wrong<T>(found: &Value, expected: &str, place: &Place, report: &mut Report) -> Option<T> {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    report.error(place, format!("expected {expected}, found {found}"));
    None
}
