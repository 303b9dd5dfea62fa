//! The head of a request as it goes upstream: what the client sent, with the decider's edits.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use srt_shared::decider::{Cred, Edits};
use srt_shared::secret::Secret;
use tokio::io::{AsyncRead, AsyncWrite};

use super::refuse::Refusal;
use super::target::Target;
use crate::http::{
    self, BodyFraming, ConnectionOptions, FramingField, PathAndQuery, RequestHead, forwarded_request_fields,
    write_request_head,
};
use crate::wire::Wire;

/// Everything a request head is written from. It may be written twice, when a kept connection proves dead.
pub struct Outgoing<'a> {
    head: &'a RequestHead,
    authority: &'a str,
    resource: &'a PathAndQuery,
    framing: FramingField,
    connection: ConnectionOptions<'a>,
    edits: http::Edits<'a>,
}

impl<'a> Outgoing<'a> {
    /// Checks that all of it can be sent.
    pub fn new(
        head: &'a RequestHead,
        authority: &'a str,
        target: &Target,
        resource: &'a PathAndQuery,
        framing: BodyFraming,
        connection: ConnectionOptions<'a>,
        edits: &'a Edits,
    ) -> Result<Self, Refusal> {
        let framing = match framing {
            BodyFraming::Length(length) => FramingField::Length(length),
            BodyFraming::Chunked => FramingField::Chunked,
            // A request is never delimited by the end of the connection.
            BodyFraming::None | BodyFraming::UntilClose => FramingField::Absent,
        };
        Ok(Self { head, authority, resource, framing, connection, edits: prepare(edits, target)? })
    }

    /// Whether anything would be sent that the client did not send.
    pub fn has_sets(&self) -> bool {
        self.edits.adds_fields()
    }

    /// Whether the client asked to keep its connection.
    pub fn client_persists(&self) -> bool {
        self.connection.persists(self.head.version())
    }

    /// Puts the head into the output of an upstream connection.
    pub fn write<S: AsyncRead + AsyncWrite + Unpin>(&self, wire: &mut Wire<S>) {
        let fields = forwarded_request_fields(self.head.fields(), &self.connection, &self.edits);
        let out = wire.output().front();
        write_request_head(out, self.head.method(), self.resource, self.authority, fields, self.framing);
    }
}

/// The decider's edits in the bytes of the wire.
fn prepare<'a>(edits: &'a Edits, target: &Target) -> Result<http::Edits<'a>, Refusal> {
    let mut prepared = http::Edits::default();
    for name in edits.remove() {
        prepared.remove(name);
    }
    for field in edits.set() {
        for value in &field.values {
            let value = value.to_latin1().ok_or(Refusal::UnsendableHeader)?;
            prepared.set(&field.name, value).map_err(|_| Refusal::UnsendableHeader)?;
        }
    }
    if let Some(cred) = edits.cred() {
        prepared.authorize(authorization(cred, target)).map_err(|_| Refusal::UnsendableHeader)?;
    }
    Ok(prepared)
}

/// GitHub's git endpoint takes tokens as the password of a user by this name, and not as a bearer.
fn authorization(cred: &Cred, target: &Target) -> Secret {
    let secret = cred.credential().expose();
    let is_github =
        cred.class() == "github" && target.host().name().is_some_and(|n| n.as_str() == "github.com");
    let mut value = Vec::with_capacity(secret.len() * 2 + 32);
    if is_github {
        let pair = Secret::from([b"x-access-token:", secret].concat());
        value.extend_from_slice(b"Basic ");
        value.extend_from_slice(BASE64.encode(pair.expose()).as_bytes());
    } else {
        value.extend_from_slice(b"Bearer ");
        value.extend_from_slice(secret);
    }
    value.into()
}
