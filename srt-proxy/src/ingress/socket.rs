//! A client's socket, TCP or unix, as accepted.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A stream whose other end is a client.
pub trait ClientStream: AsyncRead + AsyncWrite + Unpin + Send {
    /// Whether the end of the client's stream means that the client is gone, rather than that it has sent all it
    /// will send and waits for the answer.
    fn is_gone(&self) -> bool;

    /// What the socket shows of the client's side behind all that was not read yet.
    fn side(&self) -> Side;

    /// Makes the coming close a reset, so that an answer that was cut short cannot look complete.
    fn abort(&self);
}

/// The other side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// It is there and may send more.
    Open,
    /// It will send no more, and may wait for an answer.
    Ended,
    /// It is not there.
    Gone,
}

/// A client's connection.
#[derive(Debug)]
pub enum ClientSocket {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a unix socket.
    Unix(UnixStream),
}

impl ClientStream for ClientSocket {
    /// A closed unix socket hangs up, a half-closed one does not. TCP sends the same FIN for both, so there a
    /// client that ended its stream is taken to wait; writing to one that left fails soon enough.
    fn is_gone(&self) -> bool {
        self.side() == Side::Gone
    }

    fn side(&self) -> Side {
        match self {
            Self::Tcp(socket) => side_of(socket),
            Self::Unix(socket) => side_of(socket),
        }
    }

    fn abort(&self) {
        if let Self::Tcp(socket) = self {
            // Failing only means that the peer sees an orderly end.
            let _ = socket.set_zero_linger();
        }
    }
}

fn side_of(socket: &impl AsFd) -> Side {
    let shown = |events| {
        let mut fds = [PollFd::new(socket.as_fd(), events)];
        // A bit that nix has no name for, as that of the end of the other side, makes it give back none at all.
        poll(&mut fds, PollTimeout::ZERO).is_ok_and(|n| n > 0)
    };
    // A hang-up and an error are shown unasked.
    if shown(PollFlags::empty()) {
        Side::Gone
    } else if shown(PollFlags::from_bits_retain(libc::POLLRDHUP)) {
        Side::Ended
    } else {
        Side::Open
    }
}

impl AsyncRead for ClientSocket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_read(cx, buf),
            Self::Unix(socket) => Pin::new(socket).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for ClientSocket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_write(cx, data),
            Self::Unix(socket) => Pin::new(socket).poll_write(cx, data),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_write_vectored(cx, slices),
            Self::Unix(socket) => Pin::new(socket).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Unix(socket) => Pin::new(socket).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{Shutdown, TcpListener};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn the_other_side_shows_behind_what_is_unread() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(b"unread").unwrap();
        assert_eq!(side_of(&ours), Side::Open);
        theirs.shutdown(Shutdown::Write).unwrap();
        assert_eq!(side_of(&ours), Side::Ended);
        drop(theirs);
        assert_eq!(side_of(&ours), Side::Gone);

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut theirs = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let ours = listener.accept().unwrap().0;
        theirs.write_all(b"unread").unwrap();
        assert_eq!(side_of(&ours), Side::Open);
        // TCP cannot tell one that ended its side from one that left.
        drop(theirs);
        assert_eq!(side_of(&ours), Side::Ended);
    }
}
