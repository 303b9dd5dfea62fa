//! What the proxy writes. A `req` goes from the borrowed head straight into the bytes of its frame.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use thiserror::Error;

use super::frame::{self, FrameTooLong};
use crate::{
    domain::Host,
    field_name::is_token,
    json::{write_latin1, write_str, write_u64},
    limits::{MAX_BODY_FRAME, MAX_FIELD_BYTES, MAX_FIELD_VALUES, MAX_FRAME, MAX_NEED_BODY, MAX_TARGET_BYTES},
};

/// What a decider is told about a request, borrowed from where the proxy holds it. Bytes are shown as the
/// Latin-1 characters of those numbers. Optional parts that are empty are left out.
#[derive(Clone, Copy)]
pub struct ReqRef<'a> {
    /// Strictly rising from 1.
    pub id: u64,
    /// As the client spelled it.
    pub method: &'a str,
    /// The canonical target.
    pub host: &'a Host,
    /// The port of the target.
    pub port: u16,
    /// The `Host` header as the client spelled it.
    pub host_header: Option<&'a [u8]>,
    /// The server name of a terminated TLS connection, if its client sent one.
    pub sni: Option<&'a str>,
    /// As the client spelled it, without query and fragment.
    pub path: &'a [u8],
    /// As the client spelled it, without the question mark.
    pub query: Option<&'a [u8]>,
}

/// Why a decider cannot be asked about a request. It is then refused without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReqError {
    /// More than 190.
    #[error("more than {MAX_FIELD_VALUES} header values")]
    TooManyValues,
    /// More than 64 KiB.
    #[error("more than {MAX_FIELD_BYTES} bytes of header names and values")]
    HeadersTooLong,
    /// More than 8 KiB.
    #[error("{0} is longer than {MAX_TARGET_BYTES} bytes")]
    FieldTooLong(&'static str),
    /// Not a token.
    #[error("a header name is not a token")]
    BadName,
    /// C0 without tab, DEL, C1: the decider would have to take the frame for a violation.
    #[error("a header value has a control character")]
    ControlCharacter,
    /// More than 1 MiB with all escapes.
    #[error("the request does not fit into a frame: {0}")]
    FrameTooLong(#[from] FrameTooLong),
}

/// Appends the frame with which the proxy opens the link.
pub fn encode_hello(out: &mut Vec<u8>) {
    let payload = br#"{"t":"hello","proto":1}"#;
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes());
    out.extend_from_slice(payload);
}

/// Appends a `req` frame. `headers` are the fields of the head in their order, as the client spelled them;
/// `Host` lines among them are passed over, they are in `host_header`.
///
/// # Errors
/// [`ReqError`], and `out` is as it was before.
pub fn encode_req<'h>(
    out: &mut Vec<u8>,
    req: &ReqRef<'_>,
    headers: impl Iterator<Item = (&'h [u8], &'h [u8])>,
) -> Result<(), ReqError> {
    frame::append(out, MAX_FRAME, |out| {
        out.extend_from_slice(br#"{"t":"req","id":"#);
        write_u64(out, req.id);
        out.extend_from_slice(br#","method":"#);
        write_str(out, req.method);
        out.extend_from_slice(br#","host":"#);
        write_host(out, req.host);
        out.extend_from_slice(br#","port":"#);
        write_u64(out, req.port.into());
        if let Some(host_header) = req.host_header.filter(|text| !text.is_empty()) {
            out.extend_from_slice(br#","hostHeader":"#);
            write_latin1(out, within("hostHeader", host_header)?);
        }
        if let Some(sni) = req.sni.filter(|text| !text.is_empty()) {
            within("sni", sni.as_bytes())?;
            out.extend_from_slice(br#","sni":"#);
            write_str(out, sni);
        }
        out.extend_from_slice(br#","path":"#);
        write_latin1(out, within("path", req.path)?);
        if let Some(query) = req.query.filter(|text| !text.is_empty()) {
            out.extend_from_slice(br#","query":"#);
            write_latin1(out, query);
        }
        write_headers(out, headers.filter(|(name, _)| !name.eq_ignore_ascii_case(b"host")))?;
        out.push(b'}');
        Ok(())
    })
}

/// Appends a `body` frame: the first bytes of a body, and whether there was more.
///
/// # Errors
/// When `data` is longer than a decider may ask for; `out` is as it was before.
pub fn encode_body(out: &mut Vec<u8>, id: u64, data: &[u8], cut: bool) -> Result<(), FrameTooLong> {
    if data.len() > MAX_NEED_BODY as usize {
        return Err(FrameTooLong { limit: MAX_BODY_FRAME });
    }
    frame::append(out, MAX_BODY_FRAME, |out| {
        out.extend_from_slice(br#"{"t":"body","id":"#);
        write_u64(out, id);
        out.extend_from_slice(br#","data":""#);
        let start = out.len();
        out.resize(start + data.len().div_ceil(3) * 4, 0);
        let written = BASE64.encode_slice(data, &mut out[start..]);
        debug_assert_eq!(written.ok(), Some(out.len() - start));
        out.extend_from_slice(if cut { br#"","cut":true}"# } else { br#""}"# });
        Ok(())
    })
}

/// Writes the fields grouped by lower-cased name, in the order in which each name first appears.
///
/// The groups are found by comparing pairs, which is quick for the 190 that are allowed and would not be for
/// more, so they are counted first.
fn write_headers<'h>(
    out: &mut Vec<u8>,
    headers: impl Iterator<Item = (&'h [u8], &'h [u8])>,
) -> Result<(), ReqError> {
    let mut fields = [([].as_slice(), [].as_slice()); MAX_FIELD_VALUES];
    let mut count = 0;
    for field in headers {
        *fields.get_mut(count).ok_or(ReqError::TooManyValues)? = field;
        count += 1;
    }
    let fields = &fields[..count];
    let mut grouped = [false; MAX_FIELD_VALUES];
    let mut bytes = 0;
    let mut open = br#","headers":{"#.as_slice();
    for (at, (name, value)) in fields.iter().enumerate() {
        if grouped[at] {
            continue;
        }
        out.extend_from_slice(open);
        open = b",";
        bytes += name.len();
        write_name(out, name)?;
        out.extend_from_slice(b":[");
        write_value(out, value, &mut bytes)?;
        for (later, (other, value)) in fields.iter().enumerate().skip(at + 1) {
            if other.eq_ignore_ascii_case(name) {
                grouped[later] = true;
                out.push(b',');
                write_value(out, value, &mut bytes)?;
            }
        }
        out.push(b']');
    }
    if count > 0 {
        out.push(b'}');
    }
    Ok(())
}

fn write_name(out: &mut Vec<u8>, name: &[u8]) -> Result<(), ReqError> {
    if !is_token(name) {
        return Err(ReqError::BadName);
    }
    out.push(b'"');
    out.extend(name.iter().map(u8::to_ascii_lowercase));
    out.push(b'"');
    Ok(())
}

fn write_value(out: &mut Vec<u8>, value: &[u8], bytes: &mut usize) -> Result<(), ReqError> {
    *bytes += latin1_len(value);
    if *bytes > MAX_FIELD_BYTES {
        return Err(ReqError::HeadersTooLong);
    }
    // Without branches, so that a value is checked many bytes at a time.
    let is_control = |b: u8| ((b < 0x20) & (b != b'\t')) | (0x7f..0xa0).contains(&b);
    if value.iter().fold(false, |any, &b| any | is_control(b)) {
        return Err(ReqError::ControlCharacter);
    }
    write_latin1(out, value);
    Ok(())
}

fn write_host(out: &mut Vec<u8>, host: &Host) {
    use std::io::Write;
    match host {
        Host::Name(name) => write_str(out, name.as_str()),
        Host::Addr(addr) => write!(out, "\"{addr}\"").expect("invariant: writing to a vector cannot fail"),
    }
}

fn within<'a>(field: &'static str, text: &'a [u8]) -> Result<&'a [u8], ReqError> {
    if latin1_len(text) > MAX_TARGET_BYTES { Err(ReqError::FieldTooLong(field)) } else { Ok(text) }
}

/// The length in UTF-8 of bytes read as Latin-1: what both ends count.
fn latin1_len(bytes: &[u8]) -> usize {
    bytes.len() + bytes.iter().filter(|&&b| b >= 0x80).count()
}

#[cfg(test)]
mod tests;
