//! The policy's state of one thread, and the table of all threads.
//!
//! Must never: allocate after construction; the table never grows past its capacity. Invariant: a
//! [`ThreadId`] is valid from `register` to `retire`.

use crate::class::{Class, Hint};
use crate::predictor::Predictor;
use crate::queue::{Links, Table};
use crate::spin::SpinScore;
use crate::{Config, Nanos};

/// Index of a thread's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadId(u32);

impl ThreadId {
    /// The thread at this position of the table.
    #[must_use]
    pub fn new(index: usize) -> Self {
        Self(u32::try_from(index).expect("a table holds fewer than 2^32 threads"))
    }

    /// Position in tables indexed by thread.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Why a thread spins, which selects the score that its outcome changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awake {
    ForAnswer,
    ForResume,
}

/// History and queue links of one thread.
#[derive(Debug, Clone)]
pub(crate) struct Thread {
    pub(crate) links: Links,
    pub(crate) tag: u64,
    pub(crate) class: Class,
    pub(crate) hint: Hint,
    pub(crate) is_new: bool,
    /// When it entered the queue.
    pub(crate) waiting_since: Nanos,
    /// When it last dropped the GIL; `None` if the drop was uncontended.
    pub(crate) dropped_at: Option<Nanos>,
    /// Whether that drop was requested.
    pub(crate) was_asked: bool,
    /// GIL time since it last blocked, less what it spent off the GIL since.
    pub(crate) burst_ns: Nanos,
    /// Mean of completed bursts (weight 1/4 for the newest, each capped).
    pub(crate) burst_mean_ns: Nanos,
    pub(crate) slice_left_ns: Nanos,
    /// Short calls, of which a long hold without one makes half as many.
    pub(crate) calls: u8,
    pub(crate) predictor: Predictor,
    pub(crate) spin_answer: SpinScore,
    pub(crate) spin_resume: SpinScore,
    pub(crate) awake: Option<Awake>,
    /// Others took the GIL before it although it was overdue.
    pub(crate) was_overtaken: bool,
    /// The holder that woke it, by the release of a lock, and had the GIL when it arrived.
    pub(crate) woken_by: Option<ThreadId>,
    /// GIL time since it was first seen as a holder that was not known, until it is clear whether it is CPU-bound.
    pub(crate) stranger_ns: Option<Nanos>,
    /// How often it has lingered in this wait for a dropper that was expected back.
    pub(crate) lingers: u32,
}

impl Thread {
    fn new(config: &Config, tag: u64) -> Self {
        Self {
            links: Links::default(),
            tag,
            class: Class::Handed,
            hint: Hint::None,
            is_new: true,
            waiting_since: 0,
            dropped_at: None,
            was_asked: false,
            burst_ns: 0,
            burst_mean_ns: 0,
            slice_left_ns: config.slice_ns,
            calls: 0,
            predictor: Predictor::default(),
            spin_answer: SpinScore::default(),
            spin_resume: SpinScore::default(),
            awake: None,
            was_overtaken: false,
            woken_by: None,
            stranger_ns: None,
            lingers: 0,
        }
    }

    /// Ends the burst: the thread has blocked.
    pub(crate) fn finish_burst(&mut self, config: &Config) {
        let burst = self.burst_ns.min(4 * config.burst_cap_ns);
        self.burst_mean_ns = (3 * self.burst_mean_ns + burst) / 4;
        self.burst_ns = 0;
        self.slice_left_ns = config.slice_ns;
    }
}

/// All threads, by index.
#[derive(Debug)]
pub(crate) struct Threads {
    entries: Vec<Thread>,
    free: Vec<ThreadId>,
}

impl Table for Threads {
    fn links(&mut self, thread: ThreadId) -> &mut Links {
        &mut self.entries[thread.index()].links
    }
}

impl std::ops::Index<ThreadId> for Threads {
    type Output = Thread;
    fn index(&self, thread: ThreadId) -> &Thread {
        &self.entries[thread.index()]
    }
}

impl std::ops::IndexMut<ThreadId> for Threads {
    fn index_mut(&mut self, thread: ThreadId) -> &mut Thread {
        &mut self.entries[thread.index()]
    }
}

impl Threads {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            entries: Vec::with_capacity(capacity),
            free: Vec::with_capacity(capacity),
        }
    }

    /// A fresh entry, or `None` when the table is full.
    pub(crate) fn register(&mut self, config: &Config, tag: u64) -> Option<ThreadId> {
        if let Some(thread) = self.free.pop() {
            self[thread] = Thread::new(config, tag);
            return Some(thread);
        }
        if self.entries.len() == self.entries.capacity() {
            return None;
        }
        self.entries.push(Thread::new(config, tag));
        Some(ThreadId::new(self.entries.len() - 1))
    }

    pub(crate) fn retire(&mut self, thread: ThreadId) {
        debug_assert!(!self[thread].links.is_queued, "a retired thread waits for nothing");
        self.free.push(thread);
    }

    /// Forgets every thread but `survivor` (in the child of a fork).
    pub(crate) fn keep_only(&mut self, survivor: Option<ThreadId>) {
        self.free.clear();
        for (index, thread_state) in self.entries.iter_mut().enumerate() {
            thread_state.links = Links::default();
            thread_state.awake = None;
            let thread = ThreadId::new(index);
            if Some(thread) != survivor {
                self.free.push(thread);
            }
        }
    }
}
