//! Readers together or one writer alone: the core of RWLock.
//!
//! Is it fair? First come, first served, readers that stand next to each other
//! enter together. A reader that arrives while anybody waits goes behind them,
//! so writers do not starve; a party is always handed what it waits for.
//!
//! Invariant: `readers > 0` and `writing` exclude each other; the queue's first
//! waiter could not enter when the mutex was last released.

use crate::shim::{Arc, Mutex, lock};
use crate::waiter::{GRANTED, Port, WaitQueue, Waiter, Wakes};
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
    queue: WaitQueue<P>,
    /// Tickets of those in the queue that want to write.
    writers: BTreeSet<u64>,
}

impl<P: Port> Default for ReadWrite<P> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                readers: 0,
                writing: false,
                queue: WaitQueue::default(),
                writers: BTreeSet::new(),
            }),
        }
    }
}

impl<P: Port> State<P> {
    fn enter(&mut self, side: Side) -> bool {
        match side {
            Side::Read if !self.writing => self.readers += 1,
            Side::Write if !self.writing && self.readers == 0 => self.writing = true,
            _ => return false,
        }
        true
    }

    /// Let in whoever can enter, in order.
    fn settle(&mut self, wakes: &mut Wakes<P>) {
        while let Some(first) = self.queue.first() {
            let ticket = first.ticket();
            let side = if self.writers.contains(&ticket) {
                Side::Write
            } else {
                Side::Read
            };
            if !self.enter(side) {
                break;
            }
            self.writers.remove(&ticket);
            if let Some(first) = self.queue.pop() {
                wakes.signal(first, GRANTED);
            }
        }
    }
}

impl<P: Port> ReadWrite<P> {
    /// (readers inside, whether a writer is inside, parties waiting)
    pub fn status(&self) -> (usize, bool, usize) {
        let state = lock(&self.state);
        (state.readers, state.writing, state.queue.len())
    }

    /// Parties that wait for one side.
    pub fn waiting(&self, side: Side) -> usize {
        let state = lock(&self.state);
        match side {
            Side::Write => state.writers.len(),
            Side::Read => state.queue.len().saturating_sub(state.writers.len()),
        }
    }

    /// Enter if nobody stands in the way or in line.
    pub fn try_enter(&self, side: Side) -> bool {
        let mut state = lock(&self.state);
        state.queue.first().is_none() && state.enter(side)
    }

    /// Enter, or enqueue. True: it is inside.
    pub fn begin(&self, side: Side, waiter: &Arc<Waiter<P>>) -> bool {
        let mut state = lock(&self.state);
        if state.queue.first().is_none() && state.enter(side) {
            return true;
        }
        state.queue.push(waiter);
        if side == Side::Write {
            state.writers.insert(waiter.ticket());
        }
        false
    }

    /// Withdraw. True: it had been let in.
    pub fn cancel(&self, waiter: &Arc<Waiter<P>>) -> bool {
        let mut wakes = Wakes::none();
        let inside = {
            let mut state = lock(&self.state);
            let removed = state.queue.remove(waiter);
            if removed {
                state.writers.remove(&waiter.ticket());
                state.settle(&mut wakes);
            }
            !removed && waiter.state() == GRANTED
        };
        wakes.run();
        inside
    }

    /// Leave. False, and nothing changes, if nobody is inside on that side.
    pub fn leave(&self, side: Side) -> bool {
        self.change(|state| match side {
            Side::Read if state.readers > 0 => {
                state.readers -= 1;
                true
            }
            Side::Write if state.writing => {
                state.writing = false;
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
                state.readers += 1;
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
            }
            alone
        })
    }

    fn change(&self, change: impl FnOnce(&mut State<P>) -> bool) -> bool {
        let mut wakes = Wakes::none();
        let changed = {
            let mut state = lock(&self.state);
            let changed = change(&mut state);
            state.settle(&mut wakes);
            changed
        };
        wakes.run();
        changed
    }
}
