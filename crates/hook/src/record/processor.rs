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

/// The last reading of a thread's processor time, in nanoseconds.
pub(super) struct ProcessorTime {
    read: Cell<u64>,
    /// Time spent since then on anything but a long call.
    since: Cell<u64>,
    /// Whether the last call was a long one.
    is_in_row: Cell<bool>,
}

impl ProcessorTime {
    pub(super) const fn new() -> Self {
        Self {
            read: Cell::new(0),
            since: Cell::new(0),
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
