//! What a fork does to the scheduler.
//!
//! `_PyEval_ReInitThreads` re-initialises the GIL's mutex and condvars at the same
//! addresses; the other threads are gone, and so are their places in the queues.
//! Memory is copied while others may be in the midst of a change to the policy: it
//! is plain data, and all of it but the survivor's record is reset.
//!
//! Must never: touch the GIL, allocate, wait: these handlers also run when C code
//! forks. Nor hold the GIL's mutex across the fork, for the policy to be at rest:
//! handlers that were registered before ours run between `before` and the other two,
//! and one that gives the GIL up would wait for its own thread for ever.

use crate::error::Unsupported;
use crate::gil::{self, SWITCHING};
use crate::thread::{self, Own, with_own};
use crate::{departed, install, kernel, record};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Set and read by whoever has the turn to install.
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

/// Registers the handlers, once.
///
/// # Errors
/// [`Unsupported`] if there is no memory for them.
pub(crate) fn register() -> Result<(), Unsupported> {
    if IS_REGISTERED.load(Relaxed) {
        return Ok(());
    }
    // SAFETY: the handlers have the C ABI and stay loaded.
    if unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) } != 0 {
        return Err(Unsupported::new(
            "fork handlers cannot be registered: out of memory",
            "run without the scheduler",
        ));
    }
    IS_REGISTERED.store(true, Relaxed);
    Ok(())
}

/// Where the calling thread is in a fork.
pub(crate) struct Fork {
    /// The process that it forks, from `before` on until a later handler of ours; else 0.
    process: Cell<libc::pid_t>,
    /// The scheduler has become the child's already.
    is_settled: Cell<bool>,
}

impl Fork {
    pub(crate) const fn none() -> Self {
        Self {
            process: Cell::new(0),
            is_settled: Cell::new(false),
        }
    }
}

extern "C" fn before() {
    with_own(|own| {
        own.fork.process.set(process());
        own.fork.is_settled.set(false);
    });
}

extern "C" fn after_in_parent() {
    with_own(|own| own.fork.process.set(0));
}

extern "C" fn after_in_child() {
    with_own(|own| {
        if !own.fork.is_settled.get() {
            settle(own);
        }
    });
}

/// Called by the hooks before they ask the policy about other threads: a handler older
/// than ours may give the GIL up in the child, where those are gone.
#[inline]
pub(crate) fn notice(own: &Own) {
    if own.fork.process.get() != 0 && own.fork.process.get() != process() {
        settle(own);
    }
}

/// Makes the scheduler that of the child.
#[cold]
fn settle(own: &Own) {
    own.fork.process.set(0);
    own.fork.is_settled.set(true);
    // SAFETY: the child has one thread.
    if let Some(policy) = unsafe { gil::policy() } {
        policy.restart_in_child(own.id());
    }
    departed::forget();
    thread::restart_in_child();
    install::restart_in_child();
    record::restart_in_child();
    SWITCHING.store(0, Relaxed);
    kernel::restart_in_child(own);
}

fn process() -> libc::pid_t {
    // SAFETY: getpid has no preconditions.
    unsafe { libc::getpid() }
}
