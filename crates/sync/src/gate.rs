//! A gate that is open or closed, with a wait queue: the core of Event, Latch, CountdownEvent.
//!
//! | word | meaning |
//! |---|---|
//! | bit 0 | OPEN |
//! | bit 1 | CONTENDED: a waiter may be in the queue. Legal to be set with an empty queue; illegal to be clear with a waiter in it |
//!
//! Opening grants every waiter in the queue, even if the gate closes again immediately, and no party that
//! arrives later: one opening never lets a party through twice.
//!
//! Things that don't work: opening without the mutex and emptying the queue afterwards. A party that passed
//! in between, closed the gate and waited again was let through again.
//!
//! Invariant: a waiter is in the queue only while the gate is closed; with CONTENDED set the gate is opened
//! only under the mutex.

use crate::shim::{Arc, Ordering, Slow, Word};
use crate::waiter::{GRANTED, Unparker, Waiter, WaiterList, Wakes};

const OPEN: usize = 1;
const CONTENDED: usize = 2;

/// A gate, and the parties that wait for it to open.
#[derive(Debug)]
pub struct Gate<P> {
    word: Word,
    slow: Slow<WaiterList<P>>,
}

/// The waiters that an opening released, not woken yet.
#[must_use]
#[derive(Debug)]
pub struct Opening<P>(Wakes<P>);

impl<P: Unparker> Opening<P> {
    /// Wake the waiters. Not called with a mutex held.
    #[inline]
    pub fn finish(self) {
        self.0.run();
    }
}

impl<P: Unparker> Gate<P> {
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
        // ORDERING: pairs with the release in `open_for_nobody` and `unlock_contended`: acquires what came
        // before the opening.
        self.word.load(Ordering::Acquire) & OPEN != 0
    }

    /// The number of waiters.
    pub fn waiting(&self) -> usize {
        self.slow.peek().map_or(0, |queue| queue.len())
    }

    /// Open it and release every waiter; threads are woken in `fan_out` chains.
    #[inline]
    pub fn open(&self, fan_out: usize) {
        if !self.open_for_nobody() {
            self.unlock_contended(fan_out).finish();
        }
    }

    /// As `open`, but the caller wakes the waiters, since it may hold a mutex of its own.
    pub fn unlock(&self, fan_out: usize) -> Opening<P> {
        if self.open_for_nobody() {
            Opening(Wakes::none())
        } else {
            self.unlock_contended(fan_out)
        }
    }

    /// Open it if no waiter can be in the queue.
    #[inline]
    fn open_for_nobody(&self) -> bool {
        // ORDERING: pairs with `is_open`, `begin` and `close`, which acquire. An open gate is stored again
        // all the same: a thread that closes it after this call must see what came before the call.
        let stored = |old| self.word.replace(old, OPEN, Ordering::AcqRel);
        stored(0) || stored(OPEN)
    }

    #[cold]
    fn unlock_contended(&self, fan_out: usize) -> Opening<P> {
        let mut wakes = Wakes::none();
        let mut queue = self.slow.lock();
        // A party that passes now, closes the gate and waits again blocks on the mutex until the queue is
        // empty.
        // ORDERING: pairs with the acquires in `is_open` and `close`.
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
        // ORDERING: pairs with the releases of an opening. A party that closes the gate, checks what it waits
        // for and then waits has seen everything that an earlier opening announced.
        self.word.clear(OPEN, Ordering::AcqRel);
    }

    /// Enqueue the waiter, unless the gate is open. True: it may pass.
    pub fn begin(&self, waiter: &Arc<Waiter<P>>) -> bool {
        let mut queue = self.slow.lock();
        // ORDERING: pairs with `open_for_nobody`: a thread that opens the gate after this sees CONTENDED and
        // takes the mutex.
        if self.word.set(CONTENDED, Ordering::AcqRel) & OPEN != 0 {
            return true;
        }
        queue.push(waiter);
        false
    }

    /// Remove a waiter that gives up. True: an opening released it before.
    pub fn cancel(&self, waiter: &Arc<Waiter<P>>) -> bool {
        let mut queue = self.slow.lock();
        !queue.remove(waiter) && waiter.state() == GRANTED
    }

    /// Forget the waiters, in the child of a fork.
    pub fn reset(&self) {
        if let Some(mut queue) = self.slow.peek() {
            *queue = WaiterList::default();
        }
    }
}
