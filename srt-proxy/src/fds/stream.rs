use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::socket::{SockType, getsockopt, sockopt};
use nix::sys::stat::{SFlag, fstat};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{FdArg, FdError, set_nonblocking};
use crate::sys;

/// One direction, or both, of a descriptor the event loop can wait on: a stream socket or a pipe.
///
/// Both directions of a socket are two clones of one `FdStream`.
#[derive(Debug, Clone)]
pub struct FdStream {
    fd: Arc<AsyncFd<OwnedFd>>,
}

impl FdStream {
    /// Adopts one connected socket for both directions.
    pub fn adopt_socket(arg: FdArg) -> Result<Self, FdError> {
        let fd = arg.adopt()?;
        if !is_stream_socket(&fd) {
            return Err(arg.kind("a connected stream socket"));
        }
        Self::register(arg, fd)
    }

    /// Adopts a pipe or socket of which one direction is used.
    pub fn adopt_pipe(arg: FdArg, direction: Direction) -> Result<Self, FdError> {
        let fd = arg.adopt()?;
        let mode = fcntl(&fd, FcntlArg::F_GETFL).map_err(|e| arg.failed(e.into()))?;
        let access = OFlag::from_bits_truncate(mode) & OFlag::O_ACCMODE;
        let pipe = fstat(&fd).is_ok_and(|s| s.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFIFO.bits());
        let usable = (pipe && direction.fits(access)) || is_stream_socket(&fd);
        if !usable {
            return Err(arg.kind(direction.expected()));
        }
        Self::register(arg, fd)
    }

    fn register(arg: FdArg, fd: OwnedFd) -> Result<Self, FdError> {
        set_nonblocking(&fd).map_err(|e| arg.failed(e))?;
        let fd = sys::watch(fd).map_err(|e| arg.failed(e))?;
        Ok(Self { fd: Arc::new(fd) })
    }
}

/// Which way bytes go through a pipe, seen from us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// We read.
    In,
    /// We write.
    Out,
}

impl Direction {
    fn fits(self, access: OFlag) -> bool {
        access == OFlag::O_RDWR || access == if self == Self::In { OFlag::O_RDONLY } else { OFlag::O_WRONLY }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::In => "a readable pipe or stream socket",
            Self::Out => "a writable pipe or stream socket",
        }
    }
}

impl AsyncRead for FdStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.fd.poll_read_ready(cx))?;
            let result =
                guard.try_io(|fd| nix::unistd::read(fd, buf.initialize_unfilled()).map_err(io::Error::from));
            match result {
                Ok(Ok(n)) => {
                    buf.advance(n);
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(e)) if e.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(e)) => return Poll::Ready(Err(e)),
                Err(_would_block) => {}
            }
        }
    }
}

impl AsyncWrite for FdStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.fd.poll_write_ready(cx))?;
            match guard.try_io(|fd| nix::unistd::write(fd, data).map_err(io::Error::from)) {
                Ok(Err(e)) if e.kind() == io::ErrorKind::Interrupted => {}
                Ok(result) => return Poll::Ready(result),
                Err(_would_block) => {}
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn is_stream_socket(fd: &impl AsFd) -> bool {
    getsockopt(fd, sockopt::SockType).is_ok_and(|t| t == SockType::Stream)
        && !getsockopt(fd, sockopt::AcceptConn).unwrap_or(true)
}
