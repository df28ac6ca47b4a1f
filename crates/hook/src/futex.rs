//! The two futex calls of the scheduler, on words that are private to the process.
//!
//! Must never: read or write the word; the kernel compares it. Invariant: deadlines are absolute times of
//! CLOCK_MONOTONIC, as everywhere in this crate.

use crate::clock;
use unsnarl_policy::Nanos;

/// Sleeps while the word is `expected`; returns errno's value, or 0 for a wake-up.
pub(crate) fn wait(word: *const u32, expected: u32, until: Nanos) -> libc::c_int {
    let deadline = clock::timespec(until);
    // SAFETY: FUTEX_WAIT_BITSET checks the address of the word, takes an absolute CLOCK_MONOTONIC timespec, which
    // `deadline` is, and ignores uaddr2.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word,
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
            expected,
            &raw const deadline,
            std::ptr::null::<u32>(),
            u32::MAX,
        )
    };
    if result == 0 {
        return 0;
    }
    // SAFETY: errno is this thread's.
    unsafe { *libc::__errno_location() }
}

/// Wakes one thread that sleeps on the word, if there is one.
pub(crate) fn wake(word: *const u32) {
    // SAFETY: FUTEX_WAKE only uses the address of the word.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1) };
}
