//! Which questions are open, and what a verdict for an id means: an answer, something late to be dropped, or a
//! breach of the protocol. Pure state, so that every order of events can be tested.

use std::collections::{HashMap, VecDeque};

use srt_shared::decider::{Decision, Denial, Edits, Verdict};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// What the decider said, as the asking request gets it.
#[derive(Debug)]
pub enum Answer {
    /// Forward it, edited.
    Allow(Box<Edits>),
    /// Refuse it.
    Deny(Denial),
    /// Show up to `max` bytes of the body first. The next answer comes on `next`; until the body is shown only a
    /// deny can.
    NeedBody {
        /// Bytes wanted at most.
        max: usize,
        /// Where the verdict after that arrives.
        next: oneshot::Receiver<Answer>,
    },
    /// No verdict in time.
    TimedOut,
    /// The link is gone.
    Gone,
}

/// A verdict that no rule of the protocol permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Breach {
    /// Never asked, decided before, or forgotten.
    #[error("a verdict for an id that nothing waits on")]
    UnknownId,
    /// `need_body` twice.
    #[error("a second need_body for one request")]
    SecondNeedBody,
    /// `allow` before the body was shown.
    #[error("an allow while the body is still being read")]
    AllowWhileReading,
}

/// Ids more than this below the newest are forgotten; a verdict for one is then a breach.
const REMEMBERED: u64 = 4096;

#[derive(Debug)]
enum Slot {
    /// The request is asked about.
    Asked(oneshot::Sender<Answer>),
    /// The decider wants the body, which the client is still sending: no timer, and only a deny may come.
    Reading(oneshot::Sender<Answer>),
    /// The body was shown.
    Shown(oneshot::Sender<Answer>),
    /// Nobody waits any more: a late verdict is dropped without effect.
    Dropped,
}

/// All open questions.
#[derive(Debug, Default)]
pub struct Table {
    newest: u64,
    slots: HashMap<u64, Slot>,
    dropped: VecDeque<u64>,
    /// Every question has the same time, so the deadlines are in order by themselves.
    deadlines: VecDeque<(Instant, u64, Phase)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Asked,
    Shown,
}

impl Table {
    /// The id the next question gets.
    pub fn next_id(&self) -> u64 {
        self.newest + 1
    }

    /// Opens the question [`Self::next_id`] named.
    pub fn open(&mut self, deadline: Instant) -> (u64, oneshot::Receiver<Answer>) {
        self.newest += 1;
        let (tx, rx) = oneshot::channel();
        self.slots.insert(self.newest, Slot::Asked(tx));
        self.forget_old();
        self.deadlines.push_back((deadline, self.newest, Phase::Asked));
        (self.newest, rx)
    }

    /// The body of `id` was written to the decider: from now its timer runs again.
    pub fn shown(&mut self, id: u64, deadline: Instant) {
        if let Some(slot) = self.slots.get_mut(&id)
            && let Slot::Reading(_) = slot
            && let Slot::Reading(tx) = std::mem::replace(slot, Slot::Dropped)
        {
            *slot = Slot::Shown(tx);
            self.deadlines.push_back((deadline, id, Phase::Shown));
        }
    }

    /// The asking request is gone, or was refused for another reason.
    pub fn abandon(&mut self, id: u64) {
        if let Some(slot) = self.slots.get_mut(&id)
            && !matches!(slot, Slot::Dropped)
        {
            *slot = Slot::Dropped;
            self.dropped.push_back(id);
        }
    }

    /// Hands a verdict to whoever waits for it.
    pub fn decide(&mut self, verdict: Verdict) -> Result<(), Breach> {
        let slot = self.slots.get_mut(&verdict.id).ok_or(Breach::UnknownId)?;
        match (&*slot, &verdict.decision) {
            (Slot::Dropped, _) => return Ok(()),
            (Slot::Reading(_), Decision::Allow(_)) => return Err(Breach::AllowWhileReading),
            (Slot::Reading(_) | Slot::Shown(_), Decision::NeedBody(_)) => return Err(Breach::SecondNeedBody),
            _ => {}
        }
        let (answer, after) = match verdict.decision {
            Decision::Allow(edits) => (Answer::Allow(Box::new(edits)), None),
            Decision::Deny(denial) => (Answer::Deny(denial), None),
            Decision::NeedBody(wanted) => {
                let (tx, next) = oneshot::channel();
                (Answer::NeedBody { max: wanted.max() as usize, next }, Some(Slot::Reading(tx)))
            }
        };
        let waiting = match after {
            Some(reading) => std::mem::replace(slot, reading),
            None => self.slots.remove(&verdict.id).expect("invariant: looked up above"),
        };
        if let Slot::Asked(tx) | Slot::Reading(tx) | Slot::Shown(tx) = waiting {
            // The request may have gone a moment ago; its verdict is then late like any other.
            let _ = tx.send(answer);
        }
        Ok(())
    }

    /// Ends every question whose time is up, and says when to look again.
    pub fn expire(&mut self, now: Instant) -> Option<Instant> {
        while let Some(&(deadline, id, phase)) = self.deadlines.front() {
            if deadline > now {
                return Some(deadline);
            }
            self.deadlines.pop_front();
            if self.phase_of(id) == Some(phase)
                && let Some(slot) = self.slots.get_mut(&id)
                && let Slot::Asked(tx) | Slot::Shown(tx) = std::mem::replace(slot, Slot::Dropped)
            {
                self.dropped.push_back(id);
                let _ = tx.send(Answer::TimedOut);
            }
        }
        None
    }

    /// The link is gone: nobody will get a verdict.
    pub fn close(&mut self) {
        for (_, slot) in self.slots.drain() {
            if let Slot::Asked(tx) | Slot::Reading(tx) | Slot::Shown(tx) = slot {
                let _ = tx.send(Answer::Gone);
            }
        }
        self.deadlines.clear();
        self.dropped.clear();
    }

    /// What the timer of `id` runs for, if it does.
    fn phase_of(&self, id: u64) -> Option<Phase> {
        match self.slots.get(&id)? {
            Slot::Asked(_) => Some(Phase::Asked),
            Slot::Shown(_) => Some(Phase::Shown),
            Slot::Reading(_) | Slot::Dropped => None,
        }
    }

    fn forget_old(&mut self) {
        // A verdict mostly comes long before its deadline, and minutes of busy traffic would add up.
        while let Some(&(_, id, phase)) = self.deadlines.front()
            && self.phase_of(id) != Some(phase)
        {
            self.deadlines.pop_front();
        }
        while let Some(&id) = self.dropped.front()
            && id + REMEMBERED < self.newest
        {
            self.dropped.pop_front();
            self.slots.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests;
