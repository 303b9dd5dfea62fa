//! Values of the file as what they have to be.

use toml::de::DeValue;

use super::{
    document::{Document, Value},
    error::RulesError,
};

pub(super) fn text<'d>(
    document: &Document<'_>,
    key: &str,
    value: &'d Value<'d>,
) -> Result<&'d str, RulesError> {
    value.get_ref().as_str().ok_or_else(|| document.kind_fault(value, key, "a string"))
}

/// One value, or a list of at least one.
pub(super) fn one_or_more<'d>(
    document: &Document<'_>,
    key: &str,
    value: &'d Value<'d>,
) -> Result<Vec<&'d Value<'d>>, RulesError> {
    match value.get_ref() {
        DeValue::Array(list) if list.is_empty() => Err(document.value_fault(
            value,
            key,
            "the list is empty: leave the key out, or say what it is for",
        )),
        DeValue::Array(list) => Ok(list.iter().collect()),
        _ => Ok(vec![value]),
    }
}

/// A string, or a list of strings, each read by `parse`.
pub(super) fn texts<'d, T, E: ToString>(
    document: &Document<'_>,
    key: &str,
    value: &'d Value<'d>,
    parse: impl Fn(&'d str) -> Result<T, E>,
) -> Result<Vec<T>, RulesError> {
    one_or_more(document, key, value)?
        .into_iter()
        .map(|value| {
            let Some(text) = value.get_ref().as_str() else {
                return Err(document.kind_fault(value, key, "a string, or a list of strings"));
            };
            parse(text).map_err(|why| document.value_fault(value, key, why.to_string()))
        })
        .collect()
}

pub(super) fn integer(document: &Document<'_>, key: &str, value: &Value<'_>) -> Result<i64, RulesError> {
    let Some(integer) = value.get_ref().as_integer() else {
        return Err(document.kind_fault(value, key, "an integer"));
    };
    i64::from_str_radix(integer.as_str(), integer.radix())
        .map_err(|_| document.value_fault(value, key, "the number is too large"))
}

/// An integer that fits, for a key whose type is narrower.
pub(super) fn small<T: TryFrom<i64>>(
    document: &Document<'_>,
    key: &str,
    value: &Value<'_>,
    wanted: &str,
) -> Result<T, RulesError> {
    T::try_from(integer(document, key, value)?)
        .map_err(|_| document.value_fault(value, key, format!("expected {wanted}")))
}

pub(super) fn boolean(document: &Document<'_>, key: &str, value: &Value<'_>) -> Result<bool, RulesError> {
    value.get_ref().as_bool().ok_or_else(|| document.kind_fault(value, key, "true or false"))
}
