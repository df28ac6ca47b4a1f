//! The processors: who runs, who waits for a processor, and where a thread wakes.
//!
//! Run queues are first come first served: a thread that wakes up can cut short
//! the turn of the one that runs, but overtakes nobody, so the kernel starves
//! nobody, and whoever starves does so at the GIL.
//!
//! Invariant: a thread is on one processor or in one run queue, or in none; no
//! processor is idle while its own run queue is not empty.

use super::scenario::Machine;
use crate::Nanos;
use std::collections::VecDeque;

/// A thread runs at least for so long before a wake-up cuts its turn short.
const GRANULARITY_NS: Nanos = 50_000;

#[derive(Debug, Clone, Default)]
pub(super) struct Core {
    pub(super) running: Option<usize>,
    pub(super) queue: VecDeque<usize>,
    /// Number of the current turn, and its start.
    pub(super) number: u32,
    since: Nanos,
}

#[derive(Debug)]
pub(super) struct Cores {
    pub(super) all: Vec<Core>,
    /// How long a turn lasts while others wait, and once one has woken up.
    slice_ns: Nanos,
    slice_at_wakeup_ns: Nanos,
    is_sticky: bool,
}

impl Cores {
    pub(super) fn new(machine: &Machine) -> Self {
        let slice_at_wakeup_ns = if machine.has_wakeup_preemption {
            GRANULARITY_NS.min(machine.slice_ns)
        } else {
            machine.slice_ns
        };
        Self {
            all: vec![Core::default(); machine.processors],
            slice_ns: machine.slice_ns,
            slice_at_wakeup_ns,
            is_sticky: machine.is_sticky,
        }
    }

    /// Where a thread that ran on `last` wakes up: there, or on an idle
    /// processor, or where the fewest wait.
    pub(super) fn place(&self, last: usize) -> usize {
        if self.is_sticky || self.all[last].running.is_none() {
            return last;
        }
        let load = |&core: &usize| self.all[core].queue.len() + usize::from(self.all[core].running.is_some());
        (0..self.all.len()).min_by_key(load).unwrap_or(last)
    }

    /// Enters a thread that wakes up; when the turn of the one that runs is over.
    pub(super) fn enqueue(&mut self, core: usize, thread: usize) -> Nanos {
        self.all[core].queue.push_back(thread);
        self.all[core].since + self.slice_at_wakeup_ns
    }

    /// Begins a turn; when it is over, if others wait.
    pub(super) fn begin(&mut self, core: usize, thread: usize, now: Nanos) -> Option<Nanos> {
        let chosen = &mut self.all[core];
        chosen.running = Some(thread);
        chosen.number += 1;
        chosen.since = now;
        (!chosen.queue.is_empty()).then_some(now + self.slice_ns)
    }

    /// Whom an idle processor runs next: its own first, else one from the
    /// longest queue.
    pub(super) fn next(&mut self, core: usize) -> Option<usize> {
        if let Some(thread) = self.all[core].queue.pop_front() {
            return Some(thread);
        }
        if self.is_sticky {
            return None;
        }
        self.all
            .iter_mut()
            .max_by_key(|core| core.queue.len())?
            .queue
            .pop_front()
    }
}
