//! The calling thread: its identity and its number.
//!
//! Invariant: no two threads of one process, nor of a process and its forked children, share a number.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The thread's identity, as `threading.get_ident()` returns it.
#[inline]
pub(in crate::sync) fn ident() -> usize {
    // SAFETY: pthread_self(3) always succeeds.
    (unsafe { libc::pthread_self() }) as usize
}

/// The thread's number. A thread that forks keeps its number in the child; no other thread of either
/// process has this number.
pub(in crate::sync) fn number() -> usize {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = LAST.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}
