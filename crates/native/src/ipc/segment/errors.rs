//! Converts failures into Python's exceptions; those of unsnarl are classes written in Python.
//!
//! Invariant: building an exception never panics; a failure to build it is raised instead.

use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use unsnarl_shm::{Problem, SegmentError};

fn exception<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    MODULE
        .get_or_try_init(py, || {
            Ok::<_, PyErr>(py.import("unsnarl.ipc.errors")?.into_any().unbind())
        })?
        .bind(py)
        .getattr(name)
}

fn made(py: Python<'_>, name: &str, arguments: impl for<'py> pyo3::call::PyCallArgs<'py>) -> PyErr {
    match exception(py, name).and_then(|class| class.call1(arguments)) {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

/// The exception for a segment that could not be made or opened.
pub(in crate::ipc) fn segment(py: Python<'_>, error: SegmentError) -> PyErr {
    let text = if error.hint.is_empty() {
        error.what.clone()
    } else {
        format!("{} (hint: {})", error.what, error.hint)
    };
    match error.problem {
        Problem::Argument => PyValueError::new_err(text),
        Problem::Missing => PyFileNotFoundError::new_err(text),
        Problem::System => PyOSError::new_err(text),
        Problem::Refused => made(py, "SegmentRefused", (error.what, error.hint)),
    }
}

/// `OwnerDied`: the process that held `what` is dead.
pub(in crate::ipc) fn owner_died(py: Python<'_>, what: &str, process: u64) -> PyErr {
    let who = if process == 0 {
        "an unknown process".to_owned()
    } else {
        unsnarl_shm::describe(process)
    };
    // A lock belongs to a thread but is reported by process, so the process may still be alive.
    let message = if process != 0 && unsnarl_shm::is_alive(process) {
        format!("{who}: one of its threads ended while it held {what}")
    } else {
        format!("{who}, died while it held {what}")
    };
    made(py, "OwnerDied", (message, (process >> 32) as u32))
}

/// `NotHeld`: the caller released or used what it does not hold.
pub(in crate::ipc) fn not_held(py: Python<'_>, message: &str) -> PyErr {
    made(py, "NotHeld", (message,))
}

/// `BrokenBarrierError` of `threading`.
pub(in crate::ipc) fn broken_barrier(py: Python<'_>) -> PyErr {
    let class = py
        .import("threading")
        .and_then(|module| module.getattr("BrokenBarrierError"));
    match class.and_then(|class| class.call0()) {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

/// An exception of the queues, by name.
pub(in crate::ipc) fn queue(py: Python<'_>, name: &str) -> PyErr {
    let class = py.import("unsnarl.sync.errors").and_then(|module| module.getattr(name));
    match class.and_then(|class| class.call0()) {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}
