//! The event queue: future events, in order of time.
//!
//! Invariant: events of the same instant come in the order in which they were
//! planned; an event whose number is out of date is ignored by its receiver.

use crate::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The thread's present activity on its processor has ended, or is to be checked.
    Step { thread: usize, number: u32 },
    /// A sleeping thread's timer.
    Timer { thread: usize, number: u32 },
    /// A wake-up reaches a sleeping thread.
    Wake { thread: usize, number: u32 },
    /// The kernel's slice on a processor.
    Slice { core: usize, number: u32 },
    /// Some waiting thread re-checks spuriously.
    Spurious,
}

#[derive(Debug, Default)]
pub(super) struct Events {
    heap: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    planned: u64,
}

impl Events {
    pub(super) fn plan(&mut self, at: Nanos, event: Event) {
        self.planned += 1;
        self.heap.push(Reverse((at, self.planned, event)));
    }

    pub(super) fn next(&mut self) -> Option<(Nanos, Event)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}
