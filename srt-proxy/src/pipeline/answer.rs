//! The upstream's answer as it goes back to the client: its head, and what frames its body.

use bytes::BytesMut;
use srt_shared::field_name::FieldNameSet;

use super::is_http11;
use crate::http::{
    BodyFraming, BodyReader, ConnectionError, ConnectionOptions, FramingError, FramingField, LAST_CHUNK,
    RequestHead, ResponseHead, accepts_trailers, forwarded_response_fields, forwarded_trailers,
    response_framing, write_last_chunk, write_response_head,
};

/// A request that got its answer.
#[derive(Debug, Clone, Copy)]
pub struct Completed {
    /// Of the final answer.
    pub status: u16,
    /// Whether the client's connection may carry another request.
    pub client_persists: bool,
    /// Whether the upstream's may.
    pub upstream_persists: bool,
    /// Whether the upstream, which answered before it had all of the request's body, will still take the rest.
    pub takes_rest: bool,
    /// Whether the upstream's end of TLS was missing where nothing else ended the answer.
    pub end_is_doubtful: bool,
    /// Content from the client.
    pub bytes_in: u64,
    /// Content to the client.
    pub bytes_out: u64,
}

/// An answer whose head is out.
#[derive(Debug)]
pub struct Answering {
    /// Reads its body.
    pub reader: BodyReader,
    /// Whether the client gets it in chunks.
    pub chunked: bool,
    /// What there will be to tell once it is out.
    pub completed: Completed,
    trailers: bool,
}

/// Why an answer cannot be passed on.
#[derive(Debug, thiserror::Error)]
pub enum BadAnswer {
    /// It does not say how long it is.
    #[error(transparent)]
    Framing(#[from] FramingError),
    /// It says too much about the connection.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl Answering {
    /// Writes the final head. `sent`: the request's body is with the upstream. `asked_to_persist`: by the client, of
    /// its connection.
    pub fn begin(
        out: &mut BytesMut,
        head: &ResponseHead,
        request: &RequestHead,
        sent: bool,
        asked_to_persist: bool,
        strip: &FieldNameSet,
    ) -> Result<Self, BadAnswer> {
        let framing = response_framing(head, request.method())?;
        let theirs = ConnectionOptions::parse(head.fields())?;
        let http11 = is_http11(request);
        let (field, delimited) = match framing.body {
            BodyFraming::None => {
                (framing.declared_length.map_or(FramingField::Absent, FramingField::Length), true)
            }
            BodyFraming::Length(length) => (FramingField::Length(length), true),
            BodyFraming::Chunked if http11 => (FramingField::Chunked, true),
            BodyFraming::Chunked | BodyFraming::UntilClose => (FramingField::Absent, false),
        };
        let upstream_persists = theirs.persists(head.version()) && framing.body != BodyFraming::UntilClose;
        // An upstream that refuses a body it has not read will not read the rest of it either, nor will one that closes.
        let unread = !sent && (head.status() >= 400 || !upstream_persists);
        let client_persists = http11 && asked_to_persist && delimited && !unread;
        let fields = forwarded_response_fields(head.fields(), &theirs, strip);
        write_response_head(out, head.status(), head.reason(), fields, field, !client_persists);
        let completed = Completed {
            status: head.status(),
            client_persists,
            upstream_persists,
            // Where the end of the connection ends the answer, the client must not wait for it.
            takes_rest: !sent && !unread && delimited,
            end_is_doubtful: false,
            bytes_in: 0,
            bytes_out: 0,
        };
        Ok(Self {
            reader: BodyReader::new(framing.body),
            chunked: field == FramingField::Chunked,
            completed,
            trailers: accepts_trailers(request.fields()),
        })
    }

    /// Writes what ends the body, once it was read to its end.
    pub fn end(&mut self, out: &mut BytesMut, strip: &FieldNameSet) {
        if !self.chunked {
            return;
        }
        match self.reader.take_trailers().filter(|_| self.trailers) {
            Some(trailers) => write_last_chunk(out, forwarded_trailers(&trailers, strip)),
            None => out.extend_from_slice(LAST_CHUNK),
        }
    }
}

/// Writes the head of an interim answer.
pub fn write_interim(out: &mut BytesMut, head: &ResponseHead, strip: &FieldNameSet) -> Result<(), BadAnswer> {
    let connection = ConnectionOptions::parse(head.fields())?;
    let fields = forwarded_response_fields(head.fields(), &connection, strip);
    write_response_head(out, head.status(), head.reason(), fields, FramingField::Absent, false);
    Ok(())
}
