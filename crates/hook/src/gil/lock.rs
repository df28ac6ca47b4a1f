//! Waits for locks that are not the interpreter's own: whoever blocks elsewhere than in
//! its semaphores says so here, and is served and recorded like who blocks there.
//!
//! Must never: call Python, allocate, wait. Invariant: where neither the scheduler nor
//! the recorder is at work, a call here is two loads.

use super::state;
use crate::record;
use crate::thread::with_current;

/// A wait for a lock, from its beginning, by the thread that waits.
#[derive(Debug)]
#[must_use]
pub struct LockWait {
    lock: usize,
    is_recorded: bool,
}

impl LockWait {
    /// The calling thread, which has given the GIL up, blocks on the lock with this
    /// address. An address is even; whoever releases the lock names the same to
    /// [`releases_lock`].
    pub fn begin(lock: usize) -> Self {
        Self {
            lock,
            is_recorded: record::lock_begins(lock),
        }
    }

    /// The wait is over; whether it came to what was waited for.
    pub fn end(self, has_it: bool) {
        if self.is_recorded {
            record::lock_ends(self.lock, has_it);
        }
        if has_it && state::is_active() {
            with_current(|current| current.was_on_lock());
        }
    }
}

/// The calling thread lets somebody go on who waits for the lock with this address.
#[inline]
pub fn releases_lock(lock: usize) {
    record::posts(lock);
}
