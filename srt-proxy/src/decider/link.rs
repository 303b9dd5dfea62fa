//! The link to the decider: one task that reads verdicts and watches the clock, one that writes frames.
//!
//! Requests encode their own frames into one shared buffer; the writer sends whatever has gathered in one write.
//! Under load that makes one system call for many questions. Any error, breach or end of stream closes the link
//! for good, and everybody who waits is told.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use srt_shared::decider::frame::{FrameReader, Side};
use srt_shared::decider::{
    FromDecider, Hello, ProtocolError, ReqError, ReqRef, encode_body, encode_hello, encode_req,
    parse_from_decider,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;
use tracing::{debug, warn};

use super::budget::BodyBudget;
use super::table::{Answer, Breach, Table};
use crate::fds::FdStream;
use crate::http::Fields;
use crate::limits;

/// Why there is no link, or no more.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The stream ended before a hello came.
    #[error("the decider ended before its hello")]
    EndedBeforeHello,
    /// Something else came first.
    #[error("the decider sent a verdict before its hello")]
    NoHello,
    /// A hello comes once.
    #[error("the decider broke the protocol: a second hello")]
    SecondHello,
    /// No hello in time.
    #[error("no hello from the decider within {} s", limits::HELLO.as_secs())]
    HelloTimeout,
    /// The stream failed.
    #[error("the decider's descriptor: {0}")]
    Io(#[from] io::Error),
    /// What came is no frame or message of the protocol.
    #[error("the decider broke the protocol: {0}")]
    Protocol(#[from] ProtocolError),
    /// A verdict that no rule permits.
    #[error("the decider broke the protocol: {0}")]
    Breach(#[from] Breach),
    /// The decider does not read.
    #[error("the decider does not take what is written to it")]
    Stuck,
}

/// Resolves when the link has ended, however.
#[derive(Debug, Clone)]
pub struct Ended(watch::Receiver<bool>);

impl Ended {
    /// Waits for the end of the link.
    pub async fn wait(&mut self) {
        // An error means that the sender is gone, which is the end as well.
        let _ = self.0.wait_for(|ended| *ended).await;
    }
}

/// The way to ask. Clones share one link.
#[derive(Debug, Clone)]
pub struct Link {
    shared: Arc<Shared>,
    timeout: Duration,
    /// Bodies held for the decider.
    pub budget: BodyBudget,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    written: Notify,
    ended: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    table: Table,
    out: Vec<u8>,
    /// Taken by the writer and not yet with the decider.
    writing: usize,
    closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.out = Vec::new();
        state.table.close();
        drop(state);
        self.ended.send_replace(true);
        self.written.notify_one();
    }
}

/// Exchanges the hellos and starts the link's tasks.
pub async fn connect(
    input: FdStream,
    output: FdStream,
    timeout: Duration,
) -> Result<(Link, Hello, Ended), LinkError> {
    let (mut input, mut output) = (input, output);
    let mut frame = Vec::new();
    encode_hello(&mut frame);
    output.write_all(&frame).await?;
    let mut frames = FrameReader::new(Side::Proxy);
    let hello = tokio::time::timeout(limits::HELLO, read_hello(&mut input, &mut frames))
        .await
        .map_err(|_| LinkError::HelloTimeout)??;

    let (ended, watcher) = watch::channel(false);
    let shared = Arc::new(Shared { state: Mutex::default(), written: Notify::new(), ended });
    tokio::spawn(run(Arc::clone(&shared), read(Arc::clone(&shared), input, frames, timeout)));
    tokio::spawn(run(Arc::clone(&shared), write(Arc::clone(&shared), output)));
    Ok((Link { shared, timeout, budget: BodyBudget::default() }, hello, Ended(watcher)))
}

async fn read_hello(input: &mut FdStream, frames: &mut FrameReader) -> Result<Hello, LinkError> {
    loop {
        if let Some(frame) = frames.next_frame().map_err(ProtocolError::from)? {
            return match parse_from_decider(frame)? {
                FromDecider::Hello(hello) => Ok(hello),
                FromDecider::Verdict(_) => Err(LinkError::NoHello),
            };
        }
        if input.read_buf(frames.tail()).await? == 0 {
            return Err(LinkError::EndedBeforeHello);
        }
    }
}

/// Hands out every verdict that has arrived whole.
fn decide_all(shared: &Shared, frames: &mut FrameReader) -> Result<(), LinkError> {
    let mut state = shared.lock();
    while let Some(frame) = frames.next_frame().map_err(ProtocolError::from)? {
        match parse_from_decider(frame)? {
            FromDecider::Verdict(verdict) => state.table.decide(verdict)?,
            FromDecider::Hello(_) => return Err(LinkError::SecondHello),
        }
    }
    Ok(())
}

/// Whatever ends one of the two tasks ends the link, a panic too: without a clock or a reader nobody would be told.
async fn run(shared: Arc<Shared>, task: impl Future<Output = Result<(), LinkError>>) {
    let closing = Closing(&shared);
    match task.await {
        Ok(()) => debug!("the decider has ended its stream"),
        Err(e) if shared.lock().closed => debug!("{e}"),
        Err(e) => warn!("{e}; stopping"),
    }
    drop(closing);
}

struct Closing<'a>(&'a Shared);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

async fn read(
    shared: Arc<Shared>,
    mut input: FdStream,
    mut frames: FrameReader,
    timeout: Duration,
) -> Result<(), LinkError> {
    let clock = tokio::time::sleep(timeout);
    tokio::pin!(clock);
    loop {
        decide_all(&shared, &mut frames)?;
        tokio::select! {
            read = input.read_buf(frames.tail()) => if read? == 0 { return Ok(()) },
            () = &mut clock => {
                // All questions have the same time, so one asked after this look expires after the next.
                let now = Instant::now();
                let next = shared.lock().table.expire(now);
                clock.as_mut().reset(next.unwrap_or(now + timeout));
            }
        }
    }
}

async fn write(shared: Arc<Shared>, mut output: FdStream) -> Result<(), LinkError> {
    let mut frames = Vec::new();
    loop {
        {
            let mut state = shared.lock();
            if state.closed {
                return Ok(());
            }
            std::mem::swap(&mut frames, &mut state.out);
            state.writing = frames.len();
        }
        if frames.is_empty() {
            shared.written.notified().await;
            continue;
        }
        output.write_all(&frames).await?;
        frames.clear();
        frames.shrink_to(limits::FRAMES_KEPT);
    }
}

impl Link {
    /// Asks about a request; `req.id` is filled in here. Dropping the question abandons it.
    pub fn ask(&self, mut req: ReqRef<'_>, fields: &Fields) -> Result<Question, AskError> {
        let mut state = self.shared.lock();
        if state.closed {
            return Err(AskError::Gone);
        }
        req.id = state.table.next_id();
        encode_req(&mut state.out, &req, fields.iter().map(|field| (field.name, field.value)))?;
        let (id, answer) = state.table.open(Instant::now() + self.timeout);
        self.queued(state)?;
        Ok(Question { link: self.clone(), id, answer: Some(answer), decided: false })
    }

    /// Closes the link: everybody who waits is told, nobody can ask any more.
    pub fn close(&self) {
        self.shared.close();
    }

    fn queued(&self, state: MutexGuard<'_, State>) -> Result<(), AskError> {
        let stuck = state.out.len() + state.writing > limits::FRAMES_QUEUED;
        drop(state);
        if stuck {
            warn!("{}; stopping", LinkError::Stuck);
            self.shared.close();
            return Err(AskError::Gone);
        }
        self.shared.written.notify_one();
        Ok(())
    }
}

/// Why a request could not even be asked about.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It is past the protocol's limits.
    #[error(transparent)]
    Req(#[from] ReqError),
    /// The link is gone.
    #[error("the decider is gone")]
    Gone,
}

/// One open question.
#[derive(Debug)]
pub struct Question {
    link: Link,
    id: u64,
    answer: Option<oneshot::Receiver<Answer>>,
    decided: bool,
}

impl Question {
    /// The decider's next word on the request. Safe to drop and call again while it is pending.
    pub async fn answer(&mut self) -> Answer {
        let Some(receiver) = &mut self.answer else { return Answer::Gone };
        let answer = receiver.await.unwrap_or(Answer::Gone);
        self.answer = None;
        self.decided = !matches!(answer, Answer::NeedBody { .. });
        answer
    }

    /// Goes on after a `need_body`: the next answer comes on `next`.
    pub fn go_on(&mut self, next: oneshot::Receiver<Answer>) {
        self.answer = Some(next);
    }

    /// Shows the body that the decider asked for. `cut`: there was more.
    pub fn show_body(&self, body: &[u8], cut: bool) -> Result<(), AskError> {
        let mut state = self.link.shared.lock();
        if state.closed {
            return Err(AskError::Gone);
        }
        encode_body(&mut state.out, self.id, body, cut).map_err(|_| AskError::Gone)?;
        state.table.shown(self.id, Instant::now() + self.link.timeout);
        self.link.queued(state)
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        // The client left, or the request was refused for another reason: its verdict may still come.
        if !self.decided {
            self.link.shared.lock().table.abandon(self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_of_ours_ends_the_link_too() {
        let (ended, watcher) = watch::channel(false);
        let shared = Arc::new(Shared { state: Mutex::default(), written: Notify::new(), ended });
        let (_, answer) = shared.lock().table.open(Instant::now());
        let task = tokio::spawn(run(Arc::clone(&shared), async { panic!("a bug") }));
        assert!(task.await.unwrap_err().is_panic());
        Ended(watcher).wait().await;
        assert!(matches!(answer.await, Ok(Answer::Gone)));
    }
}
