//! The wait for a notification, during which the condition's lock is released.
//!
//! With a lock of ours the wait ends when the waiter was notified and has the lock again.
//!
//! Invariant: `has_lock` is true exactly while the waiting party holds the lock.

use super::guard::{Guard, Saved};
use super::state::Condition;
use crate::sync::permit::acquirable::Acquirable;
use crate::sync::permit::release_waiver;
use crate::sync::wait::party::Party;
use crate::sync::wait::protocol::Wait;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use unsnarl_sync::{Arc, Waiter};

/// An object that is true while the lock of an asynchronous wait is held.
#[pyclass(frozen, module = "unsnarl._native")]
pub(in crate::sync) struct Holding {
    condition: Py<Condition>,
    who: usize,
    has_lock: Arc<AtomicBool>,
}

#[pymethods]
impl Holding {
    fn __bool__(&self) -> bool {
        self.has_lock.load(Ordering::Relaxed)
    }

    /// Close the coroutine, which cannot wait for the lock: acquire the lock if it is free, else waive the
    /// release that follows. False if the lock is not one of ours.
    fn _leave(&self, py: Python<'_>, depth: usize) -> bool {
        if self.__bool__() {
            return true;
        }
        let Some(guard) = self.condition.get().guard_set() else {
            return false;
        };
        match guard.try_take_for(py, self.who, depth) {
            Some(true) => self.has_lock.store(true, Ordering::Relaxed),
            Some(false) => release_waiver::waive(py, guard.object(py).as_ptr() as usize),
            None => return false,
        }
        true
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.condition)
    }
}

/// The wait for a notification, and, with a lock of ours, for the lock.
pub(in crate::sync) struct NotifyWait {
    condition: Py<Condition>,
    who: usize,
    pub(in crate::sync) saved: Option<Saved>,
    pub(in crate::sync) notified: bool,
    /// Whether the lock is held: before it is released, and once it is acquired again.
    pub(in crate::sync) has_lock: Arc<AtomicBool>,
}

impl NotifyWait {
    pub(in crate::sync) fn new(condition: Py<Condition>, who: usize) -> Self {
        let has_lock = Arc::new(AtomicBool::new(true));
        Self {
            condition,
            who,
            saved: None,
            notified: false,
            has_lock,
        }
    }

    /// The object by which the coroutine knows whether it has the lock.
    pub(in crate::sync) fn holding(&self, py: Python<'_>) -> Holding {
        Holding {
            condition: self.condition.clone_ref(py),
            who: self.who,
            has_lock: Arc::clone(&self.has_lock),
        }
    }

    fn regained(&mut self) {
        let guard = self.condition.get().guard_set();
        let depth = match self.saved {
            Some(Saved::Depth(depth)) => depth,
            _ => 1,
        };
        match guard {
            Some(Guard::Lock(lock)) => lock.get().taken(self.who),
            Some(Guard::RLock(lock)) => {
                lock.get().taken(self.who);
                lock.get().set_depth(depth);
            }
            _ => return,
        }
        self.has_lock.store(true, Ordering::Relaxed);
    }
}

impl Wait for NotifyWait {
    fn attempt(&mut self, _py: Python<'_>) -> PyResult<bool> {
        Ok(false)
    }
    fn begin(&mut self, py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        let this = self.condition.get();
        this.notifier.begin(waiter);
        if let Some(guard) = this.guard_set() {
            match guard.release_save(py) {
                Ok(saved) => {
                    self.saved = Some(saved);
                    self.has_lock.store(false, Ordering::Relaxed);
                }
                Err(error) => {
                    this.notifier.cancel(waiter);
                    return Err(error);
                }
            }
        }
        Ok(false)
    }
    fn resume(&mut self, _py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        self.notified = true;
        let regained = match self.condition.get().guard_set() {
            Some(Guard::Lock(lock)) => lock.get().permits().resume(waiter),
            Some(Guard::RLock(lock)) => lock.get().permits().resume(waiter),
            _ => return Ok(true),
        };
        if regained {
            self.regained();
        }
        Ok(regained)
    }
    fn cancel(&mut self, _py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        let this = self.condition.get();
        if this.notifier.cancel(waiter) {
            return Ok(false);
        }
        self.notified = true;
        let granted = match this.guard_set() {
            Some(Guard::Lock(lock)) => lock.get().permits().cancel(waiter),
            Some(Guard::RLock(lock)) => lock.get().permits().cancel(waiter),
            _ => return Ok(true),
        };
        if granted {
            self.regained();
        }
        // Notified, though perhaps without the lock: `wait` acquires it.
        Ok(true)
    }
    fn give_back(&mut self, _py: Python<'_>) {
        // Interrupted after it was notified: the notification goes to another waiter.
        self.condition.get().pass_on(1);
    }
    fn leave_behind(&mut self, py: Python<'_>) {
        self.give_back(py);
        // The task's `async with` does not end before the task is collected, so it would not release the
        // lock.
        if self.has_lock.swap(false, Ordering::Relaxed) {
            match self.condition.get().guard_set() {
                Some(Guard::Lock(lock)) => lock.get().put_back(),
                Some(Guard::RLock(lock)) => lock.get().put_back(),
                _ => {}
            }
        }
    }
    fn task(&self) -> usize {
        self.who
    }
    fn object(&self) -> usize {
        self.condition.as_ptr() as usize
    }
    fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        if let Some(Saved::Foreign(saved)) = &self.saved {
            visit.call(saved)?;
        }
        visit.call(&self.condition)
    }
}
