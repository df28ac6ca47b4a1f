//! Timeouts as multiprocessing takes them: one that is too long for the clock has no end.
//!
//! Invariant: no length of a timeout is an error, as it is of the thread primitives.

use crate::sync::arguments::{self, Patience};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

type Timeout<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

fn or<T>(timeout: Timeout<'_, '_>, outcome: PyResult<T>, endless: T) -> PyResult<T> {
    match (outcome, timeout) {
        (Err(error), Some(timeout)) if error.is_instance_of::<PyOverflowError>(timeout.py()) => Ok(endless),
        (outcome, _) => outcome,
    }
}

/// Of `wait` and `acquire`: nothing or a negative time does not wait.
pub(in crate::ipc) fn wait_patience(timeout: Timeout<'_, '_>) -> PyResult<Patience> {
    or(timeout, arguments::wait_patience(timeout), Patience::Endless)
}

/// Of `put` and `get`.
pub(in crate::ipc) fn queue_patience(block: bool, timeout: Timeout<'_, '_>) -> PyResult<Patience> {
    or(timeout, arguments::queue_patience(block, timeout), Patience::Endless)
}

/// Of the asynchronous methods, in seconds.
pub(in crate::ipc) fn task_timeout(timeout: Timeout<'_, '_>) -> PyResult<Option<f64>> {
    or(timeout, arguments::task_timeout(timeout), None)
}
