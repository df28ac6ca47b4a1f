//! The trait [`Wait`]: what a primitive provides so that a thread, a greenlet or a task can wait for it.
//!
//! The waiting side ([`super::blocking`] for threads and greenlets, [`super::operation`] for tasks) calls
//! `attempt`, then `begin`, and after each wake-up `resume`, until one of them returns true. It calls
//! `cancel` when the time is up, and `withdraw` when the wait is interrupted.
//!
//! Invariant: from the moment `begin` returns false until another method returns true, the waiter is in the
//! core's queue.

use super::party::Party;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use unsnarl_sync::{Arc, Waiter};

/// One wait for one primitive. `begin`, `resume` and `cancel` are those of the cores.
pub(in crate::sync) trait Wait: Send + Sync {
    /// Acquire if that needs no waiting.
    fn attempt(&mut self, py: Python<'_>) -> PyResult<bool>;
    /// Acquire or enqueue the waiter.
    fn begin(&mut self, py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool>;
    /// After a wake-up: acquire, or keep the waiter's place. Where a wake-up always means a grant, it is acquired.
    fn resume(&mut self, _py: Python<'_>, _waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        Ok(true)
    }
    /// Take the waiter out of the queue because the time is up; true if it was granted before.
    fn cancel(&mut self, py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool>;
    /// Take the waiter out because the party was interrupted or cancelled; true if it was granted before.
    fn withdraw(&mut self, py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        self.cancel(py, waiter)
    }
    /// Release what was granted: the caller gets an exception and will never know of the grant.
    fn give_back(&mut self, _py: Python<'_>) {}
    /// Release what was granted to a task that never runs again: its loop is closed.
    fn leave_behind(&mut self, py: Python<'_>) {
        self.give_back(py);
    }
    /// Add to an exception that ends the wait how far the wait had progressed.
    fn note(&self, _py: Python<'_>, _error: &PyErr) {}
    /// The result of a task's `await` once it has acquired.
    fn outcome(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(boolean(py, true))
    }
    /// The result of a task's `await` when the time is up.
    fn expired(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(boolean(py, false))
    }
    /// The identity of the waiting task, for primitives that look for tasks in their queue; else 0.
    fn task(&self) -> usize {
        0
    }
    /// The address of the primitive, by which the recorder distinguishes locks.
    fn object(&self) -> usize;
    /// Visit the Python objects that the wait refers to, for the garbage collector.
    fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError>;
}

/// `True` or `False` as a Python object.
pub(in crate::sync) fn boolean(py: Python<'_>, value: bool) -> Py<PyAny> {
    PyBool::new(py, value).to_owned().into_any().unbind()
}
