//! The condvars and the mutex that a probe thread was seen to use.
//!
//! The hooks report every timed wait and signal that is not the scheduled GIL's. While a
//! sighting is on, those of the probe thread are kept: it waits on `gil.cond` with `gil.mutex`,
//! and signals `gil.switch_cond` once it has the GIL.
//!
//! Must never: keep an address that another thread used. Invariant: one thread, which holds the
//! installation guard, starts and stops a sighting.

use crate::thread::with_current;
use libc::{pthread_cond_t, pthread_mutex_t};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

static IS_ON: AtomicBool = AtomicBool::new(false);
static COND: AtomicPtr<pthread_cond_t> = AtomicPtr::new(null_mut());
static MUTEX: AtomicPtr<pthread_mutex_t> = AtomicPtr::new(null_mut());
static SWITCH_COND: AtomicPtr<pthread_cond_t> = AtomicPtr::new(null_mut());

/// The GIL's condvars and mutex.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sighting {
    /// `gil->cond`
    pub(crate) cond: *mut pthread_cond_t,
    /// `gil->mutex`
    pub(crate) mutex: *mut pthread_mutex_t,
    /// `gil->switch_cond`
    pub(crate) switch_cond: *mut pthread_cond_t,
}

/// Forgets an earlier sighting and starts a new one.
pub(crate) fn start() {
    COND.store(null_mut(), Relaxed);
    SWITCH_COND.store(null_mut(), Relaxed);
    // Relaxed is enough: the probe is started later, and the start of a thread synchronises.
    IS_ON.store(true, Relaxed);
}

/// Stops the sighting; what was seen is kept.
pub(crate) fn stop() {
    IS_ON.store(false, Relaxed);
}

/// Whether the probe's wait has been seen.
pub(crate) fn has_seen_wait() -> bool {
    // ORDERING: Acquire pairs with the Release in `notice_wait`: the mutex is there.
    !COND.load(Acquire).is_null()
}

/// Whether the probe's signal has been seen.
pub(crate) fn has_seen_signal() -> bool {
    // ORDERING: Acquire pairs with the Release in `notice_signal`.
    !SWITCH_COND.load(Acquire).is_null()
}

/// The addresses that the last sighting has seen.
pub(crate) fn last() -> Sighting {
    Sighting {
        cond: COND.load(Relaxed),
        mutex: MUTEX.load(Relaxed),
        switch_cond: SWITCH_COND.load(Relaxed),
    }
}

/// Reports a timed wait that is not the scheduled GIL's.
pub(super) fn notice_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) {
    if IS_ON.load(Relaxed) && with_current(|current| current.is_probe.get()) {
        MUTEX.store(mutex, Relaxed);
        // ORDERING: Release publishes the mutex to the Acquire in `has_seen_wait`.
        COND.store(cond, Release);
    }
}

/// Reports a signal that is not the scheduled GIL's.
pub(super) fn notice_signal(cond: *mut pthread_cond_t) {
    if IS_ON.load(Relaxed) && with_current(|current| current.is_probe.get()) && SWITCH_COND.load(Relaxed).is_null() {
        // ORDERING: Release pairs with the Acquire in `has_seen_signal`.
        SWITCH_COND.store(cond, Release);
    }
}
