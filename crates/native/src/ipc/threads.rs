//! How the threads of one process make attempts: one at a time where there is a GIL, else concurrently.
//!
//! Invariant: `Serialised` only where the GIL is held from the start of an attempt to its end.

use unsnarl_ipc::Threads;

/// Whether threads of this process make attempts one at a time, because of the GIL, or concurrently.
pub(super) const THREADS: Threads = if cfg!(Py_GIL_DISABLED) {
    Threads::Concurrent
} else {
    Threads::Serialised
};
