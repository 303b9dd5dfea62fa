use std::borrow::Cow;

use super::{
    edits::{Cred, Edits, EditsError, FieldValue, SetField},
    error::ProtocolError,
    fields::{check_proto, parse_id, parse_name, parse_texts, put, refuse_stray, required, unknown_key},
    hello::Hello,
    verdict::{Decision, Denial, DenialError, NeedBody, Verdict},
};
use crate::{
    field_name::FieldName,
    json::Reader,
    limits::{MAX_FIELD_VALUES, MAX_FRAME, MAX_MESSAGE_DEPTH},
};

/// What a decider sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromDecider {
    /// Once, first.
    Hello(Hello),
    /// The answer to a request.
    Verdict(Verdict),
}

/// Reads the payload of a frame from a decider, in one pass and without a tree.
///
/// # Errors
/// [`ProtocolError`]: the link must end.
pub fn parse_from_decider(payload: &[u8]) -> Result<FromDecider, ProtocolError> {
    if payload.len() > MAX_FRAME {
        return Err(ProtocolError::TooLong);
    }
    let mut reader = Reader::new(payload, MAX_MESSAGE_DEPTH)?;
    let mut message = Message::default();
    reader.object(|reader, key| message.member(reader, &key))?;
    reader.end()?;
    match required(message.t.take(), "t")?.as_ref() {
        "verdict" => message.into_verdict().map(FromDecider::Verdict),
        "hello" => message.into_hello().map(FromDecider::Hello),
        _ => Err(ProtocolError::Value { key: "t", wanted: "hello or verdict" }),
    }
}

/// Every field of either message, since `t` need not come first.
#[derive(Default)]
struct Message<'a> {
    t: Option<Cow<'a, str>>,
    proto: Option<i64>,
    allowed: Option<Vec<Cow<'a, str>>>,
    denied: Option<Vec<Cow<'a, str>>>,
    id: Option<u64>,
    action: Option<Cow<'a, str>>,
    set: Option<Vec<SetField>>,
    remove: Option<Vec<FieldName>>,
    cred: Option<Cow<'a, str>>,
    credential: Option<Cow<'a, str>>,
    status: Option<i64>,
    reason: Option<Cow<'a, str>>,
    max: Option<i64>,
}

impl<'a> Message<'a> {
    fn member(&mut self, reader: &mut Reader<'a>, key: &str) -> Result<(), ProtocolError> {
        match key {
            "t" => put(&mut self.t, "t", reader.string()?),
            "id" => put(&mut self.id, "id", parse_id(reader)?),
            "action" => put(&mut self.action, "action", reader.string()?),
            "setHeaders" => put(&mut self.set, "setHeaders", parse_set(reader)?),
            "removeHeaders" => put(&mut self.remove, "removeHeaders", parse_remove(reader)?),
            "cred" => put(&mut self.cred, "cred", reader.string()?),
            "credential" => put(&mut self.credential, "credential", reader.string()?),
            "status" => put(&mut self.status, "status", reader.integer()?),
            "reason" => put(&mut self.reason, "reason", reader.string()?),
            "max" => put(&mut self.max, "max", reader.integer()?),
            "proto" => put(&mut self.proto, "proto", reader.integer()?),
            "allowedDomains" => put(&mut self.allowed, "allowedDomains", parse_texts(reader)?),
            "deniedDomains" => put(&mut self.denied, "deniedDomains", parse_texts(reader)?),
            _ => Err(unknown_key(key)),
        }
    }

    fn into_hello(self) -> Result<Hello, ProtocolError> {
        self.refuse_allow_keys()?;
        refuse_stray([
            ("id", self.id.is_some()),
            ("action", self.action.is_some()),
            ("status", self.status.is_some()),
            ("reason", self.reason.is_some()),
            ("max", self.max.is_some()),
        ])?;
        check_proto(self.proto)?;
        Hello::new(&required(self.allowed, "allowedDomains")?, &required(self.denied, "deniedDomains")?)
    }

    fn into_verdict(mut self) -> Result<Verdict, ProtocolError> {
        refuse_stray([
            ("proto", self.proto.is_some()),
            ("allowedDomains", self.allowed.is_some()),
            ("deniedDomains", self.denied.is_some()),
        ])?;
        let id = required(self.id, "id")?;
        let decision = match required(self.action.take(), "action")?.as_ref() {
            "allow" => Decision::Allow(self.into_edits()?),
            "deny" => Decision::Deny(self.into_denial()?),
            "need_body" => Decision::NeedBody(self.into_need_body()?),
            _ => return Err(ProtocolError::Value { key: "action", wanted: "allow, deny or need_body" }),
        };
        Ok(Verdict { id, decision })
    }

    fn into_edits(self) -> Result<Edits, ProtocolError> {
        refuse_stray([
            ("status", self.status.is_some()),
            ("reason", self.reason.is_some()),
            ("max", self.max.is_some()),
        ])?;
        let cred = match (self.cred, self.credential) {
            (Some(class), Some(credential)) => Some(Cred::new(&class, credential.into_owned())?),
            (Some(_), None) => return Err(ProtocolError::MissingKey("credential")),
            (None, Some(_)) => return Err(ProtocolError::MissingKey("cred")),
            (None, None) => None,
        };
        Ok(Edits::new(self.set.unwrap_or_default(), self.remove.unwrap_or_default(), cred)?)
    }

    fn into_denial(self) -> Result<Denial, ProtocolError> {
        self.refuse_allow_keys()?;
        refuse_stray([("max", self.max.is_some())])?;
        let status = u16::try_from(required(self.status, "status")?).map_err(|_| DenialError::Status)?;
        Ok(Denial::new(status, self.reason.as_deref())?)
    }

    fn into_need_body(self) -> Result<NeedBody, ProtocolError> {
        self.refuse_allow_keys()?;
        refuse_stray([("status", self.status.is_some()), ("reason", self.reason.is_some())])?;
        u32::try_from(required(self.max, "max")?)
            .ok()
            .and_then(NeedBody::new)
            .ok_or(ProtocolError::Value { key: "max", wanted: "an integer from 1 to 33554432" })
    }

    fn refuse_allow_keys(&self) -> Result<(), ProtocolError> {
        refuse_stray([
            ("setHeaders", self.set.is_some()),
            ("removeHeaders", self.remove.is_some()),
            ("cred", self.cred.is_some()),
            ("credential", self.credential.is_some()),
        ])
    }
}

/// Stops at the limit on values, so that what is kept stays small; [`Edits::new`] judges the rest.
fn parse_set(reader: &mut Reader<'_>) -> Result<Vec<SetField>, ProtocolError> {
    let mut set = Vec::new();
    reader.object(|reader, name| {
        let name = parse_name("setHeaders", &name)?;
        let mut values = Vec::new();
        reader.array(|reader| {
            values.push(FieldValue::parse(&reader.string()?)?);
            at_most_limit(values.len())
        })?;
        set.push(SetField { name, values });
        at_most_limit(set.len())
    })?;
    if set.is_empty() { Err(ProtocolError::Empty("setHeaders")) } else { Ok(set) }
}

fn parse_remove(reader: &mut Reader<'_>) -> Result<Vec<FieldName>, ProtocolError> {
    let mut remove = Vec::new();
    reader.array(|reader| {
        remove.push(parse_name("removeHeaders", &reader.string()?)?);
        at_most_limit(remove.len())
    })?;
    if remove.is_empty() { Err(ProtocolError::Empty("removeHeaders")) } else { Ok(remove) }
}

fn at_most_limit(count: usize) -> Result<(), ProtocolError> {
    if count > MAX_FIELD_VALUES { Err(EditsError::TooMany.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
