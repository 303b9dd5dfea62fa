//! How long a message is (RFC 9112 6.3). Pure functions; every doubt is an error of its own.

use thiserror::Error;

use super::{
    fields::Fields,
    head::{RequestHead, ResponseHead, Version},
};

/// Why the length of a message is in doubt. From a client this is a bad request, from a server a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FramingError {
    /// Both framings: which one counts is exactly what request smuggling lives on.
    #[error("the message has both Content-Length and Transfer-Encoding")]
    LengthAndEncoding,
    /// Lengths twice. In a request equal ones too: somebody added one.
    #[error("the message has more than one Content-Length")]
    RepeatedLength,
    /// Not a plain decimal number.
    #[error("the Content-Length is not a plain decimal number")]
    MalformedLength,
    /// More than 2^63 - 1, which not everybody can count to.
    #[error("the Content-Length is too large")]
    LengthTooLarge,
    /// Transfer-Encoding in more than one line.
    #[error("the message has more than one Transfer-Encoding")]
    RepeatedEncoding,
    /// Anything but `chunked`.
    #[error("the Transfer-Encoding is not just chunked")]
    UnknownEncoding,
    /// HTTP/1.0 knows no Transfer-Encoding; who sends it anyway was misunderstood by somebody.
    #[error("an HTTP/1.0 message has a Transfer-Encoding")]
    EncodingInHttp10,
    /// A CONNECT with content: what follows its head is the tunnel.
    #[error("a CONNECT request has content")]
    ConnectContent,
}

/// How the end of a body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFraming {
    /// There is no body and no framing field.
    None,
    /// So many bytes.
    Length(u64),
    /// Chunks, then perhaps trailers.
    Chunked,
    /// All that comes until the peer closes. Only responses.
    UntilClose,
}

/// How the end of a response is found, and what its head says about a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseFraming {
    /// What follows the head.
    pub body: BodyFraming,
    /// The length to announce: for HEAD and 304 that of a body that does not follow.
    pub declared_length: Option<u64>,
}

/// The framing field of a message that we write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FramingField {
    /// None: there is no body, or it ends with the connection.
    Absent,
    /// `Content-Length`
    Length(u64),
    /// `Transfer-Encoding: chunked`
    Chunked,
}

/// Judges the framing of a request.
pub fn request_framing(head: &RequestHead) -> Result<BodyFraming, FramingError> {
    let chunked = is_chunked(head.fields(), head.version())?;
    let length = head.fields().single("Content-Length").map_err(|_| FramingError::RepeatedLength)?;
    let framing = match (chunked, length) {
        (true, Some(_)) => return Err(FramingError::LengthAndEncoding),
        (true, None) => BodyFraming::Chunked,
        (false, Some(value)) => BodyFraming::Length(parse_request_length(value)?),
        (false, None) => BodyFraming::None,
    };
    // Some clients say `Content-Length: 0` in a CONNECT, which means nothing and harms nobody.
    match framing {
        BodyFraming::Chunked | BodyFraming::Length(1..) if head.method() == "CONNECT" => {
            Err(FramingError::ConnectContent)
        }
        _ => Ok(framing),
    }
}

/// Judges the framing of the response to a request with `method`.
///
/// Laxer than for requests in one thing, because the length goes on in one field of our own making: lengths
/// may be repeated, in lines or in a list, when all are equal (RFC 9112 6.3), and have leading zeros.
pub fn response_framing(head: &ResponseHead, method: &str) -> Result<ResponseFraming, FramingError> {
    let chunked = is_chunked(head.fields(), head.version())?;
    let length = agreed_length(head.fields())?;
    if chunked && length.is_some() {
        return Err(FramingError::LengthAndEncoding);
    }
    let (body, declared_length) = match head.status() {
        // RFC 9110 8.6: these have no content and must not announce any.
        100..200 | 204 => (BodyFraming::None, None),
        200..300 if method == "CONNECT" => (BodyFraming::None, None),
        304 => (BodyFraming::None, length),
        _ if method == "HEAD" => (BodyFraming::None, length),
        _ if chunked => (BodyFraming::Chunked, None),
        _ => (length.map_or(BodyFraming::UntilClose, BodyFraming::Length), length),
    };
    Ok(ResponseFraming { body, declared_length })
}

/// Whether the message is chunked. Anything else than `chunked`, once, is refused and not just ignored: a
/// recipient that knows the coding would see another end of the message.
fn is_chunked(fields: &Fields, version: Version) -> Result<bool, FramingError> {
    match fields.single("Transfer-Encoding").map_err(|_| FramingError::RepeatedEncoding)? {
        None => Ok(false),
        Some(_) if version == Version::Http10 => Err(FramingError::EncodingInHttp10),
        Some(coding) if coding.eq_ignore_ascii_case(b"chunked") => Ok(true),
        Some(_) => Err(FramingError::UnknownEncoding),
    }
}

/// No leading zeros: what we cannot tell from octal, another parser may take for it.
fn parse_request_length(value: &[u8]) -> Result<u64, FramingError> {
    match value {
        [b'0', _, ..] => Err(FramingError::MalformedLength),
        _ => parse_length(value),
    }
}

fn agreed_length(fields: &Fields) -> Result<Option<u64>, FramingError> {
    let mut agreed = None;
    for member in fields.values("Content-Length").flat_map(|value| value.split(|&byte| byte == b',')) {
        let length = parse_length(member.trim_ascii())?;
        if agreed.replace(length).is_some_and(|earlier| earlier != length) {
            return Err(FramingError::RepeatedLength);
        }
    }
    Ok(agreed)
}

/// `1*DIGIT` (RFC 9110 8.6); `str::parse` alone would take a sign.
fn parse_length(value: &[u8]) -> Result<u64, FramingError> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(FramingError::MalformedLength);
    }
    let mut length: u64 = 0;
    for digit in value {
        length = length
            .checked_mul(10)
            .and_then(|length| length.checked_add(u64::from(digit - b'0')))
            .filter(|length| i64::try_from(*length).is_ok())
            .ok_or(FramingError::LengthTooLarge)?;
    }
    Ok(length)
}

#[cfg(test)]
mod tests;
