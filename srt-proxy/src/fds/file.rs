//! Descriptors of any kind, for threads that use them with blocking calls.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{FdArg, FdError};
use crate::limits;

/// Reads what the host gives us at the start, to its end and not more than `limit` bytes.
///
/// A host that never closes its end would keep us from starting for ever, so there is a deadline.
pub fn read_to_end(arg: FdArg, limit: u64) -> Result<Vec<u8>, FdError> {
    let file = adopt_readable(arg)?;
    let (done, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::with_capacity(8 * 1024);
        let result = Waiting(file).take(limit + 1).read_to_end(&mut bytes).map(|_| bytes);
        // The receiver is gone when the deadline passed; then nobody wants the bytes.
        let _ = done.send(result);
    });
    match wait.recv_timeout(limits::START_INPUT) {
        Ok(Ok(bytes)) if bytes.len() as u64 > limit => {
            Err(arg.failed(io::Error::new(io::ErrorKind::InvalidInput, format!("more than {limit} bytes"))))
        }
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(source)) => Err(arg.failed(source)),
        Err(_) => Err(arg.failed(io::Error::new(io::ErrorKind::TimedOut, "no end of file after 10 s"))),
    }
}

/// Adopts any writable descriptor: a file, a pipe, a socket.
pub fn adopt_writable(arg: FdArg) -> Result<File, FdError> {
    let fd = arg.adopt()?;
    let mode = OFlag::from_bits_truncate(fcntl(&fd, FcntlArg::F_GETFL).map_err(|e| arg.failed(e.into()))?);
    if mode & OFlag::O_ACCMODE == OFlag::O_RDONLY {
        return Err(arg.kind("writable"));
    }
    Ok(fd.into())
}

/// Adopts any readable descriptor.
pub fn adopt_readable(arg: FdArg) -> Result<File, FdError> {
    let fd = arg.adopt()?;
    let mode = OFlag::from_bits_truncate(fcntl(&fd, FcntlArg::F_GETFL).map_err(|e| arg.failed(e.into()))?);
    if mode & OFlag::O_ACCMODE == OFlag::O_WRONLY {
        return Err(arg.kind("readable"));
    }
    Ok(fd.into())
}

/// Reads, with blocking calls, a descriptor that somebody may have made non-blocking.
#[derive(Debug)]
pub struct Waiting(pub File);

impl Read for Waiting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buffer) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
                    poll(&mut fds, PollTimeout::NONE)?;
                }
                result => return result,
            }
        }
    }
}
