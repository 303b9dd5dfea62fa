//! From a message of the proxy to the answer: the decider without its socket.

use std::{collections::BTreeMap, sync::Arc};

use srt_shared::decider::{Body, Decision, Denial, FromProxy, Req, Verdict};
use thiserror::Error;

use crate::{ask::Ask, audit::Audit, limits::MAX_WAITING, policy::CurrentPolicy};

/// Answers one proxy.
#[derive(Debug)]
pub struct Answerer {
    policy: Arc<CurrentPolicy>,
    audit: Audit,
    /// Requests whose body was asked for.
    waiting: BTreeMap<u64, Req>,
    /// The last id asked about.
    newest: u64,
    greeted: bool,
}

/// What is to be sent to the proxy.
#[derive(Debug)]
pub enum Reply {
    /// The hello, which the policy has.
    Hello,
    /// A verdict.
    Verdict(Verdict),
}

/// How the proxy broke the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum OutOfOrder {
    /// Something came before the hello.
    #[error("the proxy asked before its hello")]
    NoHello,
    /// A hello comes once.
    #[error("the proxy said hello twice")]
    SecondHello,
    /// Ids rise.
    #[error("the proxy used an id that does not follow the last")]
    Id,
    /// A body comes once, and only if it was asked for.
    #[error("the proxy sent a body that was not asked for")]
    UnaskedBody,
}

impl Answerer {
    /// An answerer at the start of its stream.
    pub fn new(policy: Arc<CurrentPolicy>, audit: Audit) -> Self {
        Self { policy, audit, waiting: BTreeMap::new(), newest: 0, greeted: false }
    }

    /// Takes the next message.
    ///
    /// # Errors
    /// [`OutOfOrder`]: the link must end.
    pub fn answer(&mut self, message: FromProxy) -> Result<Reply, OutOfOrder> {
        match message {
            FromProxy::Hello if self.greeted => Err(OutOfOrder::SecondHello),
            FromProxy::Hello => {
                self.greeted = true;
                Ok(Reply::Hello)
            }
            _ if !self.greeted => Err(OutOfOrder::NoHello),
            FromProxy::Req(req) => self.answer_req(*req),
            FromProxy::Body(body) => self.answer_body(&body),
        }
    }

    fn answer_req(&mut self, req: Req) -> Result<Reply, OutOfOrder> {
        if req.id <= self.newest {
            return Err(OutOfOrder::Id);
        }
        self.newest = req.id;
        // A client that leaves while its body is read is never heard of again.
        self.waiting = self.waiting.split_off(&self.newest.saturating_sub(MAX_WAITING));
        let decision = self.decide(&req, None);
        let id = req.id;
        if let Decision::NeedBody(_) = decision {
            self.waiting.insert(id, req);
        }
        Ok(Reply::Verdict(Verdict { id, decision }))
    }

    fn answer_body(&mut self, body: &Body) -> Result<Reply, OutOfOrder> {
        let decision = match self.waiting.remove(&body.id) {
            Some(req) => self.decide(&req, Some(body)),
            None if body.id + MAX_WAITING < self.newest => {
                Decision::Deny(unavailable("the body came too late"))
            }
            None => return Err(OutOfOrder::UnaskedBody),
        };
        Ok(Reply::Verdict(Verdict { id: body.id, decision }))
    }

    /// What cannot be logged does not go out: a log with holes says that nothing happened.
    fn decide(&mut self, req: &Req, body: Option<&Body>) -> Decision {
        let policy = self.policy.now();
        let decided = policy.decide(&Ask::new(req, body));
        match self.audit.record(req, &decided) {
            Ok(()) => decided.decision,
            Err(error) => {
                eprintln!(
                    "srt-decider-example: --log: {error}; requests are refused until it can be written"
                );
                Decision::Deny(unavailable("the decider cannot write its log"))
            }
        }
    }
}

fn unavailable(reason: &str) -> Denial {
    Denial::new(503, Some(reason)).expect("invariant: our own reasons are short and plain")
}

#[cfg(test)]
mod tests;
