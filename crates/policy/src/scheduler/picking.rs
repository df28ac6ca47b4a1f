//! Picks the heir of the GIL, and how long the GIL lingers for a thread that returns.
//!
//! Invariants: the best class first, first come first served within it, with two exceptions: an
//! aged waiter at one pick in `aged_pick_every`, and the least share of CPU-bound threads. Neither
//! applies at the drop of a CPU-bound thread that was asked on behalf of a better class: it
//! would only change which CPU-bound thread runs.

use super::{Heir, Hold, Pick, Policy};
use crate::class::Class;
use crate::queue::Queue;
use crate::{Nanos, ThreadId};

/// How often an interactive heir lingers in one wait. A burst of work makes a few short calls; threads that make
/// nothing else would keep the GIL among themselves.
const MOST_LINGERS: u32 = 4;

impl Policy {
    pub(super) fn pick(&mut self, now: Nanos) -> Option<(ThreadId, Pick)> {
        let first = self.first()?;
        if self.threads[first].class != Class::Batch
            && self.is_batch_owed()
            && let Some(batch) = self.queues[Class::Batch.index()].head()
        {
            self.stats.share_picks += 1;
            return Some((batch, Pick::Share));
        }
        self.picks_since_aged = self.picks_since_aged.saturating_add(1);
        if self.picks_since_aged >= self.config.aged_pick_every
            && let Some(aged) = self.aged(now)
            && aged != first
        {
            self.stats.aged_picks += 1;
            return Some((aged, Pick::Aged));
        }
        Some((first, Pick::First))
    }

    /// Whether CPU-bound threads are owed a quantum of their least share.
    fn is_batch_owed(&self) -> bool {
        self.batch_credit_ns >= self.config.batch_quantum_ns.cast_signed()
    }

    pub(super) fn first(&self) -> Option<ThreadId> {
        self.queues.iter().find_map(Queue::head)
    }

    /// The longest waiting head, if it has aged.
    pub(super) fn aged(&self, now: Nanos) -> Option<ThreadId> {
        let heads = self.queues.iter().filter_map(Queue::head);
        let oldest = heads.min_by_key(|&head| self.threads[head].waiting_since)?;
        self.is_aged(oldest, now).then_some(oldest)
    }

    pub(super) fn is_aged(&self, thread: ThreadId, now: Nanos) -> bool {
        self.threads[thread].waiting_since + self.config.age_ns <= now
    }

    /// How long an awake heir does not take the GIL after this drop, and whether a sleeping heir is woken. A CPU-bound
    /// heir lingers, and sleeps on, if an interactive thread is expected before a hand-over to the heir and back would
    /// have paid off. On a single processor to wake it costs one system call, which is less than the timer that a GIL
    /// which lingers relies on; so it does not linger there. Any other heir lingers, and is woken, if the dropper itself
    /// is expected: it is in the middle of its work, perhaps with a lock that the heir wants. An overdue heir never
    /// lingers: the threads that return immediately may be a pair that wakes each other up, and could do so for ever.
    pub(super) fn linger(&mut self, dropper: Option<ThreadId>, hold: Hold, heir: Heir, now: Nanos) -> (Nanos, bool) {
        let thread_state = &self.threads[heir.thread];
        if hold.class == Class::Batch {
            return (0, true);
        }
        if thread_state.class != Class::Batch {
            return (self.linger_for_dropper(dropper, hold, heir, now), true);
        }
        self.gap_since = Some(now);
        let is_back_soon = dropper.is_some_and(|dropper| self.threads[dropper].predictor.is_short_expected());
        let is_overdue = heir.pick != Pick::First || self.is_aged(heir.thread, now);
        if self.is_alone
            || is_overdue
            || !self.is_watched(now)
            || hold.asked_at.is_some()
            || !(is_back_soon || self.gaps.is_short_expected())
        {
            return (0, true);
        }
        self.stats.lingers += 1;
        self.is_lingering = true;
        (self.config.linger_ns, false)
    }

    fn linger_for_dropper(&mut self, dropper: Option<ThreadId>, hold: Hold, heir: Heir, now: Nanos) -> Nanos {
        let is_back_soon = dropper.is_some_and(|dropper| self.threads[dropper].predictor.is_short_expected());
        let is_overdue = heir.pick != Pick::First || self.is_aged(heir.thread, now);
        let lingers = &mut self.threads[heir.thread].lingers;
        if !is_back_soon || is_overdue || hold.asked_at.is_some() || *lingers == MOST_LINGERS {
            return 0;
        }
        *lingers += 1;
        self.config.linger_ns
    }

    /// Records the end of a gap in which only CPU-bound threads wanted the GIL.
    pub(super) fn finish_gap(&mut self, class: Class, now: Nanos) {
        if class != Class::Batch
            && let Some(since) = self.gap_since.take()
        {
            self.gaps.record(now.saturating_sub(since) < self.config.short_ns);
        }
    }

    /// Until when no thread asks the new holder to drop. A CPU-bound thread that is owed its least
    /// share, or a thread that was picked out of order, runs for at least a quantum.
    pub(super) fn protection(&self, heir: Option<Heir>, class: Class, now: Nanos) -> Nanos {
        let is_owed = class == Class::Batch && self.is_batch_owed();
        if is_owed || heir.is_some_and(|heir| heir.pick != Pick::First) {
            now + self.config.batch_quantum_ns
        } else {
            0
        }
    }
}
