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
    target: &'a Target,
    resource: &'a PathAndQuery,
    framing: FramingField,
    connection: ConnectionOptions<'a>,
    edits: Prepared<'a>,
}

/// The decider's edits in the bytes of the wire.
struct Prepared<'a> {
    edits: &'a Edits,
    /// Values in Latin-1, in the order of `edits.set()`.
    values: Vec<Vec<u8>>,
    authorization: Option<Secret>,
}

impl<'a> Outgoing<'a> {
    /// Checks that all of it can be sent.
    pub fn new(
        head: &'a RequestHead,
        target: &'a Target,
        resource: &'a PathAndQuery,
        framing: BodyFraming,
        edits: &'a Edits,
    ) -> Result<Self, Refusal> {
        let connection =
            ConnectionOptions::parse(head.fields()).map_err(|e| Refusal::bad_request(e.to_string()))?;
        let framing = match framing {
            BodyFraming::Length(length) => FramingField::Length(length),
            BodyFraming::Chunked => FramingField::Chunked,
            // A request is never delimited by the end of the connection.
            BodyFraming::None | BodyFraming::UntilClose => FramingField::Absent,
        };
        let values = edits.set().iter().flat_map(|field| &field.values).map(|value| value.to_latin1());
        let values = values.collect::<Option<_>>().ok_or(Refusal::UnsendableHeader)?;
        let authorization = edits.cred().map(|cred| authorization(cred, target));
        Ok(Self {
            head,
            target,
            resource,
            framing,
            connection,
            edits: Prepared { edits, values, authorization },
        })
    }

    /// Whether anything would be sent that the client did not send.
    pub fn has_sets(&self) -> bool {
        !self.edits.values.is_empty() || self.edits.authorization.is_some()
    }

    /// Puts the head into the output of an upstream connection.
    pub fn write<S: AsyncRead + AsyncWrite + Unpin>(&self, wire: &mut Wire<S>) {
        let edits = self.edits.to_http();
        let fields = forwarded_request_fields(self.head.fields(), &self.connection, &edits);
        let out = wire.output().front();
        write_request_head(
            out,
            self.head.method(),
            self.resource,
            self.target.authority(),
            fields,
            self.framing,
        );
    }
}

impl Prepared<'_> {
    fn to_http(&self) -> http::Edits<'_> {
        let mut edits = http::Edits::default();
        // The protocol's reader has checked the same rules; what it let through is valid here.
        for name in self.edits.remove() {
            let accepted = edits.remove(name.as_str());
            debug_assert!(accepted.is_ok());
        }
        let names =
            self.edits.set().iter().flat_map(|field| field.values.iter().map(|_| field.name.as_str()));
        for (name, value) in names.zip(&self.values) {
            let accepted = edits.set(name, value);
            debug_assert!(accepted.is_ok());
        }
        if let Some(value) = &self.authorization {
            let accepted = edits.authorize(value.expose());
            debug_assert!(accepted.is_ok());
        }
        edits
    }
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
