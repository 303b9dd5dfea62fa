//! Which fields go on, and what the decider changes about them. Nothing is copied: the results are
//! iterators over the received fields and the decider's values.

use thiserror::Error;

use super::{
    connection::ConnectionOptions,
    fields::{Field, Fields},
    name::{is_credential, is_framing, is_hop_by_hop, is_in, is_same, is_token},
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
    /// The value has a control character other than tab.
    #[error("the field value cannot be sent")]
    Value,
}

/// What a decider changes about the fields of one request.
///
/// Without `Debug`: it holds credentials.
#[derive(Default)]
pub struct Edits<'a> {
    remove: Vec<&'a [u8]>,
    set: Vec<Field<'a>>,
    authorization: Option<Field<'a>>,
}

impl<'a> Edits<'a> {
    /// No change.
    pub fn none() -> Self {
        Self::default()
    }

    /// Removes every spelling of `name` that the client sent.
    pub fn remove(&mut self, name: &'a str) -> Result<(), EditError> {
        self.remove.push(editable(name)?);
        Ok(())
    }

    /// Removes every spelling of `name` that the client sent and adds a field with `value`. To set several
    /// values, call it for each.
    pub fn set(&mut self, name: &'a str, value: &'a [u8]) -> Result<(), EditError> {
        let name = editable(name)?;
        if is_credential(name) {
            return Err(EditError::Credential);
        }
        self.set.push(Field { name, value: sendable(value)? });
        Ok(())
    }

    /// Removes every credential that the client sent and adds `Authorization` with `value`.
    pub fn authorize(&mut self, value: &'a [u8]) -> Result<(), EditError> {
        self.authorization = Some(Field { name: b"Authorization", value: sendable(value)? });
        Ok(())
    }

    fn drops(&self, name: &[u8]) -> bool {
        self.remove.iter().any(|removed| is_same(removed, name))
            || self.set.iter().any(|set| is_same(set.name, name))
            || (self.authorization.is_some() && is_credential(name))
    }
}

/// A name that an edit may be about.
fn editable(name: &str) -> Result<&[u8], EditError> {
    let name = name.as_bytes();
    if !is_token(name) {
        Err(EditError::Name)
    } else if is_framing(name) {
        Err(EditError::Framing)
    } else {
        Ok(name)
    }
}

/// A value that cannot end its own line. The decider link refuses such values too; this is where they would
/// become bytes.
fn sendable(value: &[u8]) -> Result<&[u8], EditError> {
    if value.iter().any(|&byte| byte.is_ascii_control() && byte != b'\t') {
        return Err(EditError::Value);
    }
    Ok(value)
}

/// Names of response fields that are not passed back to the client.
#[derive(Debug, Clone, Default)]
pub struct StripList(Vec<Vec<u8>>);

impl StripList {
    /// Adds a name; it holds for every spelling.
    pub fn add(&mut self, name: &str) -> Result<(), EditError> {
        self.0.push(editable(name)?.to_owned());
        Ok(())
    }

    fn drops(&self, name: &[u8]) -> bool {
        self.0.iter().any(|stripped| is_same(stripped, name))
    }
}

/// The fields of a request that go upstream, `Host` and framing apart, in the order received; behind them
/// what the decider sets, and its credential last.
///
/// What goes is decided by the folded name: an upstream may take `transfer_encoding` for the real thing. The
/// decider's own fields come after the client's were dropped, so no `Connection` option can take them away.
pub fn forwarded_request_fields<'a>(
    fields: &'a Fields,
    connection: &'a ConnectionOptions<'a>,
    edits: &'a Edits<'a>,
) -> impl Iterator<Item = Field<'a>> + Clone {
    fields
        .iter()
        .filter(|Field { name, .. }| {
            !is_hop_by_hop(name) && !is_framing(name) && !connection.names(name) && !edits.drops(name)
        })
        .chain(edits.set.iter().copied())
        .chain(edits.authorization)
}

/// The fields of a response that go back to the client, framing apart, in the order received.
///
/// `Trailer` stays, unlike in a request: a response's trailers are passed on.
pub fn forwarded_response_fields<'a>(
    fields: &'a Fields,
    connection: &'a ConnectionOptions<'a>,
    strip: &'a StripList,
) -> impl Iterator<Item = Field<'a>> + Clone {
    fields.iter().filter(|Field { name, .. }| {
        !is_hop_by_hop(name)
            && !is_same(name, b"content-length")
            && !is_ours(name)
            && !connection.names(name)
            && !strip.drops(name)
    })
}

/// The trailer fields of a response that go back to the client: none that would count in the head, should
/// the client merge them into it (RFC 9110 6.5.1).
pub fn forwarded_trailers<'a>(
    trailers: &'a Fields,
    strip: &'a StripList,
) -> impl Iterator<Item = Field<'a>> + Clone {
    trailers.iter().filter(|Field { name, .. }| {
        !is_hop_by_hop(name) && !is_framing(name) && !is_ours(name) && !strip.drops(name)
    })
}

/// Fields by which clients know the proxy's own refusals. An upstream that sends them pretends to be us.
fn is_ours(name: &[u8]) -> bool {
    is_in(&[b"x-deny-reason", b"x-proxy-error"], name)
}

#[cfg(test)]
mod tests;
