//! The state of the one GIL that is scheduled: its addresses, its policy, its counters.
//!
//! Invariants: the policy is only used with the GIL's own mutex held (that is the queue's
//! lock; there is no second one); while `COND` is null every hook passes through.

use super::sighting;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use unsnarl_policy::Policy;

/// `gil->cond`; null while nothing is installed.
pub(crate) static COND: AtomicPtr<libc::pthread_cond_t> = AtomicPtr::new(std::ptr::null_mut());
/// `gil->switch_cond`.
pub(crate) static SWITCH_COND: AtomicPtr<libc::pthread_cond_t> = AtomicPtr::new(std::ptr::null_mut());
/// `gil->mutex`.
pub(crate) static MUTEX: AtomicPtr<libc::pthread_mutex_t> = AtomicPtr::new(std::ptr::null_mut());
/// Number of takes: a thread in a forced switch waits until it changes.
static TAKES: AtomicU32 = AtomicU32::new(0);
/// Threads asleep in the original `pthread_cond_wait` of a forced switch.
pub(super) static SWITCHING: AtomicU32 = AtomicU32::new(0);
/// Whether a thread holds the installation guard.
pub(crate) static IS_CHANGING: AtomicBool = AtomicBool::new(false);

struct PolicyCell(UnsafeCell<Option<Policy>>);
// SAFETY: only `policy` reaches the cell, and its callers hold the GIL's mutex.
unsafe impl Sync for PolicyCell {}
static POLICY: PolicyCell = PolicyCell(UnsafeCell::new(None));

/// The policy.
///
/// # Safety
/// The caller holds the GIL's mutex (or is the only thread: installation before
/// the first slot is written, the child of a fork), and keeps no other reference.
#[allow(clippy::mut_from_ref)]
pub(crate) unsafe fn policy() -> Option<&'static mut Policy> {
    // SAFETY: exclusive by the caller's promise.
    unsafe { (*POLICY.0.get()).as_mut() }
}

/// Sets the policy, once.
///
/// # Safety
/// As for [`policy`].
pub(crate) unsafe fn set_policy(policy: Policy) {
    // SAFETY: exclusive by the caller's promise.
    unsafe { *POLICY.0.get() = Some(policy) };
}

/// Whether this is the condvar of the scheduled GIL.
pub(super) fn is_gil_cond(cond: *mut libc::pthread_cond_t) -> bool {
    // Relaxed is enough: the policy is published by the mutex under which COND is set, and
    // the caller holds that mutex.
    cond == COND.load(Relaxed)
}

/// Whether this is the condvar of a forced switch of the scheduled GIL.
pub(super) fn is_switch_cond(cond: *mut libc::pthread_cond_t) -> bool {
    cond == SWITCH_COND.load(Relaxed) && is_active()
}

/// Whether the scheduler is active.
pub(crate) fn is_active() -> bool {
    !COND.load(Relaxed).is_null()
}

/// Counts a take.
pub(super) fn count_take() {
    // ORDERING: Release pairs with the Acquire of `takes`. Not an RMW: takes
    // are serialised by the GIL's mutex.
    TAKES.store(TAKES.load(Relaxed).wrapping_add(1), Release);
}

/// The number of takes so far (modulo 2^32).
pub(super) fn takes() -> u32 {
    // ORDERING: Acquire pairs with the Release in `count_take`.
    TAKES.load(Acquire)
}

/// Resets what other threads were doing with the GIL. An installation that the fork has cut
/// short ends: the hooks that it left in place pass through.
pub(super) fn restart_in_child() {
    if IS_CHANGING.swap(false, Relaxed) {
        sighting::stop();
        COND.store(std::ptr::null_mut(), Relaxed);
    }
    SWITCHING.store(0, Relaxed);
}
