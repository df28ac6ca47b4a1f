//! Release waivers: each lets one asynchronous release do nothing, because a closed coroutine makes it for a
//! lock that the coroutine does not hold.
//!
//! A coroutine that is closed while it waits in a condition cannot wait for the lock. If another party holds
//! the lock, the `async with` around the wait ends without the lock, and its release would be the other
//! party's.
//!
//! Must never: run Python code with the mutex of the waivers held.
//!
//! Invariant: a waiver is for one release of that lock, by that thread, with the same task running as when
//! the coroutine was closed: closing a coroutine is one call. The waiver expires when that thread requests
//! that lock again.

use crate::sync::who::identity;
use crate::sync::who::thread;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

#[derive(Clone, Copy, PartialEq, Eq)]
struct ReleaseWaiver {
    /// The lock's address.
    lock: usize,
    thread: usize,
    /// The running task, which need not be the closed one; [`identity::NO_TASK`] counts as a task here.
    task: usize,
}

static WAIVERS: Mutex<Vec<ReleaseWaiver>> = Mutex::new(Vec::new());
/// The number of waivers, read without the mutex.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Let the calling thread's next asynchronous release of the lock at this address do nothing.
pub(in crate::sync) fn waive(py: Python<'_>, lock: usize) {
    let mine = ReleaseWaiver::now(py, lock); // asks Python: before the mutex
    let mut waivers = WAIVERS.lock().unwrap_or_else(PoisonError::into_inner);
    waivers.push(mine);
    COUNT.store(waivers.len(), Ordering::Relaxed);
}

/// Whether this release is waived; the waiver is used up.
#[inline]
pub(in crate::sync) fn is_waived(lock: usize) -> bool {
    COUNT.load(Ordering::Relaxed) != 0 && take(lock)
}

#[cold]
fn take(lock: usize) -> bool {
    let mine = Python::attach(|py| ReleaseWaiver::now(py, lock));
    let mut waivers = WAIVERS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(place) = waivers.iter().position(|waiver| *waiver == mine) else {
        return false;
    };
    waivers.swap_remove(place);
    COUNT.store(waivers.len(), Ordering::Relaxed);
    true
}

/// Drop the thread's waivers for this lock: it requests the lock again, so the waived release has been made
/// or never is.
#[inline]
pub(in crate::sync) fn forget(lock: usize) {
    if COUNT.load(Ordering::Relaxed) != 0 {
        drop_all(lock);
    }
}

#[cold]
fn drop_all(lock: usize) {
    let thread = thread::ident();
    let mut waivers = WAIVERS.lock().unwrap_or_else(PoisonError::into_inner);
    waivers.retain(|waiver| waiver.lock != lock || waiver.thread != thread);
    COUNT.store(waivers.len(), Ordering::Relaxed);
}

impl ReleaseWaiver {
    fn now(py: Python<'_>, lock: usize) -> Self {
        Self {
            lock,
            thread: thread::ident(),
            task: identity::task_if_any(py).unwrap_or(identity::NO_TASK),
        }
    }
}
