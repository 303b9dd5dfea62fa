use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;

use nix::sys::socket::{
    AddressFamily, SockType, SockaddrLike, SockaddrStorage, getsockname, getsockopt, sockopt,
};

use super::{FdArg, FdError, set_nonblocking};

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
