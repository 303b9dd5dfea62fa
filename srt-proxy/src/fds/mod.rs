//! Inherited descriptors: adopted once, at start, into owned types, after a look at what they are.

mod file;
mod listener;
mod packet_socket;
mod stream;

use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::sys;

pub use file::{Waiting, adopt_readable, adopt_writable, read_to_end};
pub use listener::Listener;
pub use packet_socket::PacketSocket;
pub use stream::{Direction, FdStream};

/// Why a descriptor from the command line cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FdError {
    /// Not open, or used twice.
    #[error("{flag} {number}: cannot use this descriptor: {source}")]
    Adopt {
        /// The flag that named it.
        flag: &'static str,
        /// The number given.
        number: RawFd,
        /// What the kernel said.
        source: io::Error,
    },
    /// Open, but something else than the flag asks for.
    #[error("{flag} {number}: not {expected}")]
    Kind {
        /// The flag that named it.
        flag: &'static str,
        /// The number given.
        number: RawFd,
        /// What it should be.
        expected: &'static str,
    },
}

impl FdError {
    /// The flag that named the descriptor.
    pub fn flag(&self) -> &'static str {
        match self {
            Self::Adopt { flag, .. } | Self::Kind { flag, .. } => flag,
        }
    }
}

/// A descriptor named by a flag; the pair all errors speak of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FdArg {
    /// The flag, with its dashes.
    pub flag: &'static str,
    /// The number given.
    pub number: RawFd,
}

impl FdArg {
    fn adopt(self) -> Result<OwnedFd, FdError> {
        sys::adopt(self.number).map_err(|source| self.failed(source))
    }

    fn failed(self, source: io::Error) -> FdError {
        FdError::Adopt { flag: self.flag, number: self.number, source }
    }

    fn kind(self, expected: &'static str) -> FdError {
        FdError::Kind { flag: self.flag, number: self.number, expected }
    }
}

/// Lets this process have as many descriptors as it may. Each connection takes two; with the usual soft limit of 1024
/// one sandbox could use up what all the others need.
pub fn raise_limit() {
    // Where it fails, fewer connections are served at once.
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// `O_NONBLOCK` sits on the open file description: whoever shares the descriptor sees it too, which the
/// command line documents. Without it one read would block a whole worker thread.
fn set_nonblocking(fd: &impl AsFd) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}
