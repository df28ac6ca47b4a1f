//! Whether the calling thread is in a fork, and whether its child has been prepared.
//!
//! Handlers of other libraries may run before ours in the child, and may drop the GIL there,
//! where the other threads no longer exist. So the hooks check this state before they ask the
//! policy about other threads, and prepare the child early if they have to.
//!
//! | state | `process` | `is_prepared` |
//! |---|---|---|
//! | no fork | 0 | any |
//! | forking, in the parent | own process | false |
//! | in the child, not prepared | the parent's | false |
//! | in the child, prepared | 0 | true |
//!
//! Invariant: only the thread itself reads and writes it.

use std::cell::Cell;

/// One thread's state in a fork.
pub(crate) struct Fork {
    /// The process that the thread forks; 0 outside of a fork.
    process: Cell<libc::pid_t>,
    /// Whether the scheduler has been reset for the child.
    is_prepared: Cell<bool>,
}

impl Fork {
    /// No fork.
    pub(super) const fn none() -> Self {
        Self {
            process: Cell::new(0),
            is_prepared: Cell::new(false),
        }
    }

    /// The thread is about to fork.
    pub(crate) fn begin(&self) {
        self.process.set(process());
        self.is_prepared.set(false);
    }

    /// The thread has forked, and is in the parent.
    pub(crate) fn end_in_parent(&self) {
        self.process.set(0);
    }

    /// The child has been, or is being, prepared.
    pub(crate) fn end_in_child(&self) {
        self.process.set(0);
        self.is_prepared.set(true);
    }

    /// Whether the child has been prepared since [`begin`](Self::begin).
    pub(crate) fn is_prepared(&self) -> bool {
        self.is_prepared.get()
    }

    /// Whether the thread is in a child that has not been prepared.
    #[inline]
    pub(crate) fn is_in_unprepared_child(&self) -> bool {
        self.process.get() != 0 && self.process.get() != process()
    }
}

fn process() -> libc::pid_t {
    // SAFETY: getpid has no preconditions.
    unsafe { libc::getpid() }
}
