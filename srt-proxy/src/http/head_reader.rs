//! Cuts heads off a buffer, strictly.

use std::mem::MaybeUninit;

use bytes::{Buf, Bytes, BytesMut};
use httparse::{EMPTY_HEADER, Header, ParserConfig, Request, Response, Status};
use memchr::memchr;
use srt_shared::field_name::is_token;
use thiserror::Error;

use super::{
    fields::{FieldSpan, Fields, Span},
    head::{RequestHead, ResponseHead, Version},
    section::{Section, SectionError, SectionLimits, SectionScan},
};
use crate::limits;

const LIMITS: SectionLimits = SectionLimits {
    bytes: limits::HEAD_MAX,
    // The start line is a line too.
    lines: limits::FIELDS_MAX + 1,
};

/// Why bytes are not a head. Nothing behind them can be trusted: the connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HeadError {
    /// More than [`limits::HEAD_MAX`] bytes.
    #[error("the head is longer than {} bytes", limits::HEAD_MAX)]
    TooLong,
    /// More than [`limits::FIELDS_MAX`] field lines.
    #[error("the head has more than {} fields", limits::FIELDS_MAX)]
    TooManyFields,
    /// A line that ends in LF without CR.
    #[error("a line of the head ends in LF without CR")]
    BareLf,
    /// Not `method SP target SP version`.
    #[error("the first line is not a request line")]
    RequestLine,
    /// A method with lower-case letters. Methods are case-sensitive, but not every server knows, so that
    /// `get` is something else to a decider than to the server.
    #[error("the method has lower-case letters")]
    LowerCaseMethod,
    /// A byte above 0x7f in the request target.
    #[error("the request target has a byte that is not ASCII")]
    TargetNotAscii,
    /// Not `version SP status [SP reason]`.
    #[error("the first line is not a status line")]
    StatusLine,
    /// Any version but HTTP/1.0 and HTTP/1.1.
    #[error("the version is neither HTTP/1.0 nor HTTP/1.1")]
    Version,
    /// A field name that is no token right up to its colon; a folded line looks like this too.
    #[error("a field name is not a token followed by a colon")]
    FieldName,
    /// A control character in a field value.
    #[error("a field value has a control character")]
    FieldValue,
}

/// Reads heads from one side of a connection, one after another, from a buffer that fills up meanwhile.
///
/// It remembers how far it looked, so a head that comes byte by byte costs no more than one that comes at
/// once. Between two calls the buffer may only grow at its end. After an error the reader is of no use.
#[derive(Debug, Default)]
pub struct HeadReader {
    scan: SectionScan,
    skipped_empty_line: bool,
}

impl HeadReader {
    /// A reader at the start of a message.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a request's head off the front of `buf`; `None` when it is not complete yet.
    ///
    /// One empty line before the request line is skipped (RFC 9112 2.2): old clients send it after a body.
    /// It is taken off at once, so that an empty buffer always means that no request has begun.
    pub fn read_request(&mut self, buf: &mut BytesMut) -> Result<Option<RequestHead>, HeadError> {
        if !self.skipped_empty_line {
            match &buf[..] {
                [] | [b'\r'] => return Ok(None),
                [b'\r', b'\n', ..] => buf.advance(2),
                _ => {}
            }
            self.skipped_empty_line = true;
        }
        // Say so at once when it is TLS or noise, which may never send the end of a head.
        if buf.first().is_some_and(|&byte| !is_token(&[byte])) {
            return Err(HeadError::RequestLine);
        }
        self.cut(buf)?.map(|(bytes, section)| parse_request(bytes, section)).transpose()
    }

    /// Takes a response's head off the front of `buf`; `None` when it is not complete yet.
    ///
    /// As strict as for requests wherever it could move the end of a message. Three things that cannot are
    /// let through because servers do them: no space behind a status without reason, bytes above 0x7f in
    /// the reason, and status codes that nobody registered.
    pub fn read_response(&mut self, buf: &mut BytesMut) -> Result<Option<ResponseHead>, HeadError> {
        if buf.first().is_some_and(|&byte| byte != b'H') {
            return Err(HeadError::StatusLine);
        }
        self.cut(buf)?.map(|(bytes, section)| parse_response(bytes, section)).transpose()
    }

    fn cut(&mut self, buf: &mut BytesMut) -> Result<Option<(Bytes, Section)>, HeadError> {
        let Some(section) = self.scan.find_end(buf, LIMITS)? else { return Ok(None) };
        *self = Self::new();
        Ok(Some((buf.split_to(section.len).freeze(), section)))
    }
}

impl From<SectionError> for HeadError {
    fn from(error: SectionError) -> Self {
        match error {
            SectionError::BareLf => Self::BareLf,
            SectionError::TooLong => Self::TooLong,
            SectionError::TooManyLines => Self::TooManyFields,
        }
    }
}

fn parse_request(bytes: Bytes, section: Section) -> Result<RequestHead, HeadError> {
    let (method, target, version, spans) = with_slots(section.lines, |slots| {
        let mut request = Request::new(&mut []);
        let parsed = request.parse_with_uninit_headers(&bytes, slots);
        check(parsed, section, HeadError::RequestLine)?;
        let (Some(method), Some(target)) = (request.method, request.path) else {
            return Err(HeadError::RequestLine);
        };
        if method.bytes().any(|byte| byte.is_ascii_lowercase()) {
            return Err(HeadError::LowerCaseMethod);
        }
        if !target.is_ascii() {
            return Err(HeadError::TargetNotAscii);
        }
        let method = Span::within(&bytes, method.as_bytes());
        let target = bytes.slice_ref(target.as_bytes());
        Ok((method, target, version(request.version)?, spans(&bytes, request.headers)))
    })?;
    Ok(RequestHead { method, target, version, fields: Fields::new(bytes, spans) })
}

fn parse_response(bytes: Bytes, section: Section) -> Result<ResponseHead, HeadError> {
    let (version, status, spans) = with_slots(section.lines, |slots| {
        let mut response = Response::new(&mut []);
        let parsed = ParserConfig::default().parse_response_with_uninit_headers(&mut response, &bytes, slots);
        check(parsed, section, HeadError::StatusLine)?;
        let Some(status @ 100..) = response.code else { return Err(HeadError::StatusLine) };
        Ok((version(response.version)?, status, spans(&bytes, response.headers)))
    })?;
    // The lexer blanks a reason that has bytes above 0x7f, so it is cut out here.
    let line_end = memchr(b'\r', &bytes).expect("invariant: a complete head has a line end");
    let reason = bytes.slice("HTTP/1.1 200 ".len().min(line_end)..line_end);
    Ok(ResponseHead { version, status, reason, fields: Fields::new(bytes, spans) })
}

/// The fields of a trailer section, all of which `bytes` is.
pub(super) fn parse_trailers(bytes: Bytes, section: Section) -> Result<Fields, HeadError> {
    let mut slots = vec![EMPTY_HEADER; section.lines];
    let spans = match httparse::parse_headers(&bytes, &mut slots) {
        Ok(Status::Complete((len, headers))) if len == section.len => spans(&bytes, headers),
        Err(httparse::Error::HeaderValue) => return Err(HeadError::FieldValue),
        _ => return Err(HeadError::FieldName),
    };
    Ok(Fields::new(bytes, spans))
}

/// Runs `parse` with a slot for each field: on the stack for any usual head, so that only the index that is
/// kept is allocated.
fn with_slots<'b, T>(lines: usize, parse: impl FnOnce(&mut [MaybeUninit<Header<'b>>]) -> T) -> T {
    const USUAL: usize = 64;
    if lines <= USUAL {
        parse(&mut [const { MaybeUninit::uninit() }; USUAL])
    } else {
        parse(&mut Box::new_uninit_slice(lines))
    }
}

/// What the lexer said about bytes that are a whole section: it must have used up exactly these.
fn check(parsed: httparse::Result<usize>, section: Section, start_line: HeadError) -> Result<(), HeadError> {
    use httparse::Error;

    match parsed {
        Ok(Status::Complete(len)) if len == section.len => Ok(()),
        Ok(_) | Err(Error::Token | Error::Status | Error::NewLine) => Err(start_line),
        Err(Error::Version) => Err(HeadError::Version),
        Err(Error::HeaderName) => Err(HeadError::FieldName),
        Err(Error::HeaderValue) => Err(HeadError::FieldValue),
        Err(Error::TooManyHeaders) => Err(HeadError::TooManyFields),
    }
}

fn version(minor: Option<u8>) -> Result<Version, HeadError> {
    match minor {
        Some(0) => Ok(Version::Http10),
        Some(1) => Ok(Version::Http11),
        _ => Err(HeadError::Version),
    }
}

fn spans(bytes: &[u8], headers: &[Header<'_>]) -> Vec<FieldSpan> {
    let span = |header: &Header<'_>| FieldSpan {
        name: Span::within(bytes, header.name.as_bytes()),
        value: Span::within(bytes, header.value),
    };
    headers.iter().map(span).collect()
}

#[cfg(test)]
mod tests;
