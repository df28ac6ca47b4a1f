//! Work in Python that must complete although its caller cannot raise: a wake-up, the end of a wait.
//!
//! Running Python code in the main thread runs signal handlers, and they may raise (Ctrl-C, `sys.exit()` on
//! SIGTERM, a `TimeoutError` on SIGALRM). Such an exception belongs to the interrupted program. The work is
//! repeated until it is done, and the exception is raised right after it. Work that fails each time was not
//! interrupted, but is broken.
//!
//! Invariant: none of these functions returns with an exception set that was not set before.

use crate::sync::who::process;
use pyo3::exceptions::PyException;
use pyo3::ffi;
use pyo3::prelude::*;
use std::os::raw::{c_int, c_void};

/// How often work is tried.
const ATTEMPTS: usize = 3;

/// Do work that may be repeated. An interruption is raised afterwards, at the main thread's next opportunity;
/// an error is reported as unraisable.
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
    // Not before the work is done: pending calls run whenever Python code runs, which the next attempt would
    // do.
    for error in errors {
        if process::is_in_main_thread() && !(is_broken && error.is_instance_of::<PyException>(py)) {
            raise_later(py, error);
        } else {
            error.write_unraisable(py, None);
        }
    }
}

/// Do work while an exception may be set, as in a destructor.
pub(in crate::sync) fn keeping_the_error(py: Python<'_>, work: impl FnOnce()) {
    let on_its_way = PyErr::take(py);
    work();
    if let Some(error) = on_its_way {
        error.restore(py);
    }
}

/// Raise the exception in the main thread, by a pending call: those run where signal handlers do.
fn raise_later(py: Python<'_>, error: PyErr) {
    extern "C" fn raise(error: *mut c_void) -> c_int {
        // SAFETY: the box made below, which is passed here once; pending calls run attached.
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
