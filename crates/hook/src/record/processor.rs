//! Measures whether a thread computed during a long time off the GIL. C code that released the
//! GIL looks like I/O, but takes processor time.
//!
//! The clock of a thread's processor time costs a system call. So it is read after a long call
//! and, since long calls come in rows, before the next one. Before the first of a row, the time
//! that the thread spent otherwise since the last reading stands for its processor time, of
//! which it is an upper bound.
//! Invariant: [`ProcessorTime::after_long_call`] never returns too much.

use crate::clock;
use std::cell::Cell;

/// From so much time since the last reading on, all is read anew where a hold begins: [`ProcessorTime::starved`] takes
/// all of that time for the hold's own. Two system calls in so much time cost less than a thousandth of it.
const STALE_NS: u64 = 5_000_000;

/// The last reading of a thread's processor time, in nanoseconds.
pub(super) struct ProcessorTime {
    read: Cell<u64>,
    /// How often the thread had blocked and how often the kernel had preempted it when that was last read; the first
    /// is unknown unless that was at the take.
    blocked: Cell<Option<u64>>,
    preempted: Cell<u64>,
    /// Whether the last hold was long, and wanted: the next may be, too.
    was_wanted: Cell<bool>,
    /// Time spent since then on anything but a long call; without a reading, without end.
    since: Cell<u64>,
    /// Whether the last call was a long one.
    is_in_row: Cell<bool>,
}

impl ProcessorTime {
    pub(super) const fn new() -> Self {
        Self {
            read: Cell::new(0),
            blocked: Cell::new(None),
            preempted: Cell::new(0),
            was_wanted: Cell::new(false),
            since: Cell::new(u64::MAX),
            is_in_row: Cell::new(false),
        }
    }

    /// Reads the clock, from which the next measurement counts.
    #[inline(never)]
    pub(super) fn restart(&self) {
        self.read.set(clock::processor_time());
        self.since.set(0);
    }

    /// The processor time since the last reading.
    pub(super) fn since_reading(&self) -> u64 {
        clock::processor_time().saturating_sub(self.read.get())
    }

    /// For how much of a hold that ends now, at least, the thread had no processor though it could have run. The
    /// processor time since the last reading bounds that of the hold. A thread that was not preempted since, by the
    /// kernel's counts, or that blocked meanwhile, has waited for something with the GIL held and lacked nothing.
    pub(super) fn starved(&self, held: u64, (blocked, preempted): (u64, u64)) -> u64 {
        self.was_wanted.set(true);
        let has_blocked = self.blocked.take().is_some_and(|before| before != blocked);
        if self.preempted.replace(preempted) == preempted || has_blocked {
            return 0;
        }
        held.saturating_sub(self.since_reading())
    }

    /// Whether the last reading says too little about a hold that begins now.
    pub(super) fn is_stale(&self) -> bool {
        self.since.get() >= STALE_NS
    }

    /// A hold begins; `switches` reads the kernel's counts, which is worth its time only after a long hold, and where
    /// the time is read anew.
    pub(super) fn at_take(&self, switches: impl FnOnce() -> (u64, u64)) {
        let is_stale = self.is_stale();
        if is_stale {
            self.restart();
        }
        let was_wanted = self.was_wanted.take();
        if was_wanted || is_stale {
            let (blocked, preempted) = switches();
            self.blocked.set(Some(blocked));
            self.preempted.set(preempted);
        } else {
            self.blocked.set(None);
        }
    }

    /// Adds time spent otherwise: with the GIL, or in a call that was not long.
    pub(super) fn spend(&self, nanos: u64) {
        self.since.set(self.since.get().saturating_add(nanos));
    }

    /// A call that releases the GIL begins.
    pub(super) fn before_call(&self) {
        if self.is_in_row.get() {
            self.restart();
        }
    }

    /// A call that was not long has ended after `nanos`.
    pub(super) fn after_short_call(&self, nanos: u64) {
        self.is_in_row.set(false);
        self.spend(nanos);
    }

    /// A long call has ended; returns for how much of it the thread had a processor.
    pub(super) fn after_long_call(&self) -> u64 {
        let (read, since) = (self.read.get(), self.since.get());
        self.restart();
        self.is_in_row.set(true);
        self.read.get().saturating_sub(read).saturating_sub(since)
    }
}

#[cfg(test)]
mod tests {
    use super::ProcessorTime;
    use crate::clock;

    const COMPUTED_NS: u64 = 20_000_000;

    #[test]
    fn what_was_computed_before_a_hold_is_not_taken_for_its_own() {
        let time = ProcessorTime::new();
        time.restart();
        let before = clock::processor_time();
        while clock::processor_time() - before < COMPUTED_NS {
            std::hint::spin_loop();
        }
        time.spend(COMPUTED_NS);
        time.at_take(|| (0, 0));
        assert!(time.starved(COMPUTED_NS, (0, 1)) > 0);
    }

    #[test]
    fn a_thread_that_blocked_or_was_not_preempted_lacked_nothing() {
        for end in [(3, 7), (4, 8)] {
            let time = ProcessorTime::new();
            time.at_take(|| (3, 7));
            assert_eq!(time.starved(COMPUTED_NS, end), 0);
        }
        let time = ProcessorTime::new();
        time.at_take(|| (3, 7));
        assert!(time.starved(COMPUTED_NS, (3, 8)) > 0);
    }
}
