//! What a fork does to the scheduler.
//!
//! `_PyEval_ReInitThreads` re-initialises the GIL's mutex and condvars at the same
//! addresses; the other threads are gone, and so are their places in the queues.
//! Must never: touch the GIL, allocate, or wait for long: these handlers also run
//! when C code forks.

use crate::error::Unsupported;
use crate::gil::{self, MUTEX, SWITCHING};
use crate::thread::{self, Own, with_own};
use crate::{install, record};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Set and read by whoever has the turn to install.
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);
/// A signal handler may fork while its own thread holds the mutex.
const TRIES: u32 = 100_000;

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
    let mutex = MUTEX.load(Relaxed);
    if mutex.is_null() || !gil::is_active() {
        return;
    }
    for _ in 0..TRIES {
        // SAFETY: the GIL's mutex is valid while the scheduler is active.
        if unsafe { libc::pthread_mutex_trylock(mutex) } == 0 {
            // The policy is at rest when memory is copied.
            with_own(|own| own.is_fork_locked.set(true));
            return;
        }
        std::hint::spin_loop();
    }
}

extern "C" fn after_in_parent() {
    if with_own(|own| own.is_fork_locked.take()) {
        // SAFETY: this thread locked it in `before`.
        unsafe { libc::pthread_mutex_unlock(MUTEX.load(Relaxed)) };
    }
}

extern "C" fn after_in_child() {
    // SAFETY: the child has one thread.
    if let Some(policy) = unsafe { gil::policy() } {
        policy.restart_in_child(with_own(Own::id));
    }
    thread::restart_in_child();
    install::restart_in_child();
    record::restart_in_child();
    SWITCHING.store(0, Relaxed);
    with_own(crate::kernel::forget);
    after_in_parent();
}
