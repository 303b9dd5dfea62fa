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

    /// Makes the coming close a reset, so that an answer that was cut short cannot look complete.
    fn abort(&self);
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
        match self {
            Self::Tcp(socket) => has_hung_up(socket),
            Self::Unix(socket) => has_hung_up(socket),
        }
    }

    fn abort(&self) {
        if let Self::Tcp(socket) = self {
            // Failing only means that the peer sees an orderly end.
            let _ = socket.set_zero_linger();
        }
    }
}

fn has_hung_up(socket: &impl AsFd) -> bool {
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::empty())];
    let hung_up = PollFlags::POLLHUP | PollFlags::POLLERR;
    poll(&mut fds, PollTimeout::ZERO).is_ok() && fds[0].revents().is_some_and(|r| r.intersects(hung_up))
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
