use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, SockType, getsockopt, send, sockopt};
use tokio::io::unix::AsyncFd;

use super::{FdArg, FdError, set_nonblocking};
use crate::sys::{self, Packet};

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
