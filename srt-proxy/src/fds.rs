//! Inherited descriptors: adopted once, at start, into owned types, after a look at what they are.

use std::fs::File;
use std::io::{self, Read};
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockType, SockaddrLike, SockaddrStorage, getsockname, getsockopt, send, sockopt,
};
use nix::sys::stat::{SFlag, fstat};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::limits;
use crate::sys::{self, Packet};

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

/// A listening stream socket: TCP, or unix.
#[derive(Debug)]
pub enum Listener {
    /// IPv4 or IPv6.
    Tcp(TcpListener),
    /// Unix domain, with or without a path.
    Unix(UnixListener),
}

impl Listener {
    /// Adopts a bound and listening socket, and makes it non-blocking.
    pub fn adopt(arg: FdArg) -> Result<Self, FdError> {
        let listener = Self::from_owned(arg.adopt()?).map_err(|e| arg.failed(e))?;
        listener.ok_or_else(|| arg.kind("a listening TCP or unix socket"))
    }

    /// Takes a listening socket, and makes it non-blocking. `None` for anything else.
    pub fn from_owned(fd: OwnedFd) -> io::Result<Option<Self>> {
        // A listening SOCK_SEQPACKET socket would take connections whose bytes come in packets.
        let stream = getsockopt(&fd, sockopt::SockType).is_ok_and(|kind| kind == SockType::Stream);
        if !stream || !getsockopt(&fd, sockopt::AcceptConn).unwrap_or(false) {
            return Ok(None);
        }
        set_nonblocking(&fd)?;
        Ok(match getsockname::<SockaddrStorage>(fd.as_raw_fd())?.family() {
            Some(AddressFamily::Inet | AddressFamily::Inet6) => Some(Self::Tcp(fd.into())),
            Some(AddressFamily::Unix) => Some(Self::Unix(fd.into())),
            _ => None,
        })
    }
}

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

fn is_stream_socket(fd: &impl AsFd) -> bool {
    getsockopt(fd, sockopt::SockType).is_ok_and(|t| t == SockType::Stream)
        && !getsockopt(fd, sockopt::AcceptConn).unwrap_or(true)
}

/// `O_NONBLOCK` sits on the open file description: whoever shares the descriptor sees it too, which the
/// command line documents. Without it one read would block a whole worker thread.
fn set_nonblocking(fd: &impl AsFd) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
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

/// A socket whose messages keep their bounds: each is one packet, with descriptors beside it.
#[derive(Debug, Clone)]
pub struct PacketSocket {
    fd: Arc<AsyncFd<OwnedFd>>,
}

impl PacketSocket {
    /// Adopts one end of a `SOCK_SEQPACKET` pair.
    pub fn adopt(arg: FdArg) -> Result<Self, FdError> {
        let socket = Self::from_owned(arg.adopt()?).map_err(|e| arg.failed(e))?;
        socket.ok_or_else(|| arg.kind("a SOCK_SEQPACKET unix socket"))
    }

    /// Takes such a socket. `None` for anything else.
    pub fn from_owned(fd: OwnedFd) -> io::Result<Option<Self>> {
        let kind = getsockopt(&fd, sockopt::SockType);
        if !kind.is_ok_and(|kind| kind == SockType::SeqPacket) || getsockopt(&fd, sockopt::AcceptConn)? {
            return Ok(None);
        }
        set_nonblocking(&fd)?;
        Ok(Some(Self { fd: Arc::new(sys::watch(fd)?) }))
    }

    /// The next packet; `None` at the end of the stream.
    pub async fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Packet>> {
        loop {
            let mut guard = self.fd.readable().await?;
            match guard.try_io(|fd| sys::receive(fd, buffer)) {
                Ok(Err(e)) if e.kind() == io::ErrorKind::Interrupted => {}
                // The end of the stream looks like a packet of nothing, which anybody may send.
                Ok(Ok(packet)) if packet.is_empty() && self.has_ended() => return Ok(None),
                Ok(result) => return result.map(Some),
                Err(_would_block) => {}
            }
        }
    }

    fn has_ended(&self) -> bool {
        let ended = PollFlags::POLLHUP | PollFlags::from_bits_retain(libc::POLLRDHUP);
        let mut fds = [PollFd::new(self.fd.as_fd(), ended)];
        poll(&mut fds, PollTimeout::ZERO).is_err()
            || fds[0].revents().is_none_or(|happened| happened.intersects(ended))
    }

    /// Sends a packet without waiting: to a peer that does not read, it is lost.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        send(self.fd.as_raw_fd(), packet, flags)?;
        Ok(())
    }
}

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
pub fn adopt_file(arg: FdArg) -> Result<File, FdError> {
    let fd = arg.adopt()?;
    let mode = OFlag::from_bits_truncate(fcntl(&fd, FcntlArg::F_GETFL).map_err(|e| arg.failed(e.into()))?);
    if mode & OFlag::O_ACCMODE == OFlag::O_RDONLY {
        return Err(arg.kind("writable"));
    }
    Ok(fd.into())
}

/// Adopts any readable descriptor, for a thread that reads it with blocking calls.
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
