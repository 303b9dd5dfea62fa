//! Conditions on the fields of a JSON body.

use serde_json::{Map, Value};
use thiserror::Error;

use crate::{reach::Reach, text::TextPattern};

/// What one field of the body must be like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonCondition {
    /// The keys that lead to it; a number is an index into an array.
    pub path: Vec<Box<str>>,
    /// What must be true of it.
    pub wanted: JsonWanted,
}

/// What must be true of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonWanted {
    /// It is there, whatever it is, `null` excepted.
    Present,
    /// It is not there.
    Absent,
    /// It is one of these.
    OneOf(Vec<Scalar>),
    /// It is an integer within these bounds, both included.
    Between(Option<i64>, Option<i64>),
}

/// A value to compare with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scalar {
    /// A string.
    Text(TextPattern),
    /// An integer.
    Integer(i64),
    /// `true` or `false`.
    Bool(bool),
}

/// Why a body does not match. Values are left out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JsonMismatch {
    /// The way to the field ends early.
    #[error("the body has no field {0:?}")]
    Missing(String),
    /// It should not be there.
    #[error("the body has a field {0:?}")]
    Present(String),
    /// A key in another letter case, alone or beside the right one: some parsers take it for the same.
    #[error("the body has {0:?} in another letter case")]
    LetterCase(String),
    /// Another value.
    #[error("the field {0:?} of the body has another value")]
    Value(String),
    /// One too many.
    #[error("the body has a field that the rule does not name")]
    Other,
    /// An array, a string, …
    #[error("the body is no object")]
    NoObject,
}

impl JsonCondition {
    /// Checks a body.
    ///
    /// # Errors
    /// [`JsonMismatch`]: what is missing.
    pub fn check(&self, body: &Value, reach: Reach) -> Result<(), JsonMismatch> {
        match reach {
            Reach::Narrow => self.check_narrowly(body),
            Reach::Wide if self.wanted == JsonWanted::Absent => {
                // Denied is what lacks the field, so whatever is not surely there.
                let present = Self { path: self.path.clone(), wanted: JsonWanted::Present };
                match present.check_narrowly(body) {
                    Ok(()) => Err(JsonMismatch::Present(self.name())),
                    Err(_) => Ok(()),
                }
            }
            Reach::Wide if self.is_somewhere(body, &self.path) => Ok(()),
            Reach::Wide => Err(JsonMismatch::Missing(self.name())),
        }
    }

    fn check_narrowly(&self, body: &Value) -> Result<(), JsonMismatch> {
        let mut value = body;
        for (at, key) in self.path.iter().enumerate() {
            let next = match value {
                Value::Object(map) => only_key(map, key, || self.path[..=at].join("."))?,
                Value::Array(items) => key.parse::<usize>().ok().and_then(|index| items.get(index)),
                _ => None,
            };
            match next {
                Some(next) => value = next,
                None if self.wanted == JsonWanted::Absent => return Ok(()),
                None => return Err(JsonMismatch::Missing(self.name())),
            }
        }
        let fits = match &self.wanted {
            JsonWanted::Absent => return Err(JsonMismatch::Present(self.name())),
            JsonWanted::Present => !value.is_null(),
            JsonWanted::OneOf(scalars) => scalars.iter().any(|scalar| scalar.is(value)),
            JsonWanted::Between(min, max) => {
                // `10.0` and `1e1` are no integers for every parser.
                let within =
                    |number: i64| min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max);
                value.as_i64().is_some_and(within)
            }
        };
        if fits { Ok(()) } else { Err(JsonMismatch::Value(self.name())) }
    }

    /// Whether any reading of the body has the field with such a value.
    fn is_somewhere(&self, value: &Value, path: &[Box<str>]) -> bool {
        match (path, value) {
            ([], _) => self.may_be(value),
            ([key, rest @ ..], Value::Object(map)) => {
                map.iter().any(|(other, value)| fold(other) == fold(key) && self.is_somewhere(value, rest))
            }
            ([key, rest @ ..], Value::Array(items)) => {
                let item = key.parse::<usize>().ok().and_then(|index| items.get(index));
                item.is_some_and(|item| self.is_somewhere(item, rest))
            }
            _ => false,
        }
    }

    /// A value of another kind may be converted into a fitting one by the server.
    fn may_be(&self, value: &Value) -> bool {
        match &self.wanted {
            JsonWanted::Present | JsonWanted::Absent => true,
            JsonWanted::OneOf(scalars) => scalars.iter().any(|scalar| scalar.may_be(value)),
            JsonWanted::Between(min, max) => match value.as_i64() {
                Some(number) => min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max),
                None => !value.is_null(),
            },
        }
    }

    fn name(&self) -> String {
        self.path.join(".")
    }
}

impl Scalar {
    fn is(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Text(pattern), Value::String(text)) => pattern.matches(text, Reach::Narrow),
            (Self::Integer(own), value) => value.as_i64() == Some(*own),
            (Self::Bool(own), Value::Bool(other)) => own == other,
            _ => false,
        }
    }

    fn may_be(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Text(pattern), Value::String(text)) => pattern.matches(text, Reach::Wide),
            (Self::Integer(own), Value::Number(_)) if value.as_i64().is_some() => {
                value.as_i64() == Some(*own)
            }
            (Self::Bool(own), Value::Bool(other)) => own == other,
            (_, Value::Null) => false,
            _ => true,
        }
    }
}

/// Checks that an object has no keys but these, spelled so.
///
/// # Errors
/// [`JsonMismatch::Other`], [`JsonMismatch::NoObject`].
pub fn check_only(body: &Value, keys: &[Box<str>]) -> Result<(), JsonMismatch> {
    let Value::Object(map) = body else { return Err(JsonMismatch::NoObject) };
    let all_named = map.keys().all(|key| keys.iter().any(|own| **own == **key));
    if all_named { Ok(()) } else { Err(JsonMismatch::Other) }
}

/// The value of a key, unless a key that some parser takes for the same is there too.
pub(crate) fn only_key<'v>(
    map: &'v Map<String, Value>,
    key: &str,
    name: impl Fn() -> String,
) -> Result<Option<&'v Value>, JsonMismatch> {
    let folded = fold(key);
    if map.keys().any(|other| other != key && fold(other) == folded) {
        return Err(JsonMismatch::LetterCase(name()));
    }
    Ok(map.get(key))
}

/// Letter case as Unicode folds it: Go's decoder takes the Kelvin sign for a `k` and the long s for an `s`.
fn fold(key: &str) -> String {
    key.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, wanted: JsonWanted, body: &str, reach: Reach) -> bool {
        let path = path.split('.').map(Into::into).collect();
        JsonCondition { path, wanted }.check(&serde_json::from_str(body).unwrap(), reach).is_ok()
    }

    fn text(pattern: &str) -> JsonWanted {
        JsonWanted::OneOf(vec![Scalar::Text(TextPattern::new(pattern))])
    }

    #[test]
    fn narrow_wants_the_field_in_its_one_spelling() {
        for (path, wanted, body, matches) in [
            ("model", text("small-*"), r#"{"model":"small-1"}"#, true),
            ("model", text("small-*"), r#"{"model":"large-1"}"#, false),
            ("model", text("small-*"), r#"{"model":["small-1"]}"#, false),
            ("model", text("small-*"), r#"{"model":null}"#, false),
            ("model", text("small-*"), r#"{"Model":"small-1"}"#, false),
            ("model", text("small-*"), r#"{"model":"small-1","MODEL":"large-1"}"#, false),
            ("task", text("x"), "{\"task\":\"x\",\"tas\u{212a}\":\"y\"}", false),
            ("task", text("x"), "{\"task\":\"x\",\"ta\u{17f}k\":\"y\"}", false),
            ("a.b.1", text("x"), r#"{"a":{"b":["y","x"]}}"#, true),
            ("a.b.1", text("x"), r#"{"a":{"b":["y"]}}"#, false),
            ("a.b", text("x"), r#"[{"a":{"b":"x"}}]"#, false),
            ("n", JsonWanted::Between(None, Some(10)), r#"{"n":10}"#, true),
            ("n", JsonWanted::Between(None, Some(10)), r#"{"n":11}"#, false),
            ("n", JsonWanted::Between(None, Some(10)), r#"{"n":1.0}"#, false),
            ("n", JsonWanted::Between(None, Some(10)), r#"{"n":1e9}"#, false),
            ("n", JsonWanted::Between(None, Some(10)), r#"{"n":"5"}"#, false),
            ("n", JsonWanted::Between(None, Some(10)), r#"{"n":99999999999999999999}"#, false),
            ("n", JsonWanted::Between(Some(1), None), r#"{"n":-1}"#, false),
            ("n", JsonWanted::Between(None, Some(10)), r#"{}"#, false),
            ("s", JsonWanted::OneOf(vec![Scalar::Bool(false)]), r#"{"s":false}"#, true),
            ("s", JsonWanted::OneOf(vec![Scalar::Bool(false)]), r#"{"s":0}"#, false),
            ("i", JsonWanted::OneOf(vec![Scalar::Integer(3)]), r#"{"i":3}"#, true),
            ("i", JsonWanted::OneOf(vec![Scalar::Integer(3)]), r#"{"i":3.0}"#, false),
            ("a", JsonWanted::Present, r#"{"a":0}"#, true),
            ("a", JsonWanted::Present, r#"{"a":null}"#, false),
            ("a", JsonWanted::Absent, r#"{"b":0}"#, true),
            ("a", JsonWanted::Absent, r#"{"a":null}"#, false),
            ("a", JsonWanted::Absent, r#"{"A":0}"#, false),
            ("a.b", JsonWanted::Absent, r#"{"a":1}"#, true),
        ] {
            assert_eq!(check(path, wanted.clone(), body, Reach::Narrow), matches, "{path} {wanted:?} {body}");
        }
    }

    #[test]
    fn wide_takes_what_some_parser_might() {
        for (path, wanted, body, matches) in [
            ("model", text("large-*"), r#"{"model":"small-1","MODEL":"Large-1"}"#, true),
            ("model", text("large-*"), r#"{"model":["large-1"]}"#, true),
            ("model", text("large-*"), r#"{"model":"small-1"}"#, false),
            ("model", text("large-*"), r#"{}"#, false),
            ("n", JsonWanted::Between(Some(11), None), r#"{"n":"20"}"#, true),
            ("n", JsonWanted::Between(Some(11), None), r#"{"n":1e9}"#, true),
            ("n", JsonWanted::Between(Some(11), None), r#"{"n":10}"#, false),
            ("n", JsonWanted::Absent, r#"{"N":10}"#, true),
            ("n", JsonWanted::Absent, r#"{"n":null}"#, true),
            ("n", JsonWanted::Absent, r#"{"n":10}"#, false),
        ] {
            assert_eq!(check(path, wanted.clone(), body, Reach::Wide), matches, "{path} {wanted:?} {body}");
        }
    }

    #[test]
    fn only_refuses_every_other_key() {
        let keys = ["query".into(), "variables".into()];
        let check = |body: &str| check_only(&serde_json::from_str(body).unwrap(), &keys);
        assert_eq!(check(r#"{"query":1}"#), Ok(()));
        assert_eq!(check(r#"{"query":1,"Query":2}"#), Err(JsonMismatch::Other));
        assert_eq!(check(r#"[]"#), Err(JsonMismatch::NoObject));
    }
}
