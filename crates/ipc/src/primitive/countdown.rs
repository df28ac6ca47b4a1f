//! Countdown event: a count that is waited for to be zero.

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
    /// Make the count `value`, before anybody else sees it.
    pub fn start(&self, value: u32) {
        self.value.store(value, Ordering::Relaxed);
    }

    /// The count.
    #[must_use]
    pub fn value(&self) -> u32 {
        self.value.load(Ordering::SeqCst)
    }

    /// Raise the count; false if it would overflow.
    pub fn up(&self, count: u32) -> bool {
        self.value
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |value| value.checked_add(count))
            .is_ok()
    }

    /// Lower the count; false, and nothing happens, if it is smaller than that.
    pub fn down<K: Kernel>(&self, count: u32, kernel: &K) -> bool {
        let lowered = self
            .value
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |value| value.checked_sub(count));
        if lowered == Ok(count) {
            self.bell.ring(ALL, kernel);
        }
        lowered.is_ok()
    }

    /// Make the count zero.
    pub fn clear<K: Kernel>(&self, kernel: &K) {
        if self.value.swap(0, Ordering::SeqCst) != 0 {
            self.bell.ring(ALL, kernel);
        }
    }

    /// Wait until the count is zero.
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
