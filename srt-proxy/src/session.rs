//! What all connections of one set of listeners share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::dial::Dialler;
use crate::events::Events;
use crate::policy::Policy;
use crate::tls::ServerTls;

/// One set of listeners, its policy and its counters.
#[derive(Debug)]
pub struct Session {
    policy: Mutex<Arc<Policy>>,
    /// Makes upstream connections.
    pub dialler: Dialler,
    /// The server side of terminated tunnels.
    pub server_tls: ServerTls,
    /// Where events go.
    pub events: Events,
    /// Terminated tunnels.
    pub tunnels: Slots,
    /// Requests and answers under way, which a stop waits for.
    pub in_flight: InFlight,
}

impl Session {
    /// A session under `policy`.
    pub fn new(policy: Policy, dialler: Dialler, events: Events) -> Self {
        let max_tunnels = policy.max_tunnels;
        Self {
            policy: Mutex::new(Arc::new(policy)),
            dialler,
            server_tls: ServerTls::new(),
            events,
            tunnels: Slots { taken: Arc::default(), most: AtomicUsize::new(max_tunnels) },
            in_flight: InFlight::default(),
        }
    }

    /// The policy in force. A connection takes it once and keeps it, so that no request is judged by half of one
    /// and half of another.
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A bounded number of places.
#[derive(Debug)]
pub struct Slots {
    taken: Arc<AtomicUsize>,
    most: AtomicUsize,
}

/// One taken place; dropping it frees it.
#[derive(Debug)]
pub struct Slot(Arc<AtomicUsize>);

impl Slots {
    /// A place, or `None` when all are taken.
    pub fn take(&self) -> Option<Slot> {
        let most = self.most.load(Ordering::Relaxed);
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
        let slots = Slots { taken: Arc::default(), most: AtomicUsize::new(2) };
        let first = slots.take().unwrap();
        let _second = slots.take().unwrap();
        assert!(slots.take().is_none());
        drop(first);
        assert!(slots.take().is_some());
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
