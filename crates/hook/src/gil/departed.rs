//! Notices a waiter that has left `take_gil` without the GIL, and cancels its wait.
//!
//! The hook sends a waiter back to `take_gil` to check the GIL, or with ETIMEDOUT. The waiter
//! calls again or takes the GIL under the same hold of the GIL's mutex. Otherwise the
//! interpreter is ending, and `take_gil` ends the thread (before CPython 3.14) or hangs it for
//! ever. So if another thread locks the mutex first, the waiter has left; its place in the
//! queue is given up.
//!
//! Invariant: only used with the GIL's mutex held. If a CPython released the mutex in
//! between, a waiter would lose its place and queue up again, no more.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use unsnarl_policy::{Policy, ThreadId};

const NO_THREAD: usize = usize::MAX;

/// The waiter that was sent back last and has not been seen since.
static SENT_BACK: AtomicUsize = AtomicUsize::new(NO_THREAD);

/// Notes that `thread` is sent back, and stays in its queue.
pub(super) fn sent_back(thread: ThreadId) {
    SENT_BACK.store(thread.index(), Relaxed);
}

/// Cancels the wait of the thread that was sent back, unless it is `by`, which has locked
/// the GIL's mutex.
pub(super) fn notice(policy: &mut Policy, by: Option<ThreadId>) {
    let index = SENT_BACK.load(Relaxed);
    if index == NO_THREAD {
        return;
    }
    forget();
    let sent_back = ThreadId::new(index);
    if Some(sent_back) != by {
        policy.cancel(sent_back);
    }
}

/// Forgets the thread that was sent back: the queues have been emptied.
pub(super) fn forget() {
    SENT_BACK.store(NO_THREAD, Relaxed);
}
