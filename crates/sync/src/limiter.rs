//! A semaphore whose tokens are owned, and whose number of tokens may change: the core of CapacityLimiter.
//!
//! Is it fair? First come, first served; a token is always granted to the waiter, which is never merely
//! notified.
//!
//! Invariant: each borrower holds, or waits for, at most one token; a borrower in the queue holds none; if
//! the queue is not empty, no token is free.

use crate::shim::{Arc, Mutex, lock};
use crate::waiter::{GRANTED, Unparker, Waiter, WaiterList, Wakes};
use std::collections::{BTreeMap, BTreeSet};

/// The result of an attempt to borrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Borrow {
    /// The borrower holds a token now.
    Borrowed,
    /// The borrower already holds a token, or waits for one.
    Twice,
    /// No token is free.
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
    queue: WaiterList<P>,
    /// The waiters' borrowers, by ticket.
    applicants: BTreeMap<u64, usize>,
    /// The borrowers of `applicants`.
    applied: BTreeSet<usize>,
}

impl<P: Unparker> State<P> {
    fn grant_waiters(&mut self, wakes: &mut Wakes<P>) {
        while self.holders.len() < self.total {
            let Some(first) = self.queue.pop() else { break };
            if let Some(borrower) = self.strike_off(&first) {
                self.holders.insert(borrower);
            }
            wakes.signal(first, GRANTED);
        }
    }

    /// Remove an applicant. Returns the borrower of this waiter.
    fn strike_off(&mut self, waiter: &Waiter<P>) -> Option<usize> {
        let borrower = self.applicants.remove(&waiter.ticket())?;
        self.applied.remove(&borrower);
        Some(borrower)
    }

    /// Whether the borrower waits and is alive. One that a fork left behind does not wait, and another may
    /// have its number.
    fn is_applying(&self, borrower: usize) -> bool {
        let mut alive = self.queue.iter().filter(|waiter| waiter.party.is_alive());
        alive.any(|waiter| self.applicants.get(&waiter.ticket()) == Some(&borrower))
    }

    fn borrow(&mut self, borrower: usize) -> Borrow {
        if self.holders.contains(&borrower) || self.applied.contains(&borrower) && self.is_applying(borrower) {
            return Borrow::Twice;
        }
        if self.holders.len() < self.total && self.queue.first().is_none() {
            self.holders.insert(borrower);
            return Borrow::Borrowed;
        }
        Borrow::None
    }
}

impl<P: Unparker> Borrowers<P> {
    /// Start with `total` tokens.
    pub fn new(total: usize) -> Self {
        let state = State {
            total,
            holders: BTreeSet::new(),
            queue: WaiterList::default(),
            applicants: BTreeMap::new(),
            applied: BTreeSet::new(),
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

    /// Whether the borrower holds a token.
    pub fn has_lent_to(&self, borrower: usize) -> bool {
        lock(&self.state).holders.contains(&borrower)
    }

    /// If all tokens are borrowed and `is_one` returns Some for each borrower: what it returns, for all of
    /// them; else nothing.
    pub fn find_all<T>(&self, is_one: impl Fn(usize) -> Option<T>) -> Vec<T> {
        let state = lock(&self.state);
        if state.holders.len() < state.total {
            return Vec::new();
        }
        let found: Option<Vec<T>> = state.holders.iter().map(|holder| is_one(*holder)).collect();
        found.unwrap_or_default()
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
            state.applied.insert(borrower);
        }
        outcome
    }

    /// Remove a waiter that gives up. True: it was granted a token before.
    pub fn cancel(&self, waiter: &Arc<Waiter<P>>) -> bool {
        let mut state = lock(&self.state);
        let removed = state.queue.remove(waiter);
        if removed {
            state.strike_off(waiter);
        }
        !removed && waiter.state() == GRANTED
    }

    /// Return the borrower's token; false if it holds none.
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
            state.grant_waiters(&mut wakes);
            changed
        };
        wakes.run();
        changed
    }
}
