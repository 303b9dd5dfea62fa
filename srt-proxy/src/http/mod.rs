//! HTTP/1.1 as a filter needs it: what the client sent is seen, judged and forwarded exactly as spelled,
//! and everything two parsers could read differently is refused.
//!
//! Nothing here does I/O or waits. The story of one request:
//!
//! 1. [`HeadReader`] cuts a head off a buffer and makes a [`RequestHead`]: one `Bytes` and an index into it.
//! 2. [`RequestTarget`] says what the request line asks for, [`request_framing`] how long the body is,
//!    [`ConnectionOptions`] what the client said about the connection. Each can refuse.
//! 3. [`forwarded_request_fields`] walks over the fields that go on, with the decider's [`Edits`], and
//!    [`write_request_head`] writes them behind a request line, `Host` and framing of our own making.
//! 4. [`BodyReader`] hands out the body in the pieces the buffer holds, without copying them; the other leg
//!    frames them anew, with [`chunk_header`] where it has to.
//!
//! A response takes the same way back with [`response_framing`], [`forwarded_response_fields`] and
//! [`write_response_head`].

mod body;
mod connection;
mod edit;
mod fields;
mod framing;
mod head;
mod head_reader;
mod name;
mod section;
mod target;
mod write;

pub use body::{BodyError, BodyPiece, BodyReader};
pub use connection::{ConnectionError, ConnectionOptions, accepts_trailers};
pub use edit::{EditError, Edits, forwarded_request_fields, forwarded_response_fields, forwarded_trailers};
pub use fields::{Field, Fields, RepeatedField};
pub use framing::{
    BodyFraming, FramingError, FramingField, ResponseFraming, request_framing, response_framing,
};
pub use head::{RequestHead, ResponseHead, Version};
pub use head_reader::{HeadError, HeadReader};
pub use target::{PathAndQuery, RequestTarget, Scheme, TargetError};
pub use write::{
    CHUNK_END, ChunkHeader, LAST_CHUNK, chunk_header, write_last_chunk, write_request_head,
    write_response_head,
};
