//! A fair read/write lock: readers together, or one writer alone. The core of RWLock.
//!
//! Is it fair? First come, first served; readers next to each other in the queue enter together. A reader
//! that arrives while any party waits queues behind it, so writers do not starve. A waiter is always granted
//! its side.
//!
//! The lock remembers which tasks are inside, only to refuse the wait of a thread for a task of its own. Any
//! party may leave on behalf of a reader. If the leaving party is not known as a reader, it may have left for
//! any of the tasks, and all are forgotten. So the lock may remember too few tasks, never too many.
//!
//! Invariant: `readers > 0` and `writing` exclude each other. The queue's first waiter could not enter when
//! the mutex was last unlocked. `writer` and each task of `reading` are inside; neither holds a party that is
//! not a task.

use crate::shim::{Arc, Mutex, lock};
use crate::waiter::{GRANTED, Unparker, Waiter, WaiterList, Wakes};
use std::collections::BTreeSet;

/// How a party wants to enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Together with other readers.
    Read,
    /// Alone.
    Write,
}

/// The core of a read/write lock.
#[derive(Debug)]
pub struct ReadWrite<P> {
    state: Mutex<State<P>>,
}

#[derive(Debug)]
struct State<P> {
    readers: usize,
    writing: bool,
    queue: WaiterList<P>,
    /// Tickets of the waiters that want to write.
    writers: BTreeSet<u64>,
    /// The task that writes; 0 for none.
    writer: usize,
    /// Tasks that read.
    reading: Vec<usize>,
    /// Whether a task has ever waited.
    has_seen_tasks: bool,
}

/// The task that an entering party would wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle<T> {
    /// This task is inside.
    Inside(T),
    /// This task waits, and enters first.
    Before(T),
}

impl<P: Unparker> Default for ReadWrite<P> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                readers: 0,
                writing: false,
                queue: WaiterList::default(),
                writers: BTreeSet::new(),
                writer: 0,
                reading: Vec::new(),
                has_seen_tasks: false,
            }),
        }
    }
}

impl<P: Unparker> State<P> {
    fn enter(&mut self, side: Side, task: usize) -> bool {
        match side {
            Side::Read if !self.writing => {
                self.readers += 1;
                if task != 0 {
                    self.reading.push(task);
                }
            }
            Side::Write if !self.writing && self.readers == 0 => {
                self.writing = true;
                self.writer = task;
            }
            _ => return false,
        }
        true
    }

    /// Count one reader less, on behalf of this task (0 for none).
    fn stop_reading(&mut self, task: usize) {
        if let Some(place) = self.reading.iter().position(|reading| *reading == task) {
            self.reading.swap_remove(place);
        } else {
            // It may have left for any of the tasks.
            self.reading.clear();
        }
        self.readers -= 1;
    }

    /// Grant the waiters that can enter, in order.
    fn admit_waiters(&mut self, wakes: &mut Wakes<P>) {
        while let Some(first) = self.queue.first() {
            let (ticket, task) = (first.ticket(), first.party.task());
            let side = if self.writers.contains(&ticket) {
                Side::Write
            } else {
                Side::Read
            };
            if !self.enter(side, task) {
                break;
            }
            self.writers.remove(&ticket);
            if let Some(first) = self.queue.pop() {
                wakes.signal(first, GRANTED);
            }
        }
    }
}

impl<P: Unparker> ReadWrite<P> {
    /// (readers inside, whether a writer is inside, parties waiting)
    pub fn status(&self) -> (usize, bool, usize) {
        let state = lock(&self.state);
        (state.readers, state.writing, state.queue.len())
    }

    /// The number of waiters for one side.
    pub fn waiting(&self, side: Side) -> usize {
        let state = lock(&self.state);
        // Not the length of `writers`, which may contain tickets of dead waiters.
        let wants = |waiter: &&Arc<Waiter<P>>| state.writers.contains(&waiter.ticket()) == (side == Side::Write);
        state.queue.iter().filter(wants).count()
    }

    /// Enter if no party is in the way and none waits; for a task, if that is not 0.
    pub fn try_enter(&self, side: Side, task: usize) -> bool {
        let mut state = lock(&self.state);
        state.queue.first().is_none() && state.enter(side, task)
    }

    /// Whether a caller of `leave` must name the task that leaves the reading side.
    pub fn is_any_of_many(&self) -> bool {
        let state = lock(&self.state);
        state.readers > 1 && !state.reading.is_empty()
    }

    /// The first task for which `is_one` is not None, among those that must leave before a party that arrives
    /// now can enter. For a reader that is a writer: any other waiter between them may give up.
    pub fn find_obstacle<T>(&self, side: Side, is_one: impl Fn(usize) -> Option<T>) -> Option<Obstacle<T>> {
        let state = lock(&self.state);
        if let Some(inside) = is_one(state.writer) {
            return Some(Obstacle::Inside(inside));
        }
        if !state.has_seen_tasks && state.reading.is_empty() {
            return None;
        }
        if side == Side::Write
            && let Some(inside) = state.reading.iter().find_map(|task| is_one(*task))
        {
            return Some(Obstacle::Inside(inside));
        }
        let mut before = state
            .queue
            .iter()
            .filter(|waiter| side == Side::Write || state.writers.contains(&waiter.ticket()));
        before
            .find_map(|waiter| is_one(waiter.party.task()))
            .map(Obstacle::Before)
    }

    /// Enter, or enqueue. True: the party is inside.
    pub fn begin(&self, side: Side, waiter: &Arc<Waiter<P>>) -> bool {
        let mut state = lock(&self.state);
        let task = waiter.party.task();
        if state.queue.first().is_none() && state.enter(side, task) {
            return true;
        }
        state.has_seen_tasks |= task != 0;
        state.queue.push(waiter);
        if side == Side::Write {
            state.writers.insert(waiter.ticket());
        }
        false
    }

    /// Remove a waiter that gives up. True: it was granted its side before.
    pub fn cancel(&self, waiter: &Arc<Waiter<P>>) -> bool {
        let mut wakes = Wakes::none();
        let inside = {
            let mut state = lock(&self.state);
            let removed = state.queue.remove(waiter);
            if removed {
                state.writers.remove(&waiter.ticket());
                state.admit_waiters(&mut wakes);
            }
            !removed && waiter.state() == GRANTED
        };
        wakes.run();
        inside
    }

    /// Leave, for a task, if that is not 0. False, and nothing changes, if no party is inside on that side.
    pub fn leave(&self, side: Side, task: usize) -> bool {
        self.change(|state| match side {
            Side::Read if state.readers > 0 => {
                state.stop_reading(task);
                true
            }
            Side::Write if state.writing => {
                state.writing = false;
                state.writer = 0;
                true
            }
            _ => false,
        })
    }

    /// Turn the writer into a reader without letting another writer in between.
    pub fn downgrade(&self) -> bool {
        self.change(|state| {
            let writing = state.writing;
            if writing {
                state.writing = false;
                let writer = std::mem::take(&mut state.writer);
                state.enter(Side::Read, writer);
            }
            writing
        })
    }

    /// Turn the only reader into the writer; false if there are others.
    pub fn try_upgrade(&self) -> bool {
        self.change(|state| {
            let alone = state.readers == 1 && !state.writing;
            if alone {
                state.readers = 0;
                state.writing = true;
                state.writer = state.reading.pop().unwrap_or(0);
            }
            alone
        })
    }

    fn change(&self, change: impl FnOnce(&mut State<P>) -> bool) -> bool {
        let mut wakes = Wakes::none();
        let changed = {
            let mut state = lock(&self.state);
            let changed = change(&mut state);
            state.admit_waiters(&mut wakes);
            changed
        };
        wakes.run();
        changed
    }
}
