//! The clock of the scheduler: CLOCK_MONOTONIC, in nanoseconds.
//!
//! The same clock that CPython gives its GIL condvar (`init_condattr` in
//! `Python/thread_pthread.h`), so deadlines can be compared.

use unsnarl_policy::Nanos;

/// Now.
pub(crate) fn now() -> Nanos {
    read(libc::CLOCK_MONOTONIC)
}

/// The time of the kernel's last tick, at most some milliseconds ago. Reading it does not read
/// the processor's counter.
pub(crate) fn last_tick() -> Nanos {
    read(libc::CLOCK_MONOTONIC_COARSE)
}

/// The processor time of the calling thread, by a clock of its own; reading it costs a system call.
pub(crate) fn processor_time() -> Nanos {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid, writable timespec.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    nanos(&time)
}

/// A timespec as nanoseconds; negative ones are zero.
pub(crate) fn nanos(time: &libc::timespec) -> Nanos {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Nanoseconds as a timespec.
pub(crate) fn timespec(nanos: Nanos) -> libc::timespec {
    libc::timespec {
        tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (nanos % 1_000_000_000) as libc::c_long,
    }
}
