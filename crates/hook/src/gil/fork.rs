//! Resets the scheduler and the recorder in the child of a fork.
//!
//! `_PyEval_ReInitThreads` re-initialises the GIL's mutex and condvars at the same addresses.
//! The other threads do not exist in the child, and neither do their places in the queues.
//! The fork may copy memory while another thread changes the policy. The policy is plain data,
//! and all of it but the survivor's entry is reset.
//!
//! Must never: touch the GIL, allocate, or wait, since these handlers also run when C code
//! forks; hold the GIL's mutex across the fork, to keep the policy at rest. Handlers registered
//! before ours run between `before` and the other two: a handler that drops the GIL would wait
//! for its own thread for ever.

use super::{deferred_wake, departed, state};
use crate::error::Unsupported;
use crate::record;
use crate::thread::{self, PerThread, kernel, with_current};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Read and written only by a thread that holds the installation guard.
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

extern "C" fn before() {
    with_current(|current| current.fork.begin());
}

extern "C" fn after_in_parent() {
    with_current(|current| current.fork.end_in_parent());
}

extern "C" fn after_in_child() {
    with_current(|current| {
        if !current.fork.is_prepared() {
            prepare_child(current);
        }
    });
}

/// Prepares the child if a fork handler older than ours has dropped the GIL there: the policy
/// still lists threads that do not exist.
#[inline]
pub(super) fn notice(current: &PerThread) {
    if current.fork.is_in_unprepared_child() {
        prepare_child(current);
    }
}

#[cold]
fn prepare_child(current: &PerThread) {
    current.fork.end_in_child();
    // SAFETY: the child has one thread.
    if let Some(policy) = unsafe { state::policy() } {
        policy.restart_in_child(current.id());
    }
    departed::forget();
    deferred_wake::restart_in_child();
    thread::restart_in_child();
    state::restart_in_child();
    record::restart_in_child();
    kernel::restart_in_child(current.id());
}
