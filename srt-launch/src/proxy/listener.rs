//! The socket that the sandbox's programs connect to.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, SockaddrIn6, bind, listen as start_listening,
    setsockopt, socket, sockopt,
};

/// The port inside. The namespace is the sandbox's own, so nothing else can have taken it.
pub const PROXY_PORT: u16 = 3128;

/// How many connections may wait: a build tool opens hundreds at once.
const BACKLOG: i32 = 512;

/// Makes the listening socket in the calling process's network namespace, where it stays for life, whoever holds it.
///
/// One socket takes IPv4 and IPv6. Where the kernel has no IPv6 it takes IPv4 alone.
pub fn listen() -> io::Result<OwnedFd> {
    let socket = match bind_v6() {
        Ok(socket) => socket,
        Err(Errno::EAFNOSUPPORT | Errno::EADDRNOTAVAIL) => bind_v4()?,
        Err(e) => return Err(e.into()),
    };
    start_listening(&socket, Backlog::new(BACKLOG)?)?;
    Ok(socket)
}

fn bind_v6() -> nix::Result<OwnedFd> {
    let fd = socket(AddressFamily::Inet6, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&fd, sockopt::Ipv6V6Only, &false)?;
    bind(fd.as_raw_fd(), &SockaddrIn6::from(SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, PROXY_PORT, 0, 0)))?;
    Ok(fd)
}

fn bind_v4() -> nix::Result<OwnedFd> {
    let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    bind(fd.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PROXY_PORT)))?;
    Ok(fd)
}
