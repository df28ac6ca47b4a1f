//! What must be done in Python although nobody can be told of an error: a wake-up, an end.
//!
//! Whatever runs Python code runs signal handlers in the main thread, and they may raise
//! (Ctrl-C, `sys.exit()` on SIGTERM, a `TimeoutError` on SIGALRM). Such an exception belongs to
//! the interrupted program: the work is done all the same, and the exception is raised right
//! after it. What fails each time it is tried has not been interrupted, but is broken.
//!
//! Invariant: none of these functions returns with an exception set that was not set before.

use crate::sync::who::thread;
use pyo3::exceptions::PyException;
use pyo3::ffi;
use pyo3::prelude::*;
use std::os::raw::{c_int, c_void};

/// How often a work that fails is begun again.
const ATTEMPTS: usize = 3;

/// Do what can be done twice. An interruption is raised afterwards, at the main thread's
/// next opportunity; an error is reported as unraisable.
pub(in crate::sync) fn outlast(py: Python<'_>, work: impl Fn() -> PyResult<()>) {
    let mut errors = Vec::new();
    while errors.len() < ATTEMPTS
        && let Err(error) = work()
    {
        errors.push(error);
    }
    let is_broken = errors.len() == ATTEMPTS;
    if is_broken && errors.iter().all(|error| error.is_instance_of::<PyException>(py)) {
        errors.truncate(1);
    }
    // Not before: pending calls run in whatever runs Python code, the next attempt for one.
    for error in errors {
        if thread::is_main() && !(is_broken && error.is_instance_of::<PyException>(py)) {
            raise_later(py, error);
        } else {
            error.write_unraisable(py, None);
        }
    }
}

/// Work while an exception may be on its way, as in a destructor.
pub(in crate::sync) fn keeping_the_error(py: Python<'_>, work: impl FnOnce()) {
    let on_its_way = PyErr::take(py);
    work();
    if let Some(error) = on_its_way {
        error.restore(py);
    }
}

/// Signal handlers run in the main thread, and so do pending calls.
fn raise_later(py: Python<'_>, error: PyErr) {
    extern "C" fn raise(error: *mut c_void) -> c_int {
        // SAFETY: the box of below, which comes here once; pending calls run attached.
        let error = unsafe { Box::from_raw(error.cast::<PyErr>()) };
        Python::attach(|py| error.restore(py));
        -1
    }
    let error = Box::into_raw(Box::new(error));
    // SAFETY: a function of the demanded type, and the argument that it takes over.
    if unsafe { ffi::Py_AddPendingCall(Some(raise), error.cast()) } != 0 {
        // SAFETY: the queue was full; the box is still ours.
        let error = unsafe { Box::from_raw(error) };
        error.write_unraisable(py, None);
    }
}
