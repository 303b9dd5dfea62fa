//! The body of a request: streamed from the client, unless the decider wants to see it first.

use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};

use crate::decider::Reservation;
use crate::http::{
    BodyError, BodyFraming, BodyPiece, BodyReader, CHUNK_END, RequestHead, Version, chunk_header,
};
use crate::ingress::ClientStream;
use crate::limits;
use crate::wire::Wire;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A request's body, wherever its bytes are: not yet sent by the client, in the client's input, or held here.
#[derive(Debug)]
pub struct RequestBody {
    framing: BodyFraming,
    reader: BodyReader,
    /// Content of a chunked body that was shown to the decider. A body with a length needs no second buffer: it
    /// is shown from the client's input and stays there.
    held: BytesMut,
    /// Room in the budget of held bodies, for as long as this one is held.
    reservation: Option<Reservation>,
    expects_continue: bool,
    /// Whether the upload has begun.
    asked_for: bool,
}

/// What the decider is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// Bytes at the start of the body.
    pub len: usize,
    /// Whether there was more.
    pub cut: bool,
}

impl RequestBody {
    /// The body of a request with this head.
    pub fn new(head: &RequestHead, framing: BodyFraming) -> Self {
        let expects_continue = head.version() == Version::Http11
            && head.fields().values("expect").any(|value| value.eq_ignore_ascii_case(b"100-continue"));
        Self {
            framing,
            reader: BodyReader::new(framing),
            held: BytesMut::new(),
            reservation: None,
            expects_continue,
            asked_for: false,
        }
    }

    /// Whether no byte of it was taken: then the request can be sent a second time.
    pub fn is_untouched(&self) -> bool {
        self.framing == BodyFraming::None || (!self.reader.has_started() && self.held.is_empty())
    }

    /// Whether it certainly has no content.
    pub fn is_empty(&self) -> bool {
        matches!(self.framing, BodyFraming::None | BodyFraming::Length(0))
            || (self.reader.is_complete() && self.held.is_empty())
    }

    /// Whether the upstream gets it in chunks.
    pub fn is_chunked(&self) -> bool {
        self.framing == BodyFraming::Chunked
    }

    /// Whether the client still has to send some of it.
    pub fn is_owed(&self, input: &[u8]) -> bool {
        match self.framing {
            BodyFraming::Length(length) => (input.len() as u64) < length,
            _ => !self.is_empty(),
        }
    }

    /// What showing up to `max` bytes takes from the budget.
    pub fn cost(&self, max: usize) -> usize {
        match self.framing {
            BodyFraming::Length(length) => usize::try_from(length).map_or(max, |length| length.min(max)),
            _ => max,
        }
    }

    /// Keeps room in the budget for as long as what was shown is held.
    pub fn hold(&mut self, reservation: Reservation) {
        self.reservation = Some(reservation);
    }

    /// How much the next read may take: what is left to come, within reason. Exact where it can be, so that a body
    /// that is gathered fits into one allocation.
    fn room(&self, input: &[u8]) -> usize {
        let left = self.reader.remaining().and_then(|left| usize::try_from(left).ok());
        let left = left.map_or(limits::READ_BULK, |left| left.saturating_sub(input.len()));
        left.clamp(limits::READ_IDLE, limits::READ_BULK)
    }

    /// Reads until `max` bytes and the knowledge whether there are more are at hand.
    ///
    /// `Err(Some(_))` is a malformed body, `Err(None)` a client that left inside it.
    pub fn poll_gather<S: ClientStream>(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Wire<S>,
        max: usize,
    ) -> Poll<Result<Shown, Option<BodyError>>> {
        loop {
            if let Some(shown) = self.gathered(client, max).map_err(Some)? {
                return Poll::Ready(Ok(shown));
            }
            if self.poll_more(cx, client).map_err(|()| None)?.is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn gathered<S: ClientStream>(
        &mut self,
        client: &mut Wire<S>,
        max: usize,
    ) -> Result<Option<Shown>, BodyError> {
        if let BodyFraming::Length(length) = self.framing {
            let wanted = self.cost(max);
            let shown = Shown { len: wanted, cut: length > wanted as u64 };
            return Ok((client.input.len() >= wanted).then_some(shown));
        }
        while self.held.len() <= max {
            match self.reader.read(&mut client.input)? {
                BodyPiece::Data(data) => self.held.extend_from_slice(&data),
                BodyPiece::NeedMore => return Ok(None),
                BodyPiece::End => break,
            }
        }
        Ok(Some(Shown { len: self.held.len().min(max), cut: self.held.len() > max }))
    }

    /// The bytes [`Self::poll_gather`] told of.
    pub fn shown<'b, S: ClientStream>(&'b self, client: &'b Wire<S>, shown: Shown) -> &'b [u8] {
        match self.framing {
            BodyFraming::Length(_) => &client.input[..shown.len],
            _ => &self.held[..shown.len],
        }
    }

    /// The next piece for the upstream, from what is at hand. To be called when the piece before is passed on.
    pub fn next_piece<S: ClientStream>(&mut self, client: &mut Wire<S>) -> Result<BodyPiece, BodyError> {
        // The first piece is all that was shown. What follows streams, and may take hours, in which others must be
        // judged by their bodies too.
        if std::mem::replace(&mut self.asked_for, true) {
            self.reservation = None;
        }
        if !self.held.is_empty() {
            return Ok(BodyPiece::Data(std::mem::take(&mut self.held).freeze()));
        }
        let piece = self.reader.read(&mut client.input)?;
        if piece == BodyPiece::End {
            self.reservation = None;
        }
        Ok(piece)
    }

    /// The answer has begun: from now on a 100 would stand in the middle of it. Whether the client still waits for one,
    /// and so need not send its body any more.
    pub fn answered(&mut self) -> bool {
        std::mem::take(&mut self.expects_continue)
    }

    /// Reads more of it from the client, which is told to go on if it waits for that (RFC 9110 section 10.1.1).
    /// `Err` when the client is gone.
    pub fn poll_more<S: ClientStream>(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Wire<S>,
    ) -> Result<Poll<usize>, ()> {
        if std::mem::take(&mut self.expects_continue) {
            client.output().front().extend_from_slice(CONTINUE);
        }
        if !client.is_drained()
            && let Poll::Ready(Err(_)) = client.poll_drain(cx)
        {
            return Err(());
        }
        match client.poll_fill(cx, self.room(&client.input)) {
            Poll::Ready(Ok(0) | Err(_)) => Err(()),
            Poll::Ready(Ok(n)) => Ok(Poll::Ready(n)),
            Poll::Pending => Ok(Poll::Pending),
        }
    }
}

/// A piece as it is written: with its framing where the body is chunked.
pub fn push_piece<S>(wire: &mut Wire<S>, data: Bytes, chunked: bool)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    if chunked {
        wire.output().front().extend_from_slice(&chunk_header(data.len()));
        wire.output().push(data, CHUNK_END);
    } else {
        wire.output().push(data, b"");
    }
}
