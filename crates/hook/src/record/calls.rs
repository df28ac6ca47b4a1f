//! Two functions of libc that only the recorder looks at: the release of a semaphore
//! and `time.sleep`. Their slots are replaced while a recording is on.

use crate::slots::Replacement;
use libc::{c_int, clockid_t, sem_t, timespec};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static REAL_POST: AtomicUsize = AtomicUsize::new(0);
static REAL_NANOSLEEP: AtomicUsize = AtomicUsize::new(0);

/// The functions, none of them required: a build without semaphores has no locks to see.
pub(crate) fn replacements() -> [Replacement; 2] {
    [
        Replacement::new(
            "sem_post",
            post as *const (),
            libc::sem_post as *const (),
            &REAL_POST,
            false,
        ),
        Replacement::new(
            "clock_nanosleep",
            nanosleep as *const (),
            libc::clock_nanosleep as *const (),
            &REAL_NANOSLEEP,
            false,
        ),
    ]
}

/// Takes the place of `sem_post`, which releases a lock.
unsafe extern "C" fn post(sem: *mut sem_t) -> c_int {
    super::posts(sem as usize);
    // SAFETY: holds the address of sem_post since `Slots::find`.
    let real: unsafe extern "C" fn(*mut sem_t) -> c_int = unsafe { std::mem::transmute(REAL_POST.load(Relaxed)) };
    // SAFETY: the caller's arguments, unchanged.
    unsafe { real(sem) }
}

/// Takes the place of `clock_nanosleep`, in which `time.sleep` waits.
unsafe extern "C" fn nanosleep(clock: clockid_t, flags: c_int, until: *const timespec, left: *mut timespec) -> c_int {
    super::sleeps();
    // SAFETY: holds the address of clock_nanosleep since `Slots::find`.
    let real: unsafe extern "C" fn(clockid_t, c_int, *const timespec, *mut timespec) -> c_int =
        unsafe { std::mem::transmute(REAL_NANOSLEEP.load(Relaxed)) };
    // SAFETY: the caller's arguments, unchanged.
    unsafe { real(clock, flags, until, left) }
}
