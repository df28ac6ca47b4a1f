//! The state of a condition: the queue of the parties that wait for a notification, and the lock they
//! released.
//!
//! Invariant: the lock is set once, by `__init__`.

use super::guard::Guard;
use crate::sync::permit::acquirable::Acquirable;
use crate::sync::wait::gil;
use crate::sync::wait::party::Party;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use unsnarl_sync::Notifier;

/// A condition variable for threads, tasks and greenlets.
///
/// Given no lock it makes an `RLock`; for threads, any lock with `acquire` and `release` will do. Waiting or
/// notifying without the lock raises `RuntimeError`. Timeouts are in seconds.
/// Fairness: the longest waiting are notified first. With a lock of ours a notified party moves to the lock's
/// queue, and wakes when it can have the lock.
/// Cancellation: a notification that reached a leaving party goes to the next. `wait` ends with the lock
/// held.
#[pyclass(frozen, subclass, weakref, module = "unsnarl")]
pub(in crate::sync) struct Condition {
    pub(in crate::sync) notifier: Notifier<Party>,
    pub(in crate::sync) guard: PyOnceLock<Guard>,
}

impl Condition {
    pub(in crate::sync) fn guard_set(&self) -> Option<&Guard> {
        // SAFETY: every caller runs in a method, hence attached.
        self.guard.get(unsafe { Python::assume_attached() })
    }

    pub(in crate::sync) fn guard(&self) -> PyResult<&Guard> {
        self.guard_set()
            .ok_or_else(|| PyRuntimeError::new_err("Condition.__init__() was not called"))
    }

    pub(in crate::sync) fn pass_on(&self, count: usize) {
        match self.guard_set() {
            Some(Guard::Lock(lock)) => self.notifier.move_to(lock.get().permits(), count),
            Some(Guard::RLock(lock)) => self.notifier.move_to(lock.get().permits(), count),
            _ => self.notifier.notify(count, gil::fan_out()),
        }
    }
}
