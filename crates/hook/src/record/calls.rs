//! The hook of a function that only the recorder observes: `time.sleep` waits in it. Its slot is replaced while a
//! recording is on.
//!
//! Must never: change what the call does or returns.

use crate::elf::original::Original;
use libc::{c_int, clockid_t, timespec};

type Sleep = unsafe extern "C" fn(clockid_t, c_int, *const timespec, *mut timespec) -> c_int;

pub(crate) static REAL_SLEEP: Original<Sleep> = Original::new(libc::clock_nanosleep);

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
