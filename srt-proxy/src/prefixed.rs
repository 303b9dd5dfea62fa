//! A stream whose first bytes were already read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Serves `prefix` first, then reads from `inner`; writes go straight to `inner`.
///
/// Telling TLS from plain bytes takes a look at what the client sent, and unix sockets have no `MSG_PEEK`
/// in tokio: whoever looked hands the bytes on with this.
#[derive(Debug)]
pub struct Prefixed<S> {
    prefix: Bytes,
    inner: S,
}

impl<S> Prefixed<S> {
    /// Puts `prefix` before what `inner` has still to give.
    pub fn new(prefix: impl Into<Bytes>, inner: S) -> Self {
        Self { prefix: prefix.into(), inner }
    }

    /// The stream below, for its addresses and options. Reading from it would overtake the prefix.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// What was not read yet of the prefix, and the stream.
    pub fn into_parts(self) -> (Bytes, S) {
        (self.prefix, self.inner)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Prefixed<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.prefix.is_empty() {
            return Pin::new(&mut this.inner).poll_read(cx, buf);
        }
        let n = this.prefix.len().min(buf.remaining());
        buf.put_slice(&this.prefix[..n]);
        this.prefix.advance(n);
        if this.prefix.is_empty() {
            // The allocation behind an empty slice would live as long as the connection.
            this.prefix = Bytes::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Prefixed<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn the_prefix_comes_first_whatever_the_size_of_the_reads() {
        for size in [1, 2, 3, 5, 64] {
            let mut stream = Prefixed::new(&b"hello "[..], &b"world"[..]);
            let mut got = Vec::new();
            let mut buf = vec![0; size];
            loop {
                match stream.read(&mut buf).await.unwrap() {
                    0 => break,
                    n => got.extend_from_slice(&buf[..n]),
                }
            }
            assert_eq!(got, b"hello world", "reads of {size}");
        }
    }

    #[tokio::test]
    async fn an_empty_prefix_is_no_end_of_file() {
        let mut got = String::new();
        Prefixed::new(Bytes::new(), &b"x"[..]).read_to_string(&mut got).await.unwrap();
        assert_eq!(got, "x");
    }

    #[tokio::test]
    async fn writes_pass_through() {
        let (near, mut far) = tokio::io::duplex(64);
        let mut stream = Prefixed::new(&b"unread"[..], near);
        stream.write_all(b"abc").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut got = String::new();
        far.read_to_string(&mut got).await.unwrap();
        assert_eq!(got, "abc");
        assert_eq!(stream.into_parts().0, &b"unread"[..]);
    }

    #[tokio::test]
    async fn works_over_tcp_and_unix_sockets_with_vectored_writes() {
        let (near, mut far) = tokio::net::UnixStream::pair().unwrap();
        let mut stream = Prefixed::new(Bytes::new(), near);
        assert!(stream.is_write_vectored());
        let n = stream.write_vectored(&[io::IoSlice::new(b"ab"), io::IoSlice::new(b"cd")]).await.unwrap();
        drop(stream);
        let mut got = String::new();
        far.read_to_string(&mut got).await.unwrap();
        assert_eq!((n, got.as_str()), (4, "abcd"));
    }
}
