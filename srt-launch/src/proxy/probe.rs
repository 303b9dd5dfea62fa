//! Whether anybody listens where a proxy of the host is said to be. One who is not there makes every connection of the
//! command end without a reason.

use std::fmt;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};

use super::{Relay, RelayTarget};
use crate::sys;

/// Nobody waits longer for the command to start. A proxy that is far away answers in a tenth of it.
const PATIENCE: Duration = Duration::from_secs(1);

impl Relay {
    /// What to say of each of its targets that does not take a connection now.
    pub fn absent(&self) -> Vec<String> {
        let socks = self.socks.iter().filter(|socks| **socks != self.http);
        [&self.http]
            .into_iter()
            .chain(socks)
            .filter_map(|target| {
                let error = target.probe().err()?;
                let why =
                    error.raw_os_error().map_or(error.to_string(), |n| Errno::from_raw(n).desc().to_owned());
                Some(format!("no proxy listens on {target} ({why}): what is sent there fails until one does"))
            })
            .collect()
    }
}

impl RelayTarget {
    fn probe(&self) -> io::Result<()> {
        match self {
            Self::Tcp(address) => probe_tcp(address),
            Self::Unix(path) => probe_unix(path),
        }
    }
}

impl fmt::Display for RelayTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => f.write_str(address),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

fn probe_tcp(address: &str) -> io::Result<()> {
    sys::use_own_name_services();
    let begun = Instant::now();
    let mut result = Err(io::ErrorKind::AddrNotAvailable.into());
    for address in address.to_socket_addrs()? {
        let left = PATIENCE.saturating_sub(begun.elapsed());
        if left.is_zero() {
            break;
        }
        result = TcpStream::connect_timeout(&address, left).map(drop);
        if result.is_ok() {
            break;
        }
    }
    result
}

/// Does not wait for a place in the queue: where it is full, somebody has made it.
fn probe_unix(path: &Path) -> io::Result<()> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    match connect(socket.as_raw_fd(), &UnixAddr::new(path)?) {
        Ok(()) | Err(Errno::EAGAIN) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    fn absent(http: RelayTarget) -> String {
        Relay { http, socks: None }.absent().join("\n")
    }

    #[test]
    fn who_does_not_listen_is_told_with_the_reason() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let there = listener.local_addr().unwrap();
        let named = RelayTarget::Tcp(format!("localhost:{}", there.port()));
        assert_eq!((absent(RelayTarget::Tcp(there.to_string())), absent(named)), Default::default());
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let said = format!(
            "no proxy listens on {gone} (Connection refused): what is sent there fails until one does"
        );
        let gone = RelayTarget::Tcp(gone);
        assert_eq!(absent(gone.clone()), said);
        // Each that is meant, once.
        let both = Relay { http: gone.clone(), socks: Some(gone.clone()) };
        assert_eq!(both.absent().len(), 1);
        let one = Relay { http: RelayTarget::Tcp(there.to_string()), socks: Some(gone) };
        assert_eq!(one.absent(), [said]);
    }

    #[test]
    fn so_are_those_behind_unix_sockets() {
        // The path of a socket has room for a hundred bytes, which that of TMPDIR may be.
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let path = folder.path().join("socket");
        let target = RelayTarget::Unix(path.clone());
        assert!(absent(target.clone()).contains("socket (No such file or directory)"));
        let listener = UnixListener::bind(&path).unwrap();
        assert_eq!(absent(target.clone()), "");
        // Far more than one may wait, but not any number.
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let clients: Vec<_> = std::iter::from_fn(|| {
            let client = socket(AddressFamily::Unix, SockType::Stream, flags, None).unwrap();
            connect(client.as_raw_fd(), &UnixAddr::new(&path).unwrap()).is_ok().then_some(client)
        })
        .take(10_000)
        .collect();
        assert_eq!(absent(target.clone()), "", "{} wait", clients.len());
        drop(listener);
        assert!(UnixStream::connect(&path).is_err());
        assert!(absent(target).contains("socket (Connection refused)"));
    }
}
