//! Conditions on the parameters of a query.

use thiserror::Error;

use crate::{reach::Reach, text::TextPattern};

/// What the query must be like. Names and values are compared decoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueryCondition {
    /// Parameters that must be there.
    pub parameters: Vec<Parameter>,
    /// No other parameter may be there.
    pub only: bool,
}

/// A parameter that must be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: Box<str>,
    /// The values it may have.
    pub values: Vec<TextPattern>,
}

/// Why a query does not match. Values are left out: they may be secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QueryMismatch {
    /// A `%` without two digits, or not UTF-8.
    #[error("the query has an escape that not every server reads alike")]
    Malformed,
    /// Not there.
    #[error("the query has no parameter {0:?}")]
    Missing(Box<str>),
    /// More than once, or also in another letter case: servers differ in which one they take.
    #[error("the query has the parameter {0:?} more than once")]
    Repeated(Box<str>),
    /// Another value.
    #[error("the parameter {0:?} of the query has another value")]
    Value(Box<str>),
    /// One too many.
    #[error("the query has a parameter that the rule does not name")]
    Other,
}

impl QueryCondition {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty() && !self.only
    }

    /// Checks a query as the client spelled it, without the question mark.
    ///
    /// # Errors
    /// [`QueryMismatch`]: what is missing.
    pub fn check(&self, query: Option<&str>, reach: Reach) -> Result<(), QueryMismatch> {
        if self.is_empty() {
            return Ok(());
        }
        let Some(given) = parse_query(query.unwrap_or("")) else {
            return match reach {
                Reach::Narrow => Err(QueryMismatch::Malformed),
                Reach::Wide => Ok(()),
            };
        };
        for parameter in &self.parameters {
            check_parameter(parameter, &given, reach)?;
        }
        let is_named = |name: &str| self.parameters.iter().any(|own| *own.name == *name);
        if self.only && !given.iter().all(|(name, _)| is_named(name)) {
            return Err(QueryMismatch::Other);
        }
        Ok(())
    }
}

/// The parameters in their order, decoded; `None` if an escape is malformed.
pub(crate) fn parse_query(query: &str) -> Option<Vec<(String, String)>> {
    let mut parameters = Vec::new();
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        parameters.push((decode(name)?, decode(value)?));
    }
    Some(parameters)
}

fn check_parameter(
    Parameter { name, values }: &Parameter,
    given: &[(String, String)],
    reach: Reach,
) -> Result<(), QueryMismatch> {
    let mut same = given.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
    let fits = |value: &str| values.iter().any(|pattern| pattern.matches(value, reach));
    if reach == Reach::Wide {
        // A `;` separates parameters for some servers, so a value behind one counts too.
        let is_there = given.iter().flat_map(|(name, value)| resplit(name, value));
        let found =
            is_there.into_iter().any(|(other, value)| other.eq_ignore_ascii_case(name) && fits(&value));
        return if found { Ok(()) } else { Err(QueryMismatch::Missing(name.clone())) };
    }
    let Some((spelled, value)) = same.next() else { return Err(QueryMismatch::Missing(name.clone())) };
    if same.next().is_some() || **spelled != **name || given.iter().any(|(_, value)| value.contains(';')) {
        return Err(QueryMismatch::Repeated(name.clone()));
    }
    if fits(value) { Ok(()) } else { Err(QueryMismatch::Value(name.clone())) }
}

fn resplit(name: &str, value: &str) -> Vec<(String, String)> {
    format!("{name}={value}")
        .split(';')
        .map(|part| part.split_once('=').unwrap_or((part, "")))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .chain([(name.to_owned(), value.to_owned())])
        .collect()
}

fn decode(text: &str) -> Option<String> {
    let bytes: Vec<u8> = text.chars().map(u8::try_from).collect::<Result<_, _>>().ok()?;
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes.as_slice();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'+' => decoded.push(b' '),
            b'%' => {
                let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
                if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                    return None;
                }
                decoded.push(u8::from_str_radix(digits, 16).ok()?);
                rest = &tail[2..];
            }
            _ => decoded.push(byte),
        }
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(parameters: &[(&str, &str)], only: bool) -> QueryCondition {
        let parameters = parameters
            .iter()
            .map(|(name, value)| Parameter { name: (*name).into(), values: vec![TextPattern::new(value)] })
            .collect();
        QueryCondition { parameters, only }
    }

    #[test]
    fn narrow_wants_each_parameter_once() {
        let service = condition(&[("service", "git-upload-pack")], false);
        for (query, matches) in [
            ("service=git-upload-pack", true),
            ("a=b&service=git-upload-pack", true),
            ("service=git%2Dupload-pack", true),
            ("", false),
            ("service", false),
            ("service=git-receive-pack", false),
            ("Service=git-upload-pack", false),
            ("service=git-upload-pack&service=git-receive-pack", false),
            ("service=git-receive-pack&service=git-upload-pack", false),
            ("service=git-upload-pack&SERVICE=git-receive-pack", false),
            ("service=git-upload-pack&%73ervice=git-receive-pack", false),
            ("a=b;service=git-receive-pack&service=git-upload-pack", false),
            ("service=git-upload-pack&a=%zz", false),
            ("service=git-upload-pack&a=%ff", false),
        ] {
            assert_eq!(service.check(Some(query), Reach::Narrow).is_ok(), matches, "{query}");
        }
    }

    #[test]
    fn only_refuses_every_other_parameter() {
        let only = condition(&[("a", "*")], true);
        assert_eq!(only.check(Some("a=1"), Reach::Narrow), Ok(()));
        assert_eq!(only.check(Some("a=1&b=2"), Reach::Narrow), Err(QueryMismatch::Other));
        let none = condition(&[], true);
        assert_eq!(none.check(None, Reach::Narrow), Ok(()));
        assert_eq!(none.check(Some("a"), Reach::Narrow), Err(QueryMismatch::Other));
    }

    #[test]
    fn wide_finds_a_value_wherever_a_server_might() {
        let service = condition(&[("service", "git-receive-pack")], false);
        for (query, matches) in [
            ("service=git-receive-pack", true),
            ("SERVICE=Git-Receive-Pack", true),
            ("service=git-upload-pack&service=git-receive-pack", true),
            ("a=b;service=git-receive-pack", true),
            ("s%65rvice=git-receive-pack", true),
            ("%zz", true),
            ("service=git-upload-pack", false),
            ("", false),
        ] {
            assert_eq!(service.check(Some(query), Reach::Wide).is_ok(), matches, "{query}");
        }
    }
}
