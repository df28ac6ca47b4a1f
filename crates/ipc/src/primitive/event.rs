//! Event: a flag, a mark for sleepers and a count of `set` calls in one word.
//!
//! | bits | meaning |
//! |---|---|
//! | SET | the event is set |
//! | SLEEPERS | a waiter may sleep on the word |
//! | the rest | number of `set` calls |
//!
//! Invariant: a waiter that slept through `set` and `clear` still returns as woken: it sees that the count moved.

use crate::kernel::{Kernel, Step};
use crate::shim::{AtomicU32, Ordering};
use crate::wake::ALL;

const SET: u32 = 1;
const SLEEPERS: u32 = 2;
const ONE: u32 = 4;

/// The shared word of an event.
#[derive(Debug, Default)]
#[repr(C)]
pub struct EventWords(AtomicU32);

impl EventWords {
    /// Whether the event is set.
    #[inline]
    #[must_use]
    pub fn is_set(&self) -> bool {
        // ORDERING: pairs with the release in `set`.
        self.0.load(Ordering::Acquire) & SET != 0
    }

    /// Returns what a waiter has to remember: how often the event was set before it arrived.
    #[must_use]
    pub fn arrive(&self) -> u32 {
        // ORDERING: pairs with the release in `set`.
        self.0.load(Ordering::Acquire) / ONE
    }

    /// Waits until the event is set, or was set since `arrival`.
    pub fn wait(&self, arrival: u32) -> Step<'_, ()> {
        // ORDERING: the loads here pair with the release in `set`.
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            if word & SET != 0 || word / ONE != arrival {
                return Step::Done(());
            }
            if word & SLEEPERS != 0 {
                return Step::Sleep(&self.0, word);
            }
            // ORDERING: release pairs with the exchange in `set`, which clears the mark; a failure loads as above.
            let sleeping = word | SLEEPERS;
            match self
                .0
                .compare_exchange(word, sleeping, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Step::Sleep(&self.0, sleeping),
                Err(now) => word = now,
            }
        }
    }

    /// Sets the event and wakes all waiters.
    pub fn set<K: Kernel>(&self, kernel: &K) {
        let mut word = self.0.load(Ordering::Relaxed);
        while word & SET == 0 {
            let set = (word & !SLEEPERS).wrapping_add(ONE) | SET;
            // ORDERING: release pairs with the acquire in `wait`.
            match self.0.compare_exchange(word, set, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) if word & SLEEPERS != 0 => return kernel.wake(&self.0, ALL),
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }

    /// Clears the event.
    pub fn clear(&self) {
        // ORDERING: release pairs with the acquire loads of a waiter that finds the event unset.
        self.0.fetch_and(!SET, Ordering::AcqRel);
    }

    /// Whether a waiter may sleep on the word.
    #[must_use]
    pub fn has_sleepers(&self) -> bool {
        self.0.load(Ordering::Relaxed) & SLEEPERS != 0
    }
}
