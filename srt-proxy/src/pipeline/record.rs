//! What is told of a request or connection: one event, and a line of log.

use std::time::Instant;

use srt_shared::event::{Event, EventKind, IngressKind, Timestamp};
use tracing::debug;

use super::refuse::{About, Failure, NotServed, Refusal};
use super::target::Target;
use crate::limits;
use crate::session::Session;

/// Gathers what an event says, from the head of a request to its end.
#[derive(Debug)]
pub struct Record<'a> {
    session: &'a Session,
    ingress: IngressKind,
    target: Option<&'a Target>,
    method: Option<&'a str>,
    path: Option<&'a str>,
    begun: Instant,
    /// Bytes of the request's body.
    pub bytes_in: u64,
    /// Bytes of the answer's body.
    pub bytes_out: u64,
}

impl<'a> Record<'a> {
    /// A record of what begins now.
    pub fn new(session: &'a Session, ingress: IngressKind, target: Option<&'a Target>) -> Self {
        let begun = Instant::now();
        Self { session, ingress, target, method: None, path: None, begun, bytes_in: 0, bytes_out: 0 }
    }

    /// The method, where there is a request.
    pub fn set_method(&mut self, method: &'a str) {
        self.method = Some(method);
    }

    /// The target, once it is known.
    pub fn set_target(&mut self, target: &'a Target, path: &'a str) {
        self.target = Some(target);
        self.path = Some(path);
    }

    /// What answers speak about.
    pub fn about(&self) -> About<'a> {
        About { target: self.target }
    }

    /// The upstream answered.
    pub fn allowed(&self, status: u16) {
        debug!(status, method = self.method, "{}: allowed", self.about());
        self.send(EventKind::Allowed, Some(status), |_| {});
    }

    /// It was refused.
    pub fn refused(&self, refusal: &Refusal) {
        debug!(code = %refusal.code(), method = self.method, "{}: refused: {}", self.about(), refusal.reason());
        self.send(EventKind::Refused, Some(refusal.status()), |event| {
            event.code = Some(refusal.code());
            event.rule = refusal.rule().map(str::to_owned);
            event.reason = Some(refusal.reason());
        });
    }

    /// The upstream failed.
    pub fn failed(&self, failure: &Failure) {
        debug!(method = self.method, "{}: failed: {}", self.about(), failure.reason);
        self.send(EventKind::Failed, Some(failure.status), |event| {
            event.reason = Some(failure.reason.clone().into_owned());
        });
    }

    /// It got an answer of ours.
    pub fn not_served(&self, why: &NotServed) {
        match why {
            NotServed::Refused(refusal) => self.refused(refusal),
            NotServed::Failed(failure) => self.failed(failure),
        }
    }

    /// It ended before an answer was complete.
    pub fn cut_short(&self, why: &str) {
        debug!(method = self.method, "{}: {why}", self.about());
        self.send(EventKind::Closed, None, |event| event.reason = Some(why.to_owned()));
    }

    fn send(&self, kind: EventKind, status: Option<u16>, fill: impl FnOnce(&mut Event)) {
        if !self.session.events.wants(kind) {
            return;
        }
        let mut event = Event {
            time: Timestamp::now(),
            event: kind,
            session: self.session.events.session().map(str::to_owned),
            ingress: self.ingress,
            host: self.target.map(|t| t.host().to_string()).unwrap_or_default(),
            port: self.target.map_or(0, Target::port),
            method: self.method.map(shorten),
            path: self.path.map(shorten),
            code: None,
            // SOCKS answers with no status; the requests in its tunnels do.
            status: status.filter(|_| self.ingress != IngressKind::Socks || self.method.is_some()),
            rule: None,
            reason: None,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            ms: (self.begun.elapsed().as_secs_f64() * 10_000.0).round() / 10.0,
        };
        fill(&mut event);
        self.session.events.send(event);
    }
}

/// So much of a text of the client's as an event shows: whoever is refused must not make the event too large to be
/// delivered.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(limits::EVENT_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_writes_is_told_up_to_a_limit() {
        let most = "a".repeat(limits::EVENT_TEXT);
        assert_eq!(shorten("/path"), "/path");
        assert_eq!(shorten(&most), most);
        assert_eq!(shorten(&format!("{most}b")), format!("{most}…"));
    }
}
