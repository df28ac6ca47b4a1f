//! The short way for a thread that drops the GIL and takes it again, while the heir that it has overtaken waits for the
//! only processor.
//!
//! Nothing can change in such a pair: the heir has been notified, no other thread has come, and the holder is of the same
//! class as before. A thread that fetches the rows of a query does a pair for each row, and the decisions would cost as
//! much as the row. So the hold goes on, without a clock, and what the thread does off the GIL, a few microseconds, counts
//! as a part of it.
//!
//! Invariants: every event of another thread, and every full drop or take, ends the short way; after [`MOST_PAIRS`] a
//! full pair follows, so fairness and shares are late by no more than these.

use super::{Hold, Policy};
use crate::{Nanos, ThreadId};

/// How many pairs are made so, between two whose times are read.
const MOST_PAIRS: u32 = 32;

/// A thread that may take the short way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quick {
    thread: ThreadId,
    pairs: u32,
    is_off: bool,
}

impl Policy {
    /// On a single processor, the holder has overtaken an heir that is notified, and so waits for the processor: the holder
    /// may take the short way if it is expected back after its next drop.
    pub fn allow_quick_returns(&mut self, holder: ThreadId) {
        let is_back_soon = self.threads[holder].predictor.is_short_expected();
        if is_back_soon && self.hold.holder == Some(holder) {
            self.quick = Some(Quick {
                thread: holder,
                pairs: 0,
                is_off: false,
            });
        }
    }

    /// Whether a drop is reported by this call alone; else by [`dropped`](Self::dropped).
    pub fn dropped_quickly(&mut self, thread: Option<ThreadId>) -> bool {
        match &mut self.quick {
            Some(quick) if Some(quick.thread) == thread && quick.pairs < MOST_PAIRS && self.hold.asked_at.is_none() => {
                quick.pairs += 1;
                quick.is_off = true;
                self.threads[quick.thread].count_call();
                self.is_held = false;
                true
            }
            _ => false,
        }
    }

    /// Whether a take is reported by this call alone; else by [`taken`](Self::taken).
    pub fn taken_quickly(&mut self, thread: Option<ThreadId>) -> bool {
        match &mut self.quick {
            Some(quick) if Some(quick.thread) == thread && quick.is_off => {
                quick.is_off = false;
                self.is_held = true;
                true
            }
            _ => false,
        }
    }

    /// Ends the short way. A thread that is off the GIL has dropped it for good. Nobody knows when: another thread that
    /// finds the GIL free may have waited for a processor meanwhile, so no more than a grace counts as its hold.
    pub(super) fn end_quick_returns(&mut self, now: Nanos) {
        if let Some(quick) = self.quick.take()
            && quick.is_off
        {
            let hold = std::mem::replace(&mut self.hold, Hold::unknown());
            let latest = hold.since.map_or(now, |since| since + self.config.grace_ns);
            self.end_hold(quick.thread, now.min(latest), hold);
        }
    }
}
