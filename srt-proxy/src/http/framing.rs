//! How long a message is (RFC 9112 6.3). Pure functions; every doubt is an error of its own.

use thiserror::Error;

use super::head::{RequestHead, ResponseHead, Version};

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
    todo!()
}

/// Judges the framing of the response to a request with `method`.
pub fn response_framing(head: &ResponseHead, method: &str) -> Result<ResponseFraming, FramingError> {
    todo!()
}
