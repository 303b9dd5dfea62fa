//! Streams one request to the upstream and its answer back, both at once, each held back by its reader.
//!
//! One poll function moves both directions, because they depend on each other: an answer may come before the
//! request is whole, `100 Continue` goes against the stream, and the end of one side ends the other.

use std::io;
use std::task::{Context, Poll};

use srt_shared::field_name::FieldNameSet;

use super::answer::{self, Answering, Completed};
use super::ask::{has_ended, has_left, is_full};
use super::body::{RequestBody, push_piece};
use super::is_http11;
use super::refuse::Failure;
use crate::dial::Upstream;
use crate::http::{BodyError, BodyPiece, HeadReader, LAST_CHUNK, RequestHead, ResponseHead};
use crate::ingress::ClientStream;
use crate::limits;
use crate::timer::Timer;
use crate::wire::Wire;

/// Why it got none, or not all of it.
#[derive(Debug)]
pub enum Broken {
    /// Nobody is there to answer.
    ClientGone,
    /// A peer that should take or send bytes did neither for [`limits::IDLE`].
    Stalled,
    /// The client's body is no body.
    ClientBody {
        /// What is wrong with it.
        error: BodyError,
        /// Whether the answer's head is out already.
        answered: bool,
    },
    /// The upstream failed before its answer's head was out.
    Upstream {
        /// How.
        failure: Failure,
        /// Whether not a byte came from it.
        nothing_received: bool,
    },
    /// The upstream failed in the middle of its answer.
    CutShort,
}

/// One request and its answer on their way.
pub struct Exchange<'a, S> {
    client: &'a mut Wire<S>,
    upstream: &'a mut Wire<Upstream>,
    body: &'a mut RequestBody,
    head: &'a RequestHead,
    asked_to_persist: bool,
    strip: &'a FieldNameSet,
    upload: Upload,
    download: Download,
    bytes_in: u64,
    bytes_out: u64,
    /// Grows whenever anything moved.
    moved: u64,
    /// Whether the client will send no more.
    client_ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Upload {
    Sending {
        chunked: bool,
    },
    /// All of it is with the upstream, or in its socket.
    Ended,
    /// The upstream takes no more; its answer may say why.
    GivenUp,
}

#[derive(Debug)]
enum Download {
    Head { reader: HeadReader, interim: bool },
    Body(Answering),
    Done(Completed),
}

impl<'a, S: ClientStream> Exchange<'a, S> {
    /// An exchange whose request head is already in the upstream's output. `asked_to_persist`: by the client, of its
    /// connection.
    pub fn new(
        client: &'a mut Wire<S>,
        upstream: &'a mut Wire<Upstream>,
        body: &'a mut RequestBody,
        head: &'a RequestHead,
        asked_to_persist: bool,
        strip: &'a FieldNameSet,
    ) -> Self {
        let upload = Upload::Sending { chunked: body.is_chunked() };
        let download = Download::Head { reader: HeadReader::new(), interim: false };
        Self {
            client,
            upstream,
            body,
            head,
            asked_to_persist,
            strip,
            upload,
            download,
            bytes_in: 0,
            bytes_out: 0,
            moved: 0,
            client_ended: false,
        }
    }

    /// Runs it to its end. A whole request waits for its answer without limit; only a peer that holds up what is
    /// under way has a deadline.
    pub async fn run(mut self, timer: &mut Timer) -> Result<Completed, Broken> {
        timer.set(limits::IDLE);
        let mut seen = 0;
        let mut look = None;
        std::future::poll_fn(|cx| {
            loop {
                if let Poll::Ready(result) = self.poll(cx) {
                    return Poll::Ready(result);
                }
                if self.moved != seen {
                    seen = self.moved;
                    timer.set(limits::IDLE);
                }
                if self.is_held_up() {
                    return timer.poll_expired(cx).map(|()| Err(Broken::Stalled));
                }
                // Nothing wakes us when the client leaves behind what is not read.
                if !is_full(self.client) {
                    return Poll::Pending;
                }
                let look = look.get_or_insert_with(|| Timer::new(limits::LOOK));
                if look.poll_expired(cx).is_pending() {
                    return Poll::Pending;
                }
                look.set(limits::LOOK);
            }
        })
        .await
    }

    /// Whether the peers have [`limits::IDLE`] to go on. A client that has ended its side may be gone, which over TCP
    /// shows only when it is written to; waiting without limit would keep its connections for as long as the upstream
    /// likes.
    fn is_held_up(&self) -> bool {
        matches!(self.upload, Upload::Sending { .. })
            || !self.client.is_drained()
            || !self.upstream.is_drained()
            || self.client_ended
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Completed, Broken>> {
        if let Err(broken) = self.poll_upload(cx) {
            return Poll::Ready(match self.download {
                // The client has its answer; what is wrong with the rest of its body only ends the connections.
                Download::Done(completed) if self.client.is_drained() => Ok(self.complete(completed)),
                _ => Err(broken),
            });
        }
        if let Poll::Ready(result) = self.poll_download(cx) {
            return Poll::Ready(result);
        }
        // While the body comes, the upload sees the client leave.
        if !matches!(self.upload, Upload::Sending { .. }) {
            if has_left(cx, self.client, self.body) {
                return Poll::Ready(Err(Broken::ClientGone));
            }
            let had_ended = std::mem::replace(&mut self.client_ended, has_ended(self.client));
            self.moved += u64::from(self.client_ended != had_ended);
        }
        Poll::Pending
    }

    /// Moves the request as far as it goes.
    fn poll_upload(&mut self, cx: &mut Context<'_>) -> Result<(), Broken> {
        while let Upload::Sending { chunked } = self.upload {
            if !self.upstream.takes() && !self.send(cx) {
                return Ok(());
            }
            match self.body.next_piece(self.client) {
                Ok(BodyPiece::Data(data)) => {
                    self.bytes_in += data.len() as u64;
                    push_piece(self.upstream, data, chunked);
                }
                Ok(BodyPiece::End) => {
                    if chunked {
                        self.upstream.output().front().extend_from_slice(LAST_CHUNK);
                    }
                    self.upload = Upload::Ended;
                }
                Ok(BodyPiece::NeedMore) => {
                    // What is gathered must not wait for what the client has not sent yet.
                    if !self.send(cx) {
                        return Ok(());
                    }
                    match self.body.poll_more(cx, self.client) {
                        Ok(Poll::Ready(_)) => self.moved += 1,
                        Ok(Poll::Pending) => return Ok(()),
                        Err(()) => return Err(Broken::ClientGone),
                    }
                }
                Err(error) => {
                    let answered = !matches!(self.download, Download::Head { .. });
                    return Err(Broken::ClientBody { error, answered });
                }
            }
        }
        if self.upload == Upload::Ended && !self.upstream.is_drained() {
            self.send(cx);
        }
        Ok(())
    }

    /// Writes to the upstream; whether all of it went. One that takes no more may still answer.
    fn send(&mut self, cx: &mut Context<'_>) -> bool {
        match self.upstream.poll_drain(cx) {
            Poll::Ready(Ok(())) => {
                self.moved += 1;
                true
            }
            Poll::Ready(Err(_)) => {
                self.upload = Upload::GivenUp;
                false
            }
            Poll::Pending => false,
        }
    }

    /// Moves the answer as far as it goes.
    fn poll_download(&mut self, cx: &mut Context<'_>) -> Poll<Result<Completed, Broken>> {
        loop {
            if !self.client.takes() && self.reply(cx)?.is_pending() {
                return Poll::Pending;
            }
            match &mut self.download {
                Download::Head { reader, interim } => match reader.read_response(&mut self.upstream.input) {
                    Ok(Some(head)) if head.status() < 200 => {
                        *interim = true;
                        self.on_interim(&head)?;
                    }
                    Ok(Some(head)) => self.on_final(&head)?,
                    Ok(None) => {
                        let nothing_received = !*interim && self.upstream.input.is_empty();
                        if self.reply(cx)?.is_pending() {
                            return Poll::Pending;
                        }
                        match self.upstream.poll_fill(cx, limits::READ_SMALL) {
                            Poll::Pending => return Poll::Pending,
                            Poll::Ready(Ok(1..)) => self.moved += 1,
                            Poll::Ready(Ok(0) | Err(_)) => {
                                let failure = Failure::bad_gateway(
                                    "the upstream closed the connection without an answer",
                                );
                                return Poll::Ready(Err(Broken::Upstream { failure, nothing_received }));
                            }
                        }
                    }
                    Err(e) => return Poll::Ready(Err(bad_answer(&e))),
                },
                Download::Body(answering) => match answering.reader.read(&mut self.upstream.input) {
                    Ok(BodyPiece::Data(data)) => {
                        self.bytes_out += data.len() as u64;
                        push_piece(self.client, data, answering.chunked);
                    }
                    Ok(BodyPiece::NeedMore) => {
                        if self.reply(cx)?.is_pending() {
                            return Poll::Pending;
                        }
                        if self.poll_answer(cx)?.is_pending() {
                            return Poll::Pending;
                        }
                    }
                    Ok(BodyPiece::End) => self.on_end(),
                    Err(_) => return Poll::Ready(Err(Broken::CutShort)),
                },
                Download::Done(completed) => {
                    let completed = *completed;
                    if self.reply(cx)?.is_pending() {
                        return Poll::Pending;
                    }
                    // Nobody has said that the rest of the body is not wanted, so it must not be cut off.
                    if completed.takes_rest && matches!(self.upload, Upload::Sending { .. }) {
                        return Poll::Pending;
                    }
                    return Poll::Ready(Ok(self.complete(completed)));
                }
            }
        }
    }

    fn complete(&self, mut completed: Completed) -> Completed {
        // What the client has not sent of its body could be taken for its next request.
        completed.client_persists &= self.upload == Upload::Ended;
        completed.upstream_persists &= self.upload == Upload::Ended;
        (completed.bytes_in, completed.bytes_out) = (self.bytes_in, self.bytes_out);
        completed
    }

    /// Writes to the client.
    fn reply(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, Broken> {
        if self.client.is_drained() {
            return Ok(Poll::Ready(()));
        }
        match self.client.poll_drain(cx) {
            Poll::Ready(Ok(())) => {
                self.moved += 1;
                Ok(Poll::Ready(()))
            }
            Poll::Ready(Err(_)) => Err(Broken::ClientGone),
            Poll::Pending => Ok(Poll::Pending),
        }
    }

    /// Reads more of the answer's body.
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, Broken> {
        let Download::Body(answering) = &mut self.download else { return Ok(Poll::Ready(())) };
        let left = answering.reader.remaining().and_then(|left| usize::try_from(left).ok());
        let room = left.unwrap_or(limits::READ_BULK).clamp(limits::READ_SMALL, limits::READ_BULK);
        match self.upstream.poll_fill(cx, room) {
            Poll::Pending => return Ok(Poll::Pending),
            Poll::Ready(Ok(1..)) => self.moved += 1,
            Poll::Ready(Ok(0)) => answering.reader.on_eof().map_err(|_| Broken::CutShort)?,
            // Many servers end TLS without a close_notify, and so does whoever cuts the connection. Where the end of
            // the connection is all that ends the answer, it is for the client to say what it makes of that (RFC
            // 9112 section 9.8).
            Poll::Ready(Err(e)) if e.kind() == io::ErrorKind::UnexpectedEof => {
                answering.reader.on_eof().map_err(|_| Broken::CutShort)?;
                answering.completed.end_is_doubtful = true;
            }
            Poll::Ready(Err(_)) => return Err(Broken::CutShort),
        }
        Ok(Poll::Ready(()))
    }

    /// 100 was sent, where the client waited for it, when its body was first wanted. Others pass.
    fn on_interim(&mut self, head: &ResponseHead) -> Result<(), Broken> {
        match head.status() {
            101 => Err(broken("the upstream switched protocols although nobody asked it to")),
            100 => Ok(()),
            _ if !is_http11(self.head) => Ok(()),
            _ => answer::write_interim(self.client.output().front(), head, self.strip)
                .map_err(|e| bad_answer(&e)),
        }
    }

    fn on_final(&mut self, head: &ResponseHead) -> Result<(), Broken> {
        let withheld = self.body.answered();
        let sent = self.upload == Upload::Ended;
        let out = self.client.output().front();
        let mut answering = Answering::begin(out, head, self.head, sent, self.asked_to_persist, self.strip)
            .map_err(|e| bad_answer(&e))?;
        answering.completed.takes_rest &= !withheld;
        self.download = Download::Body(answering);
        Ok(())
    }

    fn on_end(&mut self) {
        let Download::Body(answering) = &mut self.download else { return };
        answering.end(self.client.output().front(), self.strip);
        self.download = Download::Done(answering.completed);
    }
}

fn bad_answer(error: &dyn std::error::Error) -> Broken {
    broken(format!("the upstream's answer is malformed: {error}"))
}

fn broken(reason: impl Into<std::borrow::Cow<'static, str>>) -> Broken {
    Broken::Upstream { failure: Failure::bad_gateway(reason), nothing_received: false }
}

#[cfg(test)]
mod tests;
