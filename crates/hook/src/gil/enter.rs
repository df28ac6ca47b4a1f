//! Entry to the policy: what every hook does first once it holds the GIL's mutex.
//!
//! Invariant: the policy is asked about other threads only through [`enter`], which knows
//! whether those threads still exist. The uncontended paths of `cond` ask nothing about other
//! threads, and use the policy directly.

use super::state::MUTEX;
use super::{departed, fork, state};
use crate::thread::{PerThread, with_current};
use libc::pthread_mutex_t;
use std::sync::atomic::Ordering::Relaxed;
use unsnarl_policy::Policy;

/// How often [`lock`] tries the mutex before the thread sleeps for it. A holder keeps it for
/// a few hundred nanoseconds, and for a wake call at most.
const MUTEX_TRIES: u32 = 200;

/// The policy, once the calling thread has noticed a fork and a departed waiter.
///
/// # Safety
/// The calling thread, which is `current`, holds the GIL's mutex and keeps no other reference
/// to the policy.
pub(super) unsafe fn enter(current: &PerThread) -> Option<&'static mut Policy> {
    fork::notice(current);
    // SAFETY: the caller's promise.
    let policy = unsafe { state::policy() }?;
    departed::notice(policy, current.id());
    Some(policy)
}

/// Locks the GIL's mutex and runs `f` on the policy, from outside of `take_gil` and
/// `drop_gil`; `None` if the scheduler has never been installed.
pub(crate) fn with_mutex<R>(f: impl FnOnce(&mut Policy) -> R) -> Option<R> {
    let mutex = MUTEX.load(Relaxed);
    if mutex.is_null() {
        return None;
    }
    lock(mutex);
    // SAFETY: the mutex is held.
    let result = with_current(|current| unsafe { enter(current) }).map(f);
    // SAFETY: locked above.
    unsafe { libc::pthread_mutex_unlock(mutex) };
    result
}

/// Locks a mutex of the GIL, spinning for a short time first.
pub(super) fn lock(mutex: *mut pthread_mutex_t) {
    for _ in 0..MUTEX_TRIES {
        // SAFETY: the GIL's mutex is valid as long as threads wait for the GIL.
        if unsafe { libc::pthread_mutex_trylock(mutex) } == 0 {
            return;
        }
        std::hint::spin_loop();
    }
    // SAFETY: as above.
    unsafe { libc::pthread_mutex_lock(mutex) };
}
