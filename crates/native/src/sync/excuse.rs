//! Excuses: releases that a coroutine makes while it is closed, of a lock that it does not hold.
//!
//! A coroutine that is closed while it waits in a condition cannot wait for the lock. If somebody else has it, the
//! `async with` around the wait is left without it, and its release would be that of the other's.
//!
//! Invariant: an excuse is for one release of that lock by that thread, the next: closing a coroutine is one call.

use super::identity;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

static EXCUSES: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());
/// How many there are, to be read without the mutex.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Let the calling thread's next asynchronous release of the lock at this address do nothing.
pub(super) fn excuse(lock: usize) {
    let mut excuses = EXCUSES.lock().unwrap_or_else(PoisonError::into_inner);
    excuses.push((lock, identity::thread()));
    COUNT.store(excuses.len(), Ordering::Relaxed);
}

/// Whether this is that release.
#[inline]
pub(super) fn is_excused(lock: usize) -> bool {
    COUNT.load(Ordering::Relaxed) != 0 && take(lock)
}

#[cold]
fn take(lock: usize) -> bool {
    let mut excuses = EXCUSES.lock().unwrap_or_else(PoisonError::into_inner);
    let mine = (lock, identity::thread());
    let Some(place) = excuses.iter().position(|excuse| *excuse == mine) else {
        return false;
    };
    excuses.swap_remove(place);
    COUNT.store(excuses.len(), Ordering::Relaxed);
    true
}
