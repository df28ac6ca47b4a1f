//! Hooks of the semaphore waits, in which a contended `threading.Lock` blocks: they note that
//! the thread has blocked on a lock.
//!
//! `PyThread_acquire_lock_timed` (`Python/thread_pthread.h`) and, from 3.13 on,
//! `_PySemaphore_Wait` (`Python/parking_lot.c`) call them, after a first non-blocking try has
//! failed.
//!
//! Must never: change what the call does or returns.

use super::state;
use crate::elf::original::Original;
use crate::record;
use crate::thread::with_current;
use libc::{clockid_t, sem_t, timespec};

type Wait = unsafe extern "C" fn(*mut sem_t) -> libc::c_int;
type TimedWait = unsafe extern "C" fn(*mut sem_t, *const timespec) -> libc::c_int;
type ClockWait = unsafe extern "C" fn(*mut sem_t, clockid_t, *const timespec) -> libc::c_int;

pub(crate) static REAL_WAIT: Original<Wait> = Original::new(libc::sem_wait);
pub(crate) static REAL_TIMEDWAIT: Original<TimedWait> = Original::new(libc::sem_timedwait);
pub(crate) static REAL_CLOCKWAIT: Original<ClockWait> = Original::new(sem_clockwait);

unsafe extern "C" {
    /// From glibc 2.30 on; CPython uses it where it exists.
    fn sem_clockwait(sem: *mut sem_t, clock: clockid_t, until: *const timespec) -> libc::c_int;
}

/// Makes the call; notes that the thread has blocked on a lock if it acquired it.
fn noted(sem: *mut sem_t, call: impl FnOnce() -> libc::c_int) -> libc::c_int {
    let is_recorded = record::lock_begins(sem as usize);
    let result = call();
    if is_recorded {
        record::lock_ends(sem as usize, result == 0);
    }
    if result == 0 && state::is_active() {
        with_current(|current| current.was_on_lock());
    }
    result
}

/// Replaces `sem_wait`.
pub(crate) unsafe extern "C" fn wait(sem: *mut sem_t) -> libc::c_int {
    // SAFETY: the caller's arguments, unchanged.
    noted(sem, || unsafe { REAL_WAIT.get()(sem) })
}

/// Replaces `sem_timedwait`.
pub(crate) unsafe extern "C" fn timedwait(sem: *mut sem_t, until: *const timespec) -> libc::c_int {
    // SAFETY: the caller's arguments, unchanged.
    noted(sem, || unsafe { REAL_TIMEDWAIT.get()(sem, until) })
}

/// Replaces `sem_clockwait`.
pub(crate) unsafe extern "C" fn clockwait(sem: *mut sem_t, clock: clockid_t, until: *const timespec) -> libc::c_int {
    // SAFETY: the caller's arguments, unchanged.
    noted(sem, || unsafe { REAL_CLOCKWAIT.get()(sem, clock, until) })
}
