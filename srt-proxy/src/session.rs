//! What all connections of one set of listeners share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use srt_shared::domain::DomainPattern;
use tokio::sync::Notify;
use tracing::warn;

use crate::dial::Dialler;
use crate::events::Events;
use crate::governor::{Dated, Governor};
use crate::policy::{Policy, SettingsError};
use crate::tls::ServerTls;

/// What all sessions of the process share.
#[derive(Debug)]
pub struct Common {
    /// Where policies come from.
    pub governor: Governor,
    /// Makes upstream connections.
    pub dialler: Dialler,
    /// The server side of terminated tunnels.
    pub server_tls: ServerTls,
    /// Terminated tunnels.
    pub tunnels: Slots,
}

/// One set of listeners: an attached sandbox, or the listener of the command line.
#[derive(Debug)]
pub struct Session {
    /// What it shares with the others.
    pub common: Arc<Common>,
    /// Hosts it may reach besides those of the settings.
    allowed: Vec<DomainPattern>,
    policy: Mutex<Dated>,
    /// Where its events go.
    pub events: Events,
    /// Requests and answers under way, which a stop waits for.
    pub in_flight: InFlight,
}

impl Session {
    /// A session that may reach `allowed` besides.
    pub fn new(
        common: Arc<Common>,
        allowed: Vec<DomainPattern>,
        events: Events,
    ) -> Result<Self, SettingsError> {
        let policy = Mutex::new(common.governor.policy(&allowed)?);
        Ok(Self { common, allowed, policy, events, in_flight: InFlight::default() })
    }

    /// The policy in force. A connection takes it once and keeps it, so that no request is judged by half of one
    /// and half of another.
    pub fn policy(&self) -> Arc<Policy> {
        let mut dated = self.policy.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.common.governor.is_current(&dated) {
            match self.common.governor.policy(&self.allowed) {
                Ok(newer) => *dated = newer,
                // The same settings were tried before they were put into force.
                Err(e) => warn!("the policy before stays in force: {e}"),
            }
        }
        Arc::clone(&dated.policy)
    }
}

/// A bounded number of places.
#[derive(Debug, Default)]
pub struct Slots {
    taken: Arc<AtomicUsize>,
}

/// One taken place; dropping it frees it.
#[derive(Debug)]
pub struct Slot(Arc<AtomicUsize>);

impl Slots {
    /// A place, or `None` when `most` are taken.
    pub fn take(&self, most: usize) -> Option<Slot> {
        self.taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < most).then_some(n + 1))
            .ok()
            .map(|_| Slot(Arc::clone(&self.taken)))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts what a stop must wait for.
#[derive(Debug, Default)]
pub struct InFlight {
    count: AtomicUsize,
    none: Notify,
}

/// Something under way.
#[derive(Debug)]
pub struct Flight<'a>(&'a InFlight);

impl InFlight {
    /// Counts one more until the returned value is dropped.
    pub fn begin(&self) -> Flight<'_> {
        self.count.fetch_add(1, Ordering::Relaxed);
        Flight(self)
    }

    /// Ready when nothing is under way.
    pub async fn wait_until_none(&self) {
        loop {
            let changed = self.none.notified();
            if self.count.load(Ordering::Acquire) == 0 {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::Release) == 1 {
            self.0.none.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_bounded_and_come_back() {
        let slots = Slots::default();
        let first = slots.take(2).unwrap();
        let _second = slots.take(2).unwrap();
        assert!(slots.take(2).is_none());
        drop(first);
        assert!(slots.take(2).is_some());
        assert!(slots.take(0).is_none());
    }

    #[tokio::test]
    async fn the_wait_ends_with_the_last_flight() {
        let flights = InFlight::default();
        flights.wait_until_none().await;
        let one = flights.begin();
        let mut wait = Box::pin(flights.wait_until_none());
        assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(wait.as_mut().poll(cx))).await.is_pending());
        drop(one);
        wait.await;
    }
}
