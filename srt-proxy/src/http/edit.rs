//! Which fields go on, and what the decider changes about them. Nothing is copied: the results are
//! iterators over the received fields and the edits.

use srt_shared::{
    field_name::{FieldName, FieldNameSet, is_credential, is_framing, is_same},
    secret::Secret,
};
use thiserror::Error;

use super::{
    connection::ConnectionOptions,
    fields::{Field, Fields},
    name::{is_hop_by_hop, is_ours},
};

/// Why a field cannot be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EditError {
    /// The field belongs to the framing or routing of the message.
    #[error("the field is part of the framing")]
    Framing,
    /// The field carries a credential and can only be set as one.
    #[error("the field carries a credential")]
    Credential,
    /// The value has a control character other than tab.
    #[error("the field value has a control character")]
    Value,
}

/// What is changed about the fields of one request on its way upstream.
///
/// Without `Debug`: values that are set may be secrets.
#[derive(Default)]
pub struct Edits<'a> {
    remove: Vec<&'a FieldName>,
    set: Vec<(&'a FieldName, Vec<u8>)>,
    authorization: Option<Secret>,
}

impl<'a> Edits<'a> {
    /// Removes every spelling of `name` that the client sent. For a framing field this changes nothing: the
    /// client's is never forwarded, and ours always written.
    pub fn remove(&mut self, name: &'a FieldName) {
        self.remove.push(name);
    }

    /// Removes every spelling of `name` that the client sent and adds a field with `value`. To set several
    /// values, call it for each.
    pub fn set(&mut self, name: &'a FieldName, value: Vec<u8>) -> Result<(), EditError> {
        if is_framing(name.as_str().as_bytes()) {
            return Err(EditError::Framing);
        }
        if is_credential(name.as_str().as_bytes()) {
            return Err(EditError::Credential);
        }
        check_value(&value)?;
        self.set.push((name, value));
        Ok(())
    }

    /// Removes every credential that the client sent and adds `Authorization` with `value`.
    pub fn authorize(&mut self, value: Secret) -> Result<(), EditError> {
        check_value(value.expose())?;
        self.authorization = Some(value);
        Ok(())
    }

    /// Whether anything will be sent that the client did not send.
    pub fn adds_fields(&self) -> bool {
        !self.set.is_empty() || self.authorization.is_some()
    }

    fn drops(&self, name: &[u8]) -> bool {
        self.remove.iter().any(|removed| removed.is_same(name))
            || self.set.iter().any(|(set, _)| set.is_same(name))
            || (self.authorization.is_some() && is_credential(name))
    }

    fn added(&self) -> impl Iterator<Item = Field<'_>> + Clone {
        let set = self.set.iter().map(|(name, value)| Field { name: name.as_str().as_bytes(), value });
        let authorization = self.authorization.iter();
        set.chain(authorization.map(|value| Field { name: b"Authorization", value: value.expose() }))
    }
}

/// A value that cannot end its own line. The decider link refuses such values too; this is where they would
/// become bytes.
fn check_value(value: &[u8]) -> Result<(), EditError> {
    if value.iter().any(|&byte| byte.is_ascii_control() && byte != b'\t') {
        return Err(EditError::Value);
    }
    Ok(())
}

/// The fields of a request that go upstream, `Host` and framing apart, in the order received; behind them
/// what is set, in the order of the calls, and the credential last.
///
/// What goes is decided by the folded name: an upstream may take `transfer_encoding` for the real thing. Set
/// fields come after the client's were dropped, so no `Connection` option can take them away.
pub fn forwarded_request_fields<'a>(
    fields: &'a Fields,
    connection: &'a ConnectionOptions<'a>,
    edits: &'a Edits<'a>,
) -> impl Iterator<Item = Field<'a>> + Clone {
    let kept = fields.iter().filter(|Field { name, .. }| {
        !is_hop_by_hop(name) && !is_framing(name) && !connection.names(name) && !edits.drops(name)
    });
    kept.chain(edits.added())
}

/// The fields of a response that go back to the client, framing apart, in the order received; none of the
/// names in `strip`.
///
/// `Trailer` stays, unlike in a request: a response's trailers are passed on.
pub fn forwarded_response_fields<'a>(
    fields: &'a Fields,
    connection: &'a ConnectionOptions<'a>,
    strip: &'a FieldNameSet,
) -> impl Iterator<Item = Field<'a>> + Clone {
    fields.iter().filter(|Field { name, .. }| {
        !is_hop_by_hop(name)
            && !is_same(b"content-length", name)
            && !is_ours(name)
            && !connection.names(name)
            && !strip.contains(name)
    })
}

/// The trailer fields of a response that go back to the client; none of the names in `strip`, and none that
/// would count in the head, should the client merge them into it (RFC 9110 6.5.1).
pub fn forwarded_trailers<'a>(
    trailers: &'a Fields,
    strip: &'a FieldNameSet,
) -> impl Iterator<Item = Field<'a>> + Clone {
    trailers.iter().filter(|Field { name, .. }| {
        !is_hop_by_hop(name) && !is_framing(name) && !is_ours(name) && !strip.contains(name)
    })
}

#[cfg(test)]
mod tests;
