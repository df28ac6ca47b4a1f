//! The lock that a semaphore stands for.
//!
//! Up to CPython 3.13 a lock is a semaphore. Later a thread that waits for a lock waits for a semaphore of its own, a
//! member of the `struct wait_entry` (`Python/parking_lot.c`) that it has put into the interpreter's parking lot:
//! the word before the semaphore is the address of the lock. That word is only an identity: a wrong one would
//! attribute a wait to the wrong lock, and is never followed.
//!
//! Must never: read anything but the word before a semaphore of the interpreter's own.

use super::is_recording;
use libc::sem_t;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Whether the locks of this interpreter wait in its parking lot.
static ARE_PARKED: AtomicBool = AtomicBool::new(false);

/// Words below this are sizes or flags, and no addresses.
const LEAST_ADDRESS: usize = 1 << 20;

/// Notes whether the locks of this interpreter wait in its parking lot.
pub(super) fn set_parked(are_parked: bool) {
    ARE_PARKED.store(are_parked, Relaxed);
}

/// The address of the lock that a semaphore stands for, or that of the semaphore where nothing is recorded.
#[inline]
pub(crate) fn lock_of(sem: *mut sem_t) -> usize {
    if !is_recording() || !ARE_PARKED.load(Relaxed) {
        return sem as usize;
    }
    // SAFETY: with this flag, each semaphore of the interpreter is a member of a structure that has a word before it
    // (`wait_entry.addr`; `raw_mutex_entry.next`, `Python/lock.c`), aligned as the semaphore is. The structure lives as
    // long as its thread waits, and a thread that posts has not posted yet. `next` may change meanwhile, atomically.
    let before = unsafe { AtomicUsize::from_ptr(sem.cast::<usize>().sub(1)) }.load(Relaxed);
    if before < LEAST_ADDRESS { sem as usize } else { before }
}
