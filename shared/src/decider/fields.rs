//! What the readers of both directions share: each field once, of the agreed kind, and not empty.

use std::borrow::Cow;

use super::error::ProtocolError;
use crate::{field_name::FieldName, json::Reader, limits::MAX_ID};

/// How much of an unknown key an error shows.
const SHOWN_KEY: usize = 40;

/// Keeps the value of a key, which may be there only once.
pub(super) fn put<T>(slot: &mut Option<T>, key: &'static str, value: T) -> Result<(), ProtocolError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(ProtocolError::RepeatedKey(key)),
    }
}

/// The value of a key that must be there.
pub(super) fn required<T>(slot: Option<T>, key: &'static str) -> Result<T, ProtocolError> {
    slot.ok_or(ProtocolError::MissingKey(key))
}

/// Refuses the first of these keys that is there.
pub(super) fn refuse_stray<const N: usize>(keys: [(&'static str, bool); N]) -> Result<(), ProtocolError> {
    match keys.into_iter().find(|(_, is_there)| *is_there) {
        Some((key, _)) => Err(ProtocolError::StrayKey(key)),
        None => Ok(()),
    }
}

pub(super) fn unknown_key(key: &str) -> ProtocolError {
    ProtocolError::UnknownKey(key.chars().take(SHOWN_KEY).collect())
}

pub(super) fn parse_id(reader: &mut Reader<'_>) -> Result<u64, ProtocolError> {
    let wanted = ProtocolError::Value { key: "id", wanted: "an integer from 1 to 2^53 - 1" };
    match u64::try_from(reader.integer()?) {
        Ok(id) if (1..=MAX_ID).contains(&id) => Ok(id),
        _ => Err(wanted),
    }
}

pub(super) fn check_proto(proto: Option<i64>) -> Result<(), ProtocolError> {
    match required(proto, "proto")? {
        1 => Ok(()),
        _ => Err(ProtocolError::Value { key: "proto", wanted: "1" }),
    }
}

pub(super) fn parse_name(key: &'static str, name: &str) -> Result<FieldName, ProtocolError> {
    FieldName::parse(name).map_err(|source| {
        let name = name.chars().take(SHOWN_KEY).collect();
        ProtocolError::Name { key, name, source }
    })
}

pub(super) fn parse_texts<'a>(reader: &mut Reader<'a>) -> Result<Vec<Cow<'a, str>>, ProtocolError> {
    let mut texts = Vec::new();
    reader.array(|reader| {
        texts.push(reader.string()?);
        Ok::<_, ProtocolError>(())
    })?;
    Ok(texts)
}
