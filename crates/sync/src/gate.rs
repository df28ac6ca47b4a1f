//! A gate that is open or closed: the core of Event, Latch, CountdownEvent.
//!
//! | word | meaning |
//! |---|---|
//! | bit 0 | OPEN |
//! | bit 1 | CONTENDED: somebody may be in the queue. Legal to be set with an empty queue; illegal to be clear with a waiter in it |
//!
//! Opening grants everybody who is in the queue, even if the gate closes again at once, and
//! nobody who comes after that: one opening never lets a party through twice.
//!
//! Things that don't work: opening without the mutex and emptying the queue afterwards.
//! A party that passed in between, closed the gate and came back was let through again.
//!
//! Invariant: a waiter is in the queue only while the gate is closed; with CONTENDED set
//! the gate is opened under the mutex alone.

use crate::shim::{Arc, Ordering, Slow, Word};
use crate::waiter::{GRANTED, Port, WaitQueue, Waiter, Wakes};

const OPEN: usize = 1;
const CONTENDED: usize = 2;

/// Open or closed, and those who wait for it to open.
#[derive(Debug)]
pub struct Gate<P> {
    word: Word,
    slow: Slow<WaitQueue<P>>,
}

/// Those whom an opening lets through, not woken yet.
#[must_use]
#[derive(Debug)]
pub struct Opening<P>(Wakes<P>);

impl<P: Port> Opening<P> {
    /// Wake them. Not under a mutex.
    #[inline]
    pub fn finish(self) {
        self.0.run();
    }
}

impl<P: Port> Gate<P> {
    /// Make a gate.
    pub fn new(open: bool) -> Self {
        Self {
            word: Word::new(if open { OPEN } else { 0 }),
            slow: Slow::new(),
        }
    }

    /// Whether it is open.
    #[inline]
    pub fn is_open(&self) -> bool {
        // ORDERING: acquires what came before `open`.
        self.word.load(Ordering::Acquire) & OPEN != 0
    }

    /// Parties in the queue.
    pub fn waiting(&self) -> usize {
        self.slow.peek().map_or(0, |queue| queue.len())
    }

    /// Open it and let everybody through; threads are woken in a cascade of `fan_out`.
    #[inline]
    pub fn open(&self, fan_out: usize) {
        if !self.open_for_nobody() {
            self.unlock_contended(fan_out).finish();
        }
    }

    /// The same, with the wake-ups left to the caller, who may hold a mutex of its own.
    pub fn unlock(&self, fan_out: usize) -> Opening<P> {
        if self.open_for_nobody() {
            Opening(Wakes::none())
        } else {
            self.unlock_contended(fan_out)
        }
    }

    /// Open it if nobody can be in the queue.
    #[inline]
    fn open_for_nobody(&self) -> bool {
        // ORDERING: releases to `is_open`, `begin` and `close`. Open already, it is stored all the
        // same: whoever closes it after this call must see what came before.
        let stored = |old| self.word.replace(old, OPEN, Ordering::AcqRel);
        stored(0) || stored(OPEN)
    }

    #[cold]
    fn unlock_contended(&self, fan_out: usize) -> Opening<P> {
        let mut wakes = Wakes::none();
        let mut queue = self.slow.lock();
        // Whoever passes now, closes it and comes back stands before the mutex until the
        // queue is empty.
        self.word.set(OPEN, Ordering::AcqRel);
        if !queue.is_empty() {
            wakes.signal_all(queue.drain(), GRANTED, fan_out);
        }
        self.word.clear(CONTENDED, Ordering::Relaxed);
        Opening(wakes)
    }

    /// Close it.
    #[inline]
    pub fn close(&self) {
        // ORDERING: acquires what came before `open`: a party that closes it, looks at what it
        // waits for and then waits has seen all that an opening before was for.
        self.word.clear(OPEN, Ordering::AcqRel);
    }

    /// Enqueue the waiter unless the gate is open. True: it may pass.
    pub fn begin(&self, waiter: &Arc<Waiter<P>>) -> bool {
        let mut queue = self.slow.lock();
        // ORDERING: whoever opens it after this sees CONTENDED and comes to the mutex.
        if self.word.set(CONTENDED, Ordering::AcqRel) & OPEN != 0 {
            return true;
        }
        queue.push(waiter);
        false
    }

    /// Withdraw. True: the gate had been opened for it.
    pub fn cancel(&self, waiter: &Arc<Waiter<P>>) -> bool {
        let mut queue = self.slow.lock();
        !queue.remove(waiter) && waiter.state() == GRANTED
    }

    /// Forget the waiters: for the child of a fork.
    pub fn reset(&self) {
        if let Some(mut queue) = self.slow.peek() {
            *queue = WaitQueue::default();
        }
    }
}
