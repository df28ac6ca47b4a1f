//! Tokens owned by borrowers, in a number that may change: the core of CapacityLimiter.
//!
//! Is it fair? First come, first served; a token is handed to the waiter, never
//! merely announced.
//!
//! Invariant: each borrower holds one token at most; the queue's waiters have
//! none; if the queue is not empty, no token is free.

use crate::shim::{Arc, Mutex, lock};
use crate::waiter::{GRANTED, Port, WaitQueue, Waiter, Wakes};
use std::collections::{BTreeMap, BTreeSet};

/// What became of an attempt to borrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Borrow {
    /// The borrower holds a token now.
    Borrowed,
    /// The borrower has one already.
    Twice,
    /// None is free.
    None,
}

/// The core of a capacity limiter; borrowers are known by number.
#[derive(Debug)]
pub struct Borrowers<P> {
    state: Mutex<State<P>>,
}

#[derive(Debug)]
struct State<P> {
    total: usize,
    holders: BTreeSet<usize>,
    queue: WaitQueue<P>,
    applicants: BTreeMap<u64, usize>,
}

impl<P: Port> State<P> {
    fn settle(&mut self, wakes: &mut Wakes<P>) {
        while self.holders.len() < self.total {
            let Some(first) = self.queue.pop() else { break };
            if let Some(borrower) = self.applicants.remove(&first.ticket()) {
                self.holders.insert(borrower);
            }
            wakes.signal(first, GRANTED);
        }
    }

    fn borrow(&mut self, borrower: usize) -> Borrow {
        if self.holders.contains(&borrower) {
            return Borrow::Twice;
        }
        if self.holders.len() < self.total && self.queue.first().is_none() {
            self.holders.insert(borrower);
            return Borrow::Borrowed;
        }
        Borrow::None
    }
}

impl<P: Port> Borrowers<P> {
    /// Start with `total` tokens.
    pub fn new(total: usize) -> Self {
        let state = State {
            total,
            holders: BTreeSet::new(),
            queue: WaitQueue::default(),
            applicants: BTreeMap::new(),
        };
        Self {
            state: Mutex::new(state),
        }
    }

    /// (total, borrowed, waiting)
    pub fn status(&self) -> (usize, usize, usize) {
        let state = lock(&self.state);
        (state.total, state.holders.len(), state.queue.len())
    }

    /// The borrowers that hold a token.
    pub fn holders(&self) -> Vec<usize> {
        lock(&self.state).holders.iter().copied().collect()
    }

    /// Borrow without waiting.
    pub fn try_borrow(&self, borrower: usize) -> Borrow {
        lock(&self.state).borrow(borrower)
    }

    /// Borrow, or enqueue (`Borrow::None`).
    pub fn begin(&self, borrower: usize, waiter: &Arc<Waiter<P>>) -> Borrow {
        let mut state = lock(&self.state);
        let outcome = state.borrow(borrower);
        if outcome == Borrow::None {
            state.queue.push(waiter);
            state.applicants.insert(waiter.ticket(), borrower);
        }
        outcome
    }

    /// Withdraw. True: it had been handed a token.
    pub fn cancel(&self, waiter: &Arc<Waiter<P>>) -> bool {
        let mut state = lock(&self.state);
        let removed = state.queue.remove(waiter);
        if removed {
            state.applicants.remove(&waiter.ticket());
        }
        !removed && waiter.state() == GRANTED
    }

    /// Give the borrower's token back; false if it holds none.
    pub fn give_back(&self, borrower: usize) -> bool {
        self.change(|state| state.holders.remove(&borrower))
    }

    /// Change the number of tokens; fewer than are borrowed is allowed.
    pub fn resize(&self, total: usize) {
        self.change(|state| {
            state.total = total;
            true
        });
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
