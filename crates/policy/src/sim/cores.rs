//! The processors: a model of run queues, preemption and wake-up placement.
//!
//! A model of Linux's fair scheduler (EEVDF, `kernel/sched/fair.c` of 6.12 and
//! later) for threads of equal weight. Per processor, V is the mean virtual
//! runtime of those that run or could. A thread is *eligible* if its own is not
//! above V; of the eligible the one with the earliest virtual deadline runs, and
//! is protected for the shortest slice that anybody there has. What a thread is
//! owed (its lag, V less its own) it keeps while it sleeps, and a debt is reduced by what the
//! others run meanwhile (`DELAY_DEQUEUE`). A thread that wakes up preempts immediately only with
//! a shorter slice than the running thread's (`PREEMPT_SHORT`), and never if it is `SCHED_BATCH`.
//!
//! Not modelled: the tick (a slice ends exactly).
//!
//! Invariant: a thread is on one processor or in one run queue, or in none; no
//! processor is idle while its own run queue is not empty.

use super::scenario::Machine;
use crate::{MILLISECOND, Nanos};

/// The slice that the mechanism requests for a CPU-bound thread.
const BATCH_SLICE_NS: Nanos = 99 * MILLISECOND;
/// The same on a single processor: the slice that such threads have anyway.
const BATCH_SLICE_ALONE_NS: Nanos = 5 * MILLISECOND;

/// The kernel's state of one thread.
#[derive(Debug, Clone, Copy)]
struct Entity {
    /// Virtual runtime and deadline on the processor it is on.
    runtime: i64,
    deadline: i64,
    /// Its lag when it left its last processor.
    lag: i64,
    left_at: Nanos,
    slice_ns: Nanos,
    is_batch: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Core {
    pub(super) running: Option<usize>,
    pub(super) queue: Vec<usize>,
    /// Number of the current slice, until when it has been accounted for, and its start.
    pub(super) number: u32,
    booked_at: Nanos,
    since: Nanos,
    /// Sum of the virtual runtimes of all that are on it.
    sum: i64,
}

impl Core {
    fn load(&self) -> usize {
        self.queue.len() + usize::from(self.running.is_some())
    }

    fn mean(&self) -> i64 {
        self.sum.div_euclid((self.load() as i64).max(1))
    }
}

#[derive(Debug)]
pub(super) struct Cores {
    pub(super) all: Vec<Core>,
    entities: Vec<Entity>,
    slice_ns: Nanos,
    batch_slice_ns: Nanos,
    takes_hints: bool,
    is_sticky: bool,
}

impl Cores {
    pub(super) fn new(machine: &Machine, threads: usize) -> Self {
        let fresh = Entity {
            runtime: 0,
            deadline: 0,
            lag: 0,
            left_at: 0,
            slice_ns: machine.slice_ns,
            is_batch: false,
        };
        Self {
            all: vec![Core::default(); machine.processors],
            entities: vec![fresh; threads],
            slice_ns: machine.slice_ns,
            batch_slice_ns: if machine.processors == 1 {
                BATCH_SLICE_ALONE_NS
            } else {
                BATCH_SLICE_NS
            },
            takes_hints: machine.has_kernel_hints,
            is_sticky: machine.is_sticky,
        }
    }

    /// The mechanism's hint about a thread that waits.
    pub(super) fn hint(&mut self, thread: usize, is_batch: bool) {
        let is_batch = is_batch && self.takes_hints;
        let entity = &mut self.entities[thread];
        if entity.is_batch != is_batch {
            entity.is_batch = is_batch;
            entity.slice_ns = if is_batch { self.batch_slice_ns } else { self.slice_ns };
        }
    }

    /// The processor on which a thread that ran on `last` wakes up: the same, or an idle processor,
    /// or the least loaded.
    pub(super) fn place(&self, last: usize) -> usize {
        if self.is_sticky || self.all[last].running.is_none() {
            return last;
        }
        let load = |&core: &usize| self.all[core].load();
        (0..self.all.len()).min_by_key(load).unwrap_or(last)
    }

    /// Queues a thread that wakes up; returns when to check the running thread.
    pub(super) fn enqueue(&mut self, core: usize, thread: usize, now: Nanos) -> Nanos {
        self.book(core, now);
        self.enter(core, thread, now);
        self.all[core].queue.push(thread);
        match self.all[core].running {
            Some(running) if self.is_preempted_at_once(core, running, thread) => now,
            _ => self.end_of_protection(core).max(now),
        }
    }

    fn is_preempted_at_once(&self, core: usize, running: usize, woken: usize) -> bool {
        let (running, woken_entity) = (&self.entities[running], &self.entities[woken]);
        let mean = self.all[core].mean();
        !woken_entity.is_batch
            && woken_entity.slice_ns < running.slice_ns
            && woken_entity.runtime <= mean
            && (woken_entity.deadline < running.deadline || running.runtime > mean)
            && self.pick(core) == Some(woken)
    }

    fn end_of_protection(&self, core: usize) -> Nanos {
        let chosen = &self.all[core];
        let all = chosen.queue.iter().chain(&chosen.running);
        let slice_ns = all.map(|&thread| self.entities[thread].slice_ns).min();
        chosen.since + slice_ns.unwrap_or(self.slice_ns)
    }

    /// Starts a slice of `thread`, which is new on this processor.
    pub(super) fn begin_new(&mut self, core: usize, thread: usize, now: Nanos) -> Option<Nanos> {
        self.book(core, now);
        self.enter(core, thread, now);
        self.begin(core, thread, now)
    }

    /// Starts a slice of a thread that is on the processor already; returns when to check it, if
    /// others wait.
    pub(super) fn begin(&mut self, core: usize, thread: usize, now: Nanos) -> Option<Nanos> {
        let chosen = &mut self.all[core];
        chosen.running = Some(thread);
        chosen.number += 1;
        (chosen.since, chosen.booked_at) = (now, now);
        (!chosen.queue.is_empty()).then(|| self.end_of_protection(core))
    }

    /// Checks the running thread; returns the thread that runs next, if it is another. A new slice
    /// starts either way.
    pub(super) fn rotate(&mut self, core: usize, now: Nanos) -> Option<usize> {
        self.book(core, now);
        let running = self.all[core].running?;
        let entity = &mut self.entities[running];
        if entity.runtime >= entity.deadline {
            entity.deadline = entity.runtime + entity.slice_ns as i64;
        }
        let next = self.pick(core)?;
        if next == running {
            return None;
        }
        let chosen = &mut self.all[core];
        chosen.queue.retain(|&waiting| waiting != next);
        chosen.queue.push(running);
        Some(next)
    }

    /// Takes the running thread off its processor; returns the thread that runs next.
    pub(super) fn leave(&mut self, core: usize, now: Nanos) -> Option<usize> {
        self.book(core, now);
        let running = self.all[core].running?;
        self.exit(core, running, now);
        self.all[core].running = None;
        if self.all[core].queue.is_empty() && !self.is_sticky {
            self.steal(core, now);
        }
        let next = self.pick(core)?;
        self.all[core].queue.retain(|&waiting| waiting != next);
        Some(next)
    }

    /// Moves one thread here from the longest queue.
    fn steal(&mut self, core: usize, now: Nanos) {
        let longest = (0..self.all.len()).max_by_key(|&other| self.all[other].queue.len());
        let Some(other) = longest.filter(|&other| !self.all[other].queue.is_empty()) else {
            return;
        };
        self.book(other, now);
        let thread = self.all[other].queue[0];
        self.exit(other, thread, now);
        self.all[other].queue.remove(0);
        self.enter(core, thread, now);
        self.all[core].queue.push(thread);
    }

    /// The eligible thread with the earliest deadline; first come first served.
    fn pick(&self, core: usize) -> Option<usize> {
        let chosen = &self.all[core];
        let mean = chosen.mean();
        let all = chosen.running.iter().chain(&chosen.queue).copied();
        all.min_by_key(|&thread| {
            let entity = &self.entities[thread];
            (entity.runtime > mean, entity.deadline)
        })
    }

    /// Accounts for the time that the running thread has run.
    fn book(&mut self, core: usize, now: Nanos) {
        let chosen = &mut self.all[core];
        let ran = now.saturating_sub(chosen.booked_at) as i64;
        chosen.booked_at = now;
        if let Some(running) = chosen.running {
            self.entities[running].runtime += ran;
            chosen.sum += ran;
        }
    }

    /// Places a thread so that its lag is kept: its own weight moves the mean (`place_entity`).
    fn enter(&mut self, core: usize, thread: usize, now: Nanos) {
        let chosen = &mut self.all[core];
        let others = chosen.load() as i64;
        let entity = &mut self.entities[thread];
        let limit = entity.slice_ns as i64;
        let burnt = now.saturating_sub(entity.left_at) as i64 / (others + 1);
        let lag = if entity.lag < 0 {
            (entity.lag + burnt).clamp(-limit, 0)
        } else {
            entity.lag.min(limit)
        };
        let inflated = if others == 0 { 0 } else { lag * (others + 1) / others };
        entity.runtime = chosen.mean() - inflated;
        entity.deadline = entity.runtime + limit;
        chosen.sum += entity.runtime;
    }

    fn exit(&mut self, core: usize, thread: usize, now: Nanos) {
        let chosen = &mut self.all[core];
        let entity = &mut self.entities[thread];
        entity.lag = chosen.mean() - entity.runtime;
        entity.left_at = now;
        chosen.sum -= entity.runtime;
    }
}
