//! The socket to the proxy: frames in, frames out, on one thread.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    sync::Arc,
};

use srt_shared::decider::{
    ProtocolError,
    frame::{FrameReader, FrameTooLong, Side},
    parse_from_proxy,
};
use thiserror::Error;

use crate::{
    answer::{Answerer, OutOfOrder, Reply},
    audit::Audit,
    limits::READ_BYTES,
    policy::CurrentPolicy,
};

/// Why the link ended other than by the proxy's leave.
#[derive(Debug, Error)]
pub enum LinkError {
    /// The socket.
    #[error("the socket to the proxy: {0}")]
    Io(#[from] io::Error),
    /// The stream ended inside a frame.
    #[error("the proxy left in the middle of a message")]
    CutOff,
    /// A message that is none.
    #[error("the proxy broke the protocol: {0}")]
    Protocol(#[from] ProtocolError),
    /// A message at the wrong time.
    #[error("{0}")]
    OutOfOrder(#[from] OutOfOrder),
    /// An answer that no frame can hold.
    #[error("an answer does not fit into a frame: {0}")]
    Answer(#[from] FrameTooLong),
}

/// Answers the proxy at the other end until it leaves.
///
/// # Errors
/// [`LinkError`]. The proxy stops when the socket is closed, which dropping it does.
pub fn serve(mut stream: UnixStream, policy: Arc<CurrentPolicy>, audit: Audit) -> Result<(), LinkError> {
    let hello = policy.now().rules().hello().clone();
    let mut answerer = Answerer::new(policy, audit);
    let mut frames = FrameReader::new(Side::Decider);
    let mut chunk = vec![0; READ_BYTES];
    let mut out = Vec::new();
    loop {
        while let Some(frame) = frames.next_frame().map_err(ProtocolError::from)? {
            match answerer.answer(parse_from_proxy(frame)?)? {
                Reply::Hello => hello.encode(&mut out)?,
                Reply::Verdict(verdict) => verdict.encode(&mut out)?,
            }
        }
        match stream.write_all(&out) {
            Err(error) if is_gone(&error) => return Ok(()),
            result => result?,
        }
        out.clear();
        match stream.read(&mut chunk) {
            Ok(0) if frames.is_between_frames() => return Ok(()),
            Ok(0) => return Err(LinkError::CutOff),
            Ok(length) => frames.tail().extend_from_slice(&chunk[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A proxy that is killed leaves answers unread, and takes no more.
            Err(error) if is_gone(&error) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}
