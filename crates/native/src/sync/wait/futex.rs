//! The two futex calls: sleep on a word, and wake the thread that sleeps on it.
//!
//! Must never: be called with the GIL held, for `wait`. `wake` returns in bounded time.

use std::time::Instant;
use unsnarl_sync::AtomicU32;

/// Why a sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sync) enum Woken {
    /// The word has changed, or the wake-up was spurious: read the word.
    Perhaps,
    /// The deadline has passed.
    TimedOut,
    /// A signal handler ran.
    Interrupted,
}

/// Sleep while the word is `expected`, until the deadline.
pub(in crate::sync) fn wait(word: &AtomicU32, expected: u32, deadline: Option<Instant>) -> Woken {
    let mut spec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let mut timeout: *const libc::timespec = std::ptr::null();
    if let Some(deadline) = deadline {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Woken::TimedOut;
        }
        spec.tv_sec = left.as_secs() as i64;
        spec.tv_nsec = libc::c_long::from(left.subsec_nanos());
        timeout = &raw const spec;
    }
    // SAFETY: futex(2) FUTEX_WAIT: the word is aligned and outlives the call (borrowed),
    // `timeout` is null or points to a timespec that lives on this frame.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            timeout,
        )
    };
    if result == 0 {
        return Woken::Perhaps;
    }
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::ETIMEDOUT) => Woken::TimedOut,
        Some(libc::EINTR) => Woken::Interrupted,
        _ => Woken::Perhaps,
    }
}

/// Wake the thread that sleeps on the word.
pub(in crate::sync) fn wake(word: &AtomicU32) {
    wake_address(word.as_ptr() as usize);
}

/// As [`wake`], for a word that may be gone: then no thread sleeps there, or one that is woken spuriously.
pub(in crate::sync) fn wake_address(word: usize) {
    // SAFETY: futex(2) FUTEX_WAKE never dereferences the address.
    unsafe {
        libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
    }
}
