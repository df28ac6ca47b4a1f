//! Threads of ours get no signals: these go to the program's threads, and interrupt the main thread's waiting.

use std::mem::MaybeUninit;

/// Blocks all signals in this thread, and in those that it starts; returns which were blocked before.
pub(crate) fn block_signals() -> libc::sigset_t {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both point to memory for a set; sigfillset fills the first, which the call after it reads, and that
    // fills the second.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    }
}

/// Calls `start` with all signals blocked, which a thread started by it inherits.
pub(crate) fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let before = block_signals();
    let started = start();
    // SAFETY: the set is a whole one; nothing is asked to be written.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    started
}
