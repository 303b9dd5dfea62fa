//! Step 3: the decider is asked about the request, and shown its body where it wants to see it.

use std::pin::pin;
use std::task::{Context, Poll};

use srt_shared::decider::{Edits, ReqRef};

use super::Stop;
use super::body::{RequestBody, Shown};
use super::refuse::Refusal;
use super::target::Target;
use crate::decider::{self, Answer, AskError, Link};
use crate::http::{PathAndQuery, RequestHead};
use crate::ingress::{ClientStream, Side};
use crate::limits;
use crate::timer::Timer;
use crate::wire::Wire;

/// What the decider is told.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The head as the client sent it.
    pub head: &'a RequestHead,
    /// The canonical target.
    pub target: &'a Target,
    /// Path and query.
    pub resource: &'a PathAndQuery,
    /// The `Host` header.
    pub host: Option<&'a [u8]>,
    /// The TLS server name.
    pub sni: Option<&'a str>,
}

impl Question<'_> {
    /// The decider's yes, with its edits; anything else is a refusal.
    pub async fn ask<S: ClientStream>(
        &self,
        link: &Link,
        client: &mut Wire<S>,
        body: &mut RequestBody,
        timer: &mut Timer,
    ) -> Result<Box<Edits>, Stop> {
        let req = ReqRef {
            id: 0,
            method: self.head.method(),
            host: self.target.host(),
            port: self.target.port(),
            host_header: self.host,
            sni: self.sni,
            path: self.resource.path().as_bytes(),
            query: self.resource.query().map(str::as_bytes),
        };
        let mut question = link.ask(req, self.head.fields())?;
        match wait(client, body, &mut question).await? {
            Answer::NeedBody { max, next } => {
                question.go_on(next);
                self.show_body(link, client, body, timer, &mut question, max).await
            }
            answer => judge(answer),
        }
    }

    async fn show_body<S: ClientStream>(
        &self,
        link: &Link,
        client: &mut Wire<S>,
        body: &mut RequestBody,
        timer: &mut Timer,
        question: &mut decider::Question,
        max: usize,
    ) -> Result<Box<Edits>, Stop> {
        // Servers ignore or refuse content of these methods (RFC 9110 section 9.3.1), so a decision that rests on
        // it would rest on nothing. An empty chunked body is no content; that shows in its first piece.
        let bodyless = matches!(self.head.method(), "GET" | "HEAD" | "OPTIONS");
        let max = if bodyless { 0 } else { max };
        let reservation = link.budget.reserve(body.cost(max));
        body.hold(reservation.ok_or(Refusal::DeciderUnavailable("too many bodies are held for it"))?);

        let gathered = gather(client, body, timer, question, max).await?;
        if bodyless && (gathered.len > 0 || gathered.cut) {
            return Err(Refusal::BodylessMethodBody.into());
        }
        question.show_body(body.shown(client, gathered), gathered.cut)?;
        judge(wait(client, body, question).await?)
    }
}

/// Reads what is to be shown. Meanwhile only a deny can come.
async fn gather<S: ClientStream>(
    client: &mut Wire<S>,
    body: &mut RequestBody,
    timer: &mut Timer,
    question: &mut decider::Question,
    max: usize,
) -> Result<Shown, Stop> {
    timer.set(limits::IDLE);
    let mut denied = pin!(question.answer());
    std::future::poll_fn(|cx| {
        if let Poll::Ready(answer) = denied.as_mut().poll(cx) {
            return Poll::Ready(Err(judge(answer).err().unwrap_or(Stop::Cut("no verdict"))));
        }
        let before = client.input.len();
        if let Poll::Ready(result) = body.poll_gather(cx, client, max) {
            return Poll::Ready(result.map_err(|malformed| match malformed {
                Some(error) => Refusal::bad_request(error.to_string()).into(),
                None => Stop::Cut("the client left inside the body"),
            }));
        }
        if client.input.len() != before {
            timer.set(limits::IDLE);
        }
        timer.poll_expired(cx).map(|()| Err(Stop::Cut("nothing of the body came for too long")))
    })
    .await
}

/// Waits for an answer, and for the client to leave. Reads a little ahead for that, never more.
async fn wait<S: ClientStream>(
    client: &mut Wire<S>,
    body: &RequestBody,
    question: &mut decider::Question,
) -> Result<Answer, Stop> {
    let mut answer = pin!(question.answer());
    std::future::poll_fn(|cx| {
        if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
            // Nothing wakes us when it leaves behind what is not read, so an allow might come for nobody.
            return Poll::Ready(if is_gone_unread(client) { Err(LEFT) } else { Ok(answer) });
        }
        if has_left(cx, client, body) {
            return Poll::Ready(Err(LEFT));
        }
        Poll::Pending
    })
    .await
}

const LEFT: Stop = Stop::Cut("the client left");

/// Looks whether the client is still there. Ending its stream inside the body breaks the request off.
pub fn has_left<S: ClientStream>(cx: &mut Context<'_>, client: &mut Wire<S>, body: &RequestBody) -> bool {
    while !is_full(client) && !client.at_eof() {
        match client.poll_fill(cx, limits::READ_IDLE) {
            Poll::Ready(Ok(0)) => return body.is_owed(&client.input) || client.io().is_gone(),
            Poll::Ready(Ok(_)) => {}
            Poll::Ready(Err(_)) => return true,
            Poll::Pending => break,
        }
    }
    is_gone_unread(client)
}

/// Whether the client will send no more, as far as can be told without reading on.
pub fn has_ended<S: ClientStream>(client: &Wire<S>) -> bool {
    client.at_eof() || (is_full(client) && client.io().side() != Side::Open)
}

/// Whether no more is read ahead. How the stream ends, the socket must then tell when it is asked.
pub fn is_full<S: ClientStream>(client: &Wire<S>) -> bool {
    client.input.len() >= limits::PIPELINED
}

fn is_gone_unread<S: ClientStream>(client: &Wire<S>) -> bool {
    is_full(client) && client.io().side() == Side::Gone
}

fn judge(answer: Answer) -> Result<Box<Edits>, Stop> {
    let refusal = match answer {
        Answer::Allow(edits) => return Ok(edits),
        Answer::Deny(denial) => {
            Refusal::Decider { status: denial.status(), reason: denial.reason().map(str::to_owned) }
        }
        // The table lets no second `need_body` through.
        Answer::NeedBody { .. } | Answer::Gone => Refusal::DeciderUnavailable("the decider is gone"),
        Answer::TimedOut => Refusal::DeciderUnavailable("it did not answer in time"),
    };
    Err(refusal.into())
}

impl From<AskError> for Stop {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Req(e) => Refusal::bad_request(e.to_string()).into(),
            AskError::Gone => Refusal::DeciderUnavailable("the decider is gone").into(),
        }
    }
}
