//! What the proxy tells of one sandbox, collected while it runs: the proxy does not wait for a reader, and a command
//! could hide a refusal behind hundreds of others.

use std::os::fd::{AsFd, BorrowedFd};

use srt_shared::event::Event;

use super::attach::{Liveness, Session};
use crate::limits::MAX_EVENTS;

/// The collection.
#[derive(Debug)]
pub struct News {
    session: Option<Session>,
    begun: bool,
    told: Told,
}

/// What has been told in the end.
#[derive(Debug, Default)]
pub struct Told {
    /// In order.
    pub events: Vec<Event>,
    /// How many more there were.
    pub unlisted: usize,
    /// Whether the proxy ended first.
    pub proxy_gone: bool,
}

impl News {
    /// Of a session, or none.
    pub fn of(session: Option<Session>) -> Self {
        Self { session, begun: false, told: Told::default() }
    }

    /// The proxy has answered the sandbox's first process, which reads the same socket. The rest is for us.
    pub fn begin(&mut self) {
        self.begun = true;
    }

    /// What becomes readable when there are some. `None` before they begin and after they have ended.
    pub fn source(&self) -> Option<BorrowedFd<'_>> {
        let listening = self.begun && !self.told.proxy_gone;
        self.session.as_ref().filter(|_| listening).map(Session::as_fd)
    }

    /// Takes what is there.
    pub fn read(&mut self) {
        let Some(session) = &self.session else { return };
        let (events, liveness) = session.events();
        self.told.proxy_gone |= liveness == Liveness::Gone;
        for event in events {
            if self.told.events.len() < MAX_EVENTS {
                self.told.events.push(event);
            } else {
                self.told.unlisted += 1;
            }
        }
    }

    /// Takes the rest.
    pub fn finish(mut self) -> Told {
        self.read();
        self.told
    }
}
