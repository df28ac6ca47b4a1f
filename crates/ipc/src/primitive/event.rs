//! Event: one word.
//!
//! | bits | mean |
//! |---|---|
//! | SET | the event is set |
//! | SLEEPERS | somebody may sleep on the word |
//! | the rest | how often it was set |
//!
//! A waiter that slept through `set` and `clear` sees that the count moved: it was
//! woken for that, and says so.

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
        self.0.load(Ordering::Acquire) & SET != 0
    }

    /// What a waiter has to remember: how often the event was set before it came.
    #[must_use]
    pub fn arrive(&self) -> u32 {
        self.0.load(Ordering::Acquire) / ONE
    }

    /// Wait until it is set, or was set since `arrival`.
    pub fn wait(&self, arrival: u32) -> Step<'_, ()> {
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            if word & SET != 0 || word / ONE != arrival {
                return Step::Done(());
            }
            if word & SLEEPERS != 0 {
                return Step::Sleep(&self.0, word);
            }
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

    /// Set it, and wake everybody.
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

    /// Make it unset.
    pub fn clear(&self) {
        self.0.fetch_and(!SET, Ordering::AcqRel);
    }

    /// Whether somebody may sleep.
    #[must_use]
    pub fn has_sleepers(&self) -> bool {
        self.0.load(Ordering::Relaxed) & SLEEPERS != 0
    }
}
