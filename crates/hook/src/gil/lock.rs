//! Waits for locks that are not the interpreter's own.
//!
//! A thread that blocks elsewhere than in the interpreter's semaphores reports its wait here. It
//! is then served and recorded like a thread that blocks on a semaphore.
//!
//! Must never: call Python, allocate, wait. Invariant: while neither the scheduler nor the
//! recorder is active, a call here is two loads.

use super::state;
use crate::record;
use crate::thread::with_current;

/// One wait for a lock, from its beginning to its end, by the thread that waits.
#[derive(Debug)]
#[must_use]
pub struct LockWait {
    lock: usize,
    is_recorded: bool,
}

impl LockWait {
    /// Reports that the calling thread, which has released the GIL, blocks on the lock with this
    /// address. An address is even; the thread that releases the lock passes the same address
    /// to [`releases_lock`].
    pub fn begin(lock: usize) -> Self {
        Self {
            lock,
            is_recorded: record::lock_begins(lock),
        }
    }

    /// Reports that the wait has ended; `has_it` is whether the thread acquired the lock.
    pub fn end(self, has_it: bool) {
        if self.is_recorded {
            record::lock_ends(self.lock, has_it);
        }
        if has_it && state::is_active() {
            with_current(|current| current.was_on_lock());
        }
    }
}

/// Reports that the calling thread releases the lock with this address to a waiter.
#[inline]
pub fn releases_lock(lock: usize) {
    record::posts(lock);
}
