//! Countdown event: a count, and a bell that is rung when it reaches zero.
//!
//! Invariant: the count never goes below zero.

use crate::kernel::{Kernel, Step};
use crate::shim::{AtomicU32, Ordering};
use crate::wake::{ALL, Bell};

/// The shared words of a countdown event.
#[derive(Debug, Default)]
#[repr(C)]
pub struct CountdownWords {
    value: AtomicU32,
    bell: Bell,
}

impl CountdownWords {
    /// Sets the count to `value`, before the segment is shared.
    pub fn start(&self, value: u32) {
        self.value.store(value, Ordering::Relaxed);
    }

    /// The count.
    #[must_use]
    pub fn value(&self) -> u32 {
        // ORDERING: pairs with the updates below; a waiter re-checks after `listen`, so sequentially consistent.
        self.value.load(Ordering::SeqCst)
    }

    /// Raises the count; false if it would overflow.
    pub fn up(&self, count: u32) -> bool {
        self.value
            // ORDERING: pairs with the load in `value`.
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |value| value.checked_add(count))
            .is_ok()
    }

    /// Lowers the count; false, without an effect, if the count is smaller.
    pub fn down<K: Kernel>(&self, count: u32, kernel: &K) -> bool {
        // ORDERING: pairs with the load in `value`; the ring follows.
        let lowered = self
            .value
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |value| value.checked_sub(count));
        if lowered == Ok(count) {
            self.bell.ring(ALL, kernel);
        }
        lowered.is_ok()
    }

    /// Sets the count to zero.
    pub fn clear<K: Kernel>(&self, kernel: &K) {
        // ORDERING: pairs with the load in `value`; the ring follows.
        if self.value.swap(0, Ordering::SeqCst) != 0 {
            self.bell.ring(ALL, kernel);
        }
    }

    /// Waits until the count is zero.
    pub fn wait(&self) -> Step<'_, ()> {
        if self.value() == 0 {
            return Step::Done(());
        }
        let (word, heard) = self.bell.listen();
        if self.value() == 0 {
            return Step::Done(());
        }
        Step::Sleep(word, heard)
    }
}
