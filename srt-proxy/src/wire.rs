//! A byte stream with what was read from it and not yet used, and what is to be written to it and not yet sent.
//!
//! Both legs of the proxy are one of these. Bodies pass through it without a copy: what the codec cuts out of
//! `input` of one wire goes as it is into the output of the other.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use crate::limits;

/// One leg: a stream and its two buffers.
#[derive(Debug)]
pub struct Wire<S> {
    io: S,
    /// Bytes read and not yet used.
    pub input: BytesMut,
    eof: bool,
    output: Output,
    flushed: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// A leg over `io`; `input` is what was already read from it.
    pub fn new(io: S, input: BytesMut) -> Self {
        Self { io, input, eof: false, output: Output::default(), flushed: true }
    }

    /// The stream itself.
    pub fn io(&self) -> &S {
        &self.io
    }

    /// The stream and what was read from it.
    pub fn into_parts(self) -> (S, BytesMut) {
        (self.io, self.input)
    }

    /// Whether the peer has ended its sending side.
    pub fn at_eof(&self) -> bool {
        self.eof
    }

    /// Reads once, up to about `room` bytes, into `input`. `Ok(0)` is the end of the stream.
    pub fn poll_fill(&mut self, cx: &mut Context<'_>, room: usize) -> Poll<io::Result<usize>> {
        if self.eof {
            return Poll::Ready(Ok(0));
        }
        self.input.reserve(room);
        let n = ready!(pin!(self.io.read_buf(&mut self.input)).poll(cx))?;
        self.eof = n == 0;
        Poll::Ready(Ok(n))
    }

    /// [`Self::poll_fill`], awaited.
    pub async fn fill(&mut self, room: usize) -> io::Result<usize> {
        std::future::poll_fn(|cx| self.poll_fill(cx, room)).await
    }

    /// What is to be written next; nothing goes out before [`Self::poll_drain`].
    pub fn output(&mut self) -> &mut Output {
        self.flushed = false;
        &mut self.output
    }

    /// Whether `output` takes more before it is drained.
    pub fn takes(&self) -> bool {
        self.output.takes()
    }

    /// Whether everything given to `output` has left.
    pub fn is_drained(&self) -> bool {
        self.flushed
    }

    /// Writes all of the output and flushes the stream.
    pub fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.output.is_empty() {
            let n = {
                let slices = self.output.slices();
                ready!(Pin::new(&mut self.io).poll_write_vectored(cx, &slices))?
            };
            if n == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.output.advance(n);
        }
        if !self.flushed {
            ready!(Pin::new(&mut self.io).poll_flush(cx))?;
            self.flushed = true;
        }
        Poll::Ready(Ok(()))
    }

    /// [`Self::poll_drain`], awaited.
    pub async fn drain(&mut self) -> io::Result<()> {
        std::future::poll_fn(|cx| self.poll_drain(cx)).await
    }

    /// Ends our sending side: the peer sees an orderly end (close_notify inside TLS).
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    /// [`Self::poll_shutdown`], awaited.
    pub async fn shutdown(&mut self) -> io::Result<()> {
        std::future::poll_fn(|cx| self.poll_shutdown(cx)).await
    }

    /// Gives back the memory of empty buffers: an idle tunnel keeps none.
    pub fn rest(&mut self) {
        if self.input.is_empty() && self.input.capacity() > limits::READ_IDLE {
            self.input = BytesMut::new();
        }
        if self.output.is_empty() && self.output.front.capacity() > limits::READ_IDLE {
            self.output = Output::default();
        }
    }
}

/// What is to be written: small things copied together, then at most one large piece passed on as it is, then
/// what must directly follow it.
#[derive(Debug, Default)]
pub struct Output {
    front: BytesMut,
    bulk: Bytes,
    tail: &'static [u8],
}

impl Output {
    /// Room for heads and other small things, in front of which nothing large may wait: that would be overtaken.
    pub fn front(&mut self) -> &mut BytesMut {
        debug_assert!(self.bulk.is_empty() && self.tail.is_empty());
        &mut self.front
    }

    /// Whether more may be added without first writing what is here.
    pub fn takes(&self) -> bool {
        self.bulk.is_empty() && self.tail.is_empty() && self.front.len() < limits::COALESCE
    }

    /// Adds `data` and then `tail`. Small data is copied, so that it leaves in one write with its head; large
    /// data is not.
    pub fn push(&mut self, data: Bytes, tail: &'static [u8]) {
        // Not `takes`: the chunk header written just before may have filled the front.
        debug_assert!(self.bulk.is_empty() && self.tail.is_empty());
        if self.front.len() + data.len() <= limits::COALESCE {
            self.front.extend_from_slice(&data);
            self.front.extend_from_slice(tail);
        } else {
            self.bulk = data;
            self.tail = tail;
        }
    }

    /// Adds `data` as it is, where nothing is gathered with it. Only while nothing waits.
    pub fn pass(&mut self, data: Bytes) {
        debug_assert!(self.is_empty());
        self.bulk = data;
    }

    fn is_empty(&self) -> bool {
        self.front.is_empty() && self.bulk.is_empty() && self.tail.is_empty()
    }

    fn slices(&self) -> [IoSlice<'_>; 3] {
        [IoSlice::new(&self.front), IoSlice::new(&self.bulk), IoSlice::new(self.tail)]
    }

    fn advance(&mut self, n: usize) {
        let front = n.min(self.front.len());
        if front == self.front.len() {
            // Keeps the allocation for the next head.
            self.front.clear();
        } else {
            self.front.advance(front);
        }
        let bulk = (n - front).min(self.bulk.len());
        self.bulk.advance(bulk);
        if self.bulk.is_empty() {
            // Lets the reader reuse the buffer this was cut from.
            self.bulk = Bytes::new();
        }
        self.tail = &self.tail[n - front - bulk..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_pushed_arrives_in_order_whatever_the_write_sizes() {
        for pipe in [1, 7, 4096] {
            let (ours, mut theirs) = tokio::io::duplex(pipe);
            let mut wire = Wire::new(ours, BytesMut::new());
            let big = Bytes::from(vec![b'x'; 100_000]);
            let mut expected = b"head".to_vec();
            expected.extend_from_slice(&big);
            expected.extend_from_slice(b"\r\nend");
            let reader = tokio::spawn(async move {
                let mut got = Vec::new();
                theirs.read_to_end(&mut got).await.unwrap();
                got
            });
            wire.output().front().extend_from_slice(b"head");
            wire.output().push(big, b"\r\n");
            assert!(!wire.output().takes(), "a second piece would overtake the first one's tail");
            wire.drain().await.unwrap();
            wire.output().push(Bytes::from_static(b"end"), b"");
            wire.drain().await.unwrap();
            wire.shutdown().await.unwrap();
            assert!(reader.await.unwrap() == expected);
        }
    }

    #[tokio::test]
    async fn a_piece_follows_its_header_whatever_is_gathered() {
        for gathered in limits::COALESCE - 8..limits::COALESCE {
            let (ours, mut theirs) = tokio::io::duplex(2 * limits::COALESCE);
            let mut wire = Wire::new(ours, BytesMut::new());
            wire.output().front().resize(gathered, b'h');
            assert!(wire.output().takes());
            wire.output().front().extend_from_slice(b"5\r\n");
            wire.output().push(Bytes::from_static(b"piece"), b"\r\n");
            wire.drain().await.unwrap();
            wire.shutdown().await.unwrap();
            let mut got = Vec::new();
            theirs.read_to_end(&mut got).await.unwrap();
            assert_eq!(got[gathered..], *b"5\r\npiece\r\n");
        }
    }

    #[tokio::test]
    async fn an_answer_of_ours_may_follow_an_interim_one_of_any_size() {
        let (ours, mut theirs) = tokio::io::duplex(4 * limits::COALESCE);
        let mut wire = Wire::new(ours, BytesMut::new());
        wire.output().front().resize(2 * limits::COALESCE, b'h');
        assert!(!wire.output().takes());
        wire.output().front().extend_from_slice(b"refused");
        wire.drain().await.unwrap();
        wire.shutdown().await.unwrap();
        let mut got = Vec::new();
        theirs.read_to_end(&mut got).await.unwrap();
        assert_eq!(got[2 * limits::COALESCE..], *b"refused");
    }

    #[tokio::test]
    async fn the_end_of_the_stream_is_told_once_and_kept() {
        let (ours, theirs) = tokio::io::duplex(64);
        drop(theirs);
        let mut wire = Wire::new(ours, BytesMut::new());
        assert_eq!(wire.fill(10).await.unwrap(), 0);
        assert!(wire.at_eof());
        assert_eq!(wire.fill(10).await.unwrap(), 0);
    }
}
