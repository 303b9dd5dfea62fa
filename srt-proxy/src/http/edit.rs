//! Which fields go on, and what the decider changes about them. Nothing is copied: the results are
//! iterators over the received fields and the decider's values.

use thiserror::Error;

use super::{
    connection::ConnectionOptions,
    fields::{Field, Fields},
};

/// Why an edit cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EditError {
    /// The name is no token.
    #[error("the field name is not a token")]
    Name,
    /// The field belongs to the framing or routing of the message.
    #[error("the field is part of the framing")]
    Framing,
    /// The field carries a credential and can only be set as one.
    #[error("the field carries a credential")]
    Credential,
    /// The value has a control character other than tab, or white space at an end.
    #[error("the field value cannot be sent")]
    Value,
}

/// What a decider changes about the fields of one request.
///
/// Without `Debug`: it holds credentials.
#[derive(Default)]
pub struct Edits<'a> {
    remove: Vec<&'a str>,
    set: Vec<Field<'a>>,
    authorization: Option<&'a [u8]>,
}

impl<'a> Edits<'a> {
    /// Removes every spelling of `name` that the client sent.
    pub fn remove(&mut self, name: &'a str) -> Result<(), EditError> {
        todo!()
    }

    /// Removes every spelling of `name` that the client sent and adds a field with `value`; to set several
    /// values, call it for each.
    pub fn set(&mut self, name: &'a str, value: &'a [u8]) -> Result<(), EditError> {
        todo!()
    }

    /// Removes every credential the client sent and adds `Authorization` with `value`.
    pub fn authorize(&mut self, value: &'a [u8]) -> Result<(), EditError> {
        todo!()
    }
}

/// Names of response fields that are not passed back to the client.
#[derive(Debug, Clone, Default)]
pub struct StripList(Vec<Vec<u8>>);

impl StripList {
    /// Adds a name; it holds for every spelling.
    pub fn add(&mut self, name: &str) -> Result<(), EditError> {
        todo!()
    }
}

/// The fields of a request that go upstream, `Host` and framing apart, in the order received; behind them
/// what the decider sets, and its credential last.
pub fn forwarded_request_fields<'a>(
    fields: &'a Fields,
    connection: &'a ConnectionOptions<'a>,
    edits: &'a Edits<'a>,
) -> impl Iterator<Item = Field<'a>> + Clone {
    fields.iter()
}

/// The fields of a response that go back to the client, framing apart, in the order received.
pub fn forwarded_response_fields<'a>(
    fields: &'a Fields,
    connection: &'a ConnectionOptions<'a>,
    strip: &'a StripList,
) -> impl Iterator<Item = Field<'a>> + Clone {
    fields.iter()
}

/// The trailer fields of a response that go back to the client.
pub fn forwarded_trailers<'a>(
    trailers: &'a Fields,
    strip: &'a StripList,
) -> impl Iterator<Item = Field<'a>> + Clone {
    trailers.iter()
}
