//! A deadline that moves with every request, without touching the runtime's timer wheel each time.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// One timer a connection keeps for its whole life.
///
/// Moving a deadline later costs nothing: the timer fires at the old time, sees that there is more to wait, and
/// is set again. On a busy connection that is once in five minutes instead of once a request.
#[derive(Debug)]
pub struct Timer {
    sleep: Pin<Box<Sleep>>,
    deadline: Instant,
}

impl Timer {
    /// A timer that fires `after` from now.
    pub fn new(after: Duration) -> Self {
        let deadline = Instant::now() + after;
        Self { sleep: Box::pin(tokio::time::sleep_until(deadline)), deadline }
    }

    /// Moves the deadline to `after` from now.
    pub fn set(&mut self, after: Duration) {
        self.deadline = Instant::now() + after;
        if self.deadline < self.sleep.deadline() {
            self.sleep.as_mut().reset(self.deadline);
        }
    }

    /// Ready once the deadline has passed.
    pub fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.sleep.as_mut().poll(cx).is_ready() {
            if Instant::now() >= self.deadline {
                return Poll::Ready(());
            }
            self.sleep.as_mut().reset(self.deadline);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn expired(timer: &mut Timer) -> Instant {
        std::future::poll_fn(|cx| timer.poll_expired(cx)).await;
        Instant::now()
    }

    #[tokio::test(start_paused = true)]
    async fn fires_at_the_last_deadline_set_whether_earlier_or_later() {
        let start = Instant::now();
        let mut timer = Timer::new(Duration::from_secs(30));
        timer.set(Duration::from_secs(300));
        assert_eq!(expired(&mut timer).await - start, Duration::from_secs(300));

        let start = Instant::now();
        timer.set(Duration::from_secs(300));
        timer.set(Duration::from_secs(10));
        assert_eq!(expired(&mut timer).await - start, Duration::from_secs(10));
    }
}
