//! Hooks of two functions that only the recorder observes: the release of a semaphore and
//! `time.sleep`. Their slots are replaced while a recording is on.
//!
//! Must never: change what the call does or returns.

use crate::elf::original::Original;
use libc::{c_int, clockid_t, sem_t, timespec};

type Post = unsafe extern "C" fn(*mut sem_t) -> c_int;
type Sleep = unsafe extern "C" fn(clockid_t, c_int, *const timespec, *mut timespec) -> c_int;

pub(crate) static REAL_POST: Original<Post> = Original::new(libc::sem_post);
pub(crate) static REAL_SLEEP: Original<Sleep> = Original::new(libc::clock_nanosleep);

/// Replaces `sem_post`, which releases a lock.
pub(crate) unsafe extern "C" fn post(sem: *mut sem_t) -> c_int {
    super::posts(sem as usize);
    // SAFETY: the caller's arguments, unchanged.
    unsafe { REAL_POST.get()(sem) }
}

/// Replaces `clock_nanosleep`, in which `time.sleep` waits.
pub(crate) unsafe extern "C" fn nanosleep(
    clock: clockid_t,
    flags: c_int,
    until: *const timespec,
    left: *mut timespec,
) -> c_int {
    super::sleeps();
    // SAFETY: the caller's arguments, unchanged.
    unsafe { REAL_SLEEP.get()(clock, flags, until, left) }
}
