//! Hooks of the semaphore calls: a contended `threading.Lock` blocks in a wait, and its release is a post. A wait notes
//! that the thread has blocked on a lock; a post may defer its wake-up (`deferred_wake`).
//!
//! `PyThread_acquire_lock_timed` (`Python/thread_pthread.h`) and, from 3.13 on,
//! `_PySemaphore_Wait` (`Python/parking_lot.c`) call them, after a first non-blocking try has
//! failed.
//!
//! Must never: change what the call does or returns.

use super::{deferred_wake, state};
use crate::clock;
use crate::elf::original::Original;
use crate::record;
use crate::thread::{PerThread, with_current};
use libc::{clockid_t, sem_t, timespec};
use unsnarl_policy::Nanos;

type Wait = unsafe extern "C" fn(*mut sem_t) -> libc::c_int;
type TimedWait = unsafe extern "C" fn(*mut sem_t, *const timespec) -> libc::c_int;
type ClockWait = unsafe extern "C" fn(*mut sem_t, clockid_t, *const timespec) -> libc::c_int;

type Post = unsafe extern "C" fn(*mut sem_t) -> libc::c_int;

pub(crate) static REAL_POST: Original<Post> = Original::new(libc::sem_post);
pub(crate) static REAL_WAIT: Original<Wait> = Original::new(libc::sem_wait);
pub(crate) static REAL_TIMEDWAIT: Original<TimedWait> = Original::new(libc::sem_timedwait);
/// glibc's from 2.30 on, where CPython uses it; neither older ones nor musl have it. So this library does not link it: the
/// row of `hooked.rs` finds it by its name.
pub(crate) static REAL_CLOCKWAIT: Original<ClockWait> = Original::new(no_clockwait);

/// What a C library without `sem_clockwait` would answer; an interpreter that calls it has a C library with it.
unsafe extern "C" fn no_clockwait(_: *mut sem_t, _: clockid_t, _: *const timespec) -> libc::c_int {
    // SAFETY: errno is this thread's.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}

/// Makes the call; notes that the thread has blocked on a lock if it acquired it.
///
/// While a recording is on, a semaphore that is free is taken first, and is no wait: `hashlib` before 3.13 waits for its
/// lock without a try before, and without the GIL, whose next request marks the end of a wait.
fn noted(sem: *mut sem_t, call: impl FnOnce() -> libc::c_int) -> libc::c_int {
    let is_free = record::is_recording() && is_taken_at_once(sem);
    let lock = record::lock_of(sem);
    let is_recorded = !is_free && record::lock_begins(lock);
    if state::is_active() {
        with_current(PerThread::blocks_on_lock);
    }
    let result = if is_free { 0 } else { call() };
    if is_recorded {
        record::lock_ends(lock, result == 0);
    }
    if result == 0 && state::is_active() {
        with_current(|current| current.was_on_lock());
    }
    result
}

/// Takes a semaphore if it is free, which a wait would do as well before it blocks; returns whether it did.
fn is_taken_at_once(sem: *mut sem_t) -> bool {
    // SAFETY: errno is this thread's, and is as before: a wait that follows sets it by itself.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the caller's semaphore.
    let is_taken = unsafe { libc::sem_trywait(sem) } == 0;
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    is_taken
}

/// Replaces `sem_post`, which releases a lock.
pub(crate) unsafe extern "C" fn post(sem: *mut sem_t) -> libc::c_int {
    record::posts(record::lock_of(sem));
    // SAFETY: the caller's argument, unchanged.
    if unsafe { deferred_wake::release(sem) } {
        return 0;
    }
    // SAFETY: the caller's argument, unchanged.
    unsafe { REAL_POST.get()(sem) }
}

/// Replaces `sem_wait`.
pub(crate) unsafe extern "C" fn wait(sem: *mut sem_t) -> libc::c_int {
    // SAFETY: the caller's argument, unchanged, here and in the closure.
    noted(sem, || unsafe {
        deferred_wake::wait(sem, Nanos::MAX, || REAL_WAIT.get()(sem))
    })
}

/// Replaces `sem_timedwait`.
pub(crate) unsafe extern "C" fn timedwait(sem: *mut sem_t, until: *const timespec) -> libc::c_int {
    // SAFETY: the caller's arguments, unchanged.
    noted(sem, || unsafe { REAL_TIMEDWAIT.get()(sem, until) })
}

/// Replaces `sem_clockwait`.
pub(crate) unsafe extern "C" fn clockwait(sem: *mut sem_t, clock: clockid_t, until: *const timespec) -> libc::c_int {
    // SAFETY: the caller's arguments, unchanged.
    let call = || unsafe { REAL_CLOCKWAIT.get()(sem, clock, until) };
    if clock != libc::CLOCK_MONOTONIC {
        return noted(sem, call);
    }
    // SAFETY: the caller's semaphore and its valid deadline.
    noted(sem, || unsafe { deferred_wake::wait(sem, clock::nanos(&*until), call) })
}
