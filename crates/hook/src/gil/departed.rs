//! Notices who has left `take_gil` without the GIL, although still in the policy's queue.
//!
//! A waiter that the hook sends back to `take_gil`, for a look or with ETIMEDOUT, comes
//! again or takes the GIL under the same hold of the GIL's mutex; or the interpreter is
//! ending, and `take_gil` ends the thread (before CPython 3.14) or hangs it for ever. So if
//! anybody else comes first, it has left, and its place is given up.
//!
//! Invariant: only touched with the GIL's mutex held. Were a CPython to let go of the mutex
//! in between, a waiter would lose its place and queue up anew, no more.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use unsnarl_policy::{Policy, ThreadId};

const NOBODY: usize = usize::MAX;

/// Who has been sent back and not been seen since.
static SENT_BACK: AtomicUsize = AtomicUsize::new(NOBODY);

/// `thread` is sent back, and stays in its queue.
pub(crate) fn sent_back(thread: ThreadId) {
    SENT_BACK.store(thread.index(), Relaxed);
}

/// `by` has locked the GIL's mutex: who was sent back is it, or has left.
pub(crate) fn notice(policy: &mut Policy, by: Option<ThreadId>) {
    let index = SENT_BACK.load(Relaxed);
    if index == NOBODY {
        return;
    }
    forget();
    let sent_back = ThreadId::new(index);
    if Some(sent_back) != by {
        policy.cancel(sent_back);
    }
}

/// The queues have been emptied.
pub(crate) fn forget() {
    SENT_BACK.store(NOBODY, Relaxed);
}
