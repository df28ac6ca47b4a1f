//! Reads timeouts as multiprocessing does: a timeout that is too long for the clock never ends.
//!
//! Invariant: no length of a timeout raises `OverflowError`, unlike with the primitives for threads.

use crate::sync::calls::arguments::{self, Timeout};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

type Argument<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

fn endless_if_too_long<T>(timeout: Argument<'_, '_>, read: PyResult<T>, endless: T) -> PyResult<T> {
    match (read, timeout) {
        (Err(error), Some(timeout)) if error.is_instance_of::<PyOverflowError>(timeout.py()) => Ok(endless),
        (read, _) => read,
    }
}

/// Reads the timeout of `wait` and `acquire`: zero or a negative time does not wait.
pub(in crate::ipc) fn wait_timeout(timeout: Argument<'_, '_>) -> PyResult<Timeout> {
    endless_if_too_long(timeout, arguments::wait_timeout(timeout), Timeout::Endless)
}

/// Reads the timeout of `put` and `get`.
pub(in crate::ipc) fn queue_timeout(block: bool, timeout: Argument<'_, '_>) -> PyResult<Timeout> {
    endless_if_too_long(timeout, arguments::queue_timeout(block, timeout), Timeout::Endless)
}

/// Reads the timeout of an asynchronous method, in seconds.
pub(in crate::ipc) fn task_timeout(timeout: Argument<'_, '_>) -> PyResult<Option<f64>> {
    endless_if_too_long(timeout, arguments::task_timeout(timeout), None)
}
