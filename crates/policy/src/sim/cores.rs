//! The processors: who runs, who waits for a processor, and where a thread wakes.
//!
//! Invariant: a thread is on one processor or in one run queue, or in none; no
//! processor is idle while its own run queue is not empty.

use super::scenario::Machine;
use crate::Nanos;
use std::collections::VecDeque;

#[derive(Debug, Clone, Default)]
pub(super) struct Core {
    pub(super) running: Option<usize>,
    pub(super) queue: VecDeque<usize>,
    /// Number of the current slice, and its start.
    pub(super) number: u32,
    pub(super) since: Nanos,
}

#[derive(Debug)]
pub(super) struct Cores {
    pub(super) all: Vec<Core>,
    is_sticky: bool,
}

impl Cores {
    pub(super) fn new(machine: &Machine) -> Self {
        Self {
            all: vec![Core::default(); machine.processors],
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
