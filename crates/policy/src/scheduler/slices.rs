//! How long a CPU-bound thread may hold the GIL while another one waits for it.
//!
//! Threads that compute take turns of one slice. On a single processor a thread that makes short calls never blocks if its
//! peers keep up with it, so it is CPU-bound as well, but it comes back from each of its calls before a thread that only
//! computes has a processor. The standard interpreter gives the latter two turns for one of each other. So its slice is three
//! slices long here, or longer where there are so many of the others that it would get less than the least share, and each
//! of the others has half a slice.
//!
//! To shorten the slices of the others alone does not work: a thread whose timer expires cannot displace the running one
//! before the kernel's next tick (4 ms at 250 Hz), so their turns are longer than their slices.
//!
//! Invariants: `computing` is the number of waiting CPU-bound threads that make no calls; among threads of one kind, and on
//! several processors, every slice is that of the configuration.

use super::Policy;
use crate::class::Class;
use crate::classify::QueueEntry;
use crate::config::Config;
use crate::thread::Thread;
use crate::{Nanos, ThreadId};

/// Short calls from which on a thread makes calls, and the most that are counted.
const CALLS: u8 = 16;
const MOST_CALLS: u8 = 4 * CALLS;
/// The slice of a thread that computes next to threads that make calls, in slices: at least, and at most.
const LEAST_SLICES: Nanos = 3;
const MOST_SLICES: Nanos = 8;

impl Thread {
    /// Whether the thread makes short calls all the time.
    const fn makes_calls(&self) -> bool {
        self.calls >= CALLS
    }

    /// Counts a short call.
    pub(crate) fn count_call(&mut self) {
        self.calls = (self.calls + 1).min(MOST_CALLS);
    }

    /// Counts a long hold without a drop, which makes earlier calls count half.
    pub(super) const fn count_long_hold(&mut self) {
        self.calls /= 2;
    }
}

impl Policy {
    /// What is left of the holder's slice, for a CPU-bound thread that waits.
    pub(super) fn slice_left(&self) -> Nanos {
        let Some(holder) = self.hold.holder.map(|holder| &self.threads[holder]) else {
            return self.config.slice_ns;
        };
        holder.slice_left_ns.min(self.slice_of(holder))
    }

    /// Accounts for the return of a CPU-bound thread on a single processor: what its call took was kept from the others. A
    /// slice that has just begun gets its length.
    pub(super) fn adapt_slice(&mut self, thread: ThreadId, entry: QueueEntry) {
        if !self.is_alone || entry.class != Class::Batch {
            return;
        }
        let thread_state = &self.threads[thread];
        self.threads[thread].slice_left_ns = if entry.resumes_slice {
            thread_state.slice_left_ns.saturating_sub(entry.call_ns)
        } else {
            self.slice_of(thread_state)
        };
    }

    /// Whether the holder has less than a slice, and is to be asked in time.
    pub(super) fn has_short_slice(&self) -> bool {
        let holder = self.hold.holder.map(|holder| &self.threads[holder]);
        holder.is_some_and(|holder| self.slice_of(holder) < self.config.slice_ns)
    }

    fn slice_of(&self, thread: &Thread) -> Nanos {
        let slice_ns = self.config.slice_ns;
        if !self.is_alone {
            return slice_ns;
        }
        if thread.makes_calls() {
            return if self.computing > 0 { slice_ns / 2 } else { slice_ns };
        }
        let callers = self.queues[Class::Batch.index()].len() - self.computing;
        if callers == 0 {
            return slice_ns;
        }
        let share = Nanos::from(self.config.batch_share_permille.min(Config::MOST_BATCH_SHARE));
        let others = Nanos::from(self.computing) + 1;
        let fair_ns = slice_ns * Nanos::from(callers) * share / ((1_000 - share) * others);
        fair_ns.clamp(LEAST_SLICES * slice_ns, MOST_SLICES * slice_ns)
    }

    /// Notes that a thread has joined its queue.
    pub(super) fn count_in(&mut self, thread: ThreadId) {
        self.computing += u32::from(self.only_computes(thread));
    }

    /// Notes that a thread leaves its queue.
    pub(super) fn count_out(&mut self, thread: ThreadId) {
        self.computing -= u32::from(self.only_computes(thread));
    }

    fn only_computes(&self, thread: ThreadId) -> bool {
        let thread_state = &self.threads[thread];
        thread_state.class == Class::Batch && !thread_state.makes_calls()
    }
}
