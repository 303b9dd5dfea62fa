//! Bodies held for the decider, bounded in all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::limits;

/// How much of [`limits::HELD_BODIES`] is taken.
#[derive(Debug, Default, Clone)]
pub struct BodyBudget {
    taken: Arc<AtomicUsize>,
}

impl BodyBudget {
    /// Takes `bytes` for as long as the returned value lives; `None` when that is more than is left.
    pub fn reserve(&self, bytes: usize) -> Option<Reservation> {
        self.taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
                taken.checked_add(bytes).filter(|&sum| sum <= limits::HELD_BODIES)
            })
            .ok()?;
        Some(Reservation { taken: Arc::clone(&self.taken), bytes })
    }
}

/// A part of the budget, given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    taken: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_never_exceeded_and_comes_back() {
        let budget = BodyBudget::default();
        let half = limits::HELD_BODIES / 2;
        let first = budget.reserve(half).unwrap();
        let second = budget.reserve(half).unwrap();
        assert!(budget.reserve(1).is_none());
        assert!(budget.reserve(usize::MAX).is_none());
        drop(first);
        assert!(budget.reserve(half + 1).is_none());
        assert!(budget.reserve(half).is_some());
        drop(second);
    }
}
