//! Excuses: releases that a coroutine makes while it is closed, of a lock that it does not hold.
//!
//! A coroutine that is closed while it waits in a condition cannot wait for the lock. If somebody else has it, the
//! `async with` around the wait is left without it, and its release would be that of the other's.
//!
//! Invariant: an excuse is for one release of that lock, by that thread and with the same task running as when the
//! coroutine was closed: closing one is one call. It is over when that thread asks for that lock again.

use crate::sync::who::identity;
use crate::sync::who::thread;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

#[derive(Clone, Copy, PartialEq, Eq)]
struct ReleaseWaiver {
    /// Its address.
    lock: usize,
    thread: usize,
    /// What runs in the thread, which need not be what is closed; none is a task of its own here.
    task: usize,
}

static WAIVERS: Mutex<Vec<ReleaseWaiver>> = Mutex::new(Vec::new());
/// How many there are, to be read without the mutex.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Let the calling thread's next asynchronous release of the lock at this address do nothing.
pub(in crate::sync) fn waive(py: Python<'_>, lock: usize) {
    let mine = ReleaseWaiver::now(py, lock); // asks Python: before the mutex
    let mut waivers = WAIVERS.lock().unwrap_or_else(PoisonError::into_inner);
    waivers.push(mine);
    COUNT.store(waivers.len(), Ordering::Relaxed);
}

/// Whether this is that release.
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

/// The calling thread asks for the lock anew: what was to be released without being held has been by now, or never is.
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
