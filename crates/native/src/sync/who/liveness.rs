//! Thread liveness: a flag for each thread that is set when the thread stops running Python.
//!
//! A suspended greenlet ends with its thread, and nothing reports this end: a hub is not woken when its thread
//! ends, and only code in a greenlet's own thread can switch to it. So a core checks the flag before it grants
//! anything to a greenlet.
//!
//! Invariant: the flag is set before any thread that joined the ended thread runs on. It is set when the dict
//! of the thread's state is cleared, which CPython does first (PyThreadState_Clear).

use super::process;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The liveness of one thread.
#[derive(Debug, Clone)]
pub(in crate::sync) struct ThreadLiveness {
    has_ended: Arc<AtomicBool>,
}

/// An object in the dict of the thread's state, dropped with the dict.
#[pyclass(frozen, module = "unsnarl._native")]
#[derive(Debug)]
struct Mark {
    liveness: ThreadLiveness,
}

impl ThreadLiveness {
    /// The liveness of the calling thread.
    pub(in crate::sync) fn of_this_thread(py: Python<'_>) -> PyResult<Self> {
        let key = pyo3::intern!(py, "unsnarl._native.Mark");
        // SAFETY: attached; a borrowed reference to the dict of this thread's state, or null.
        let dict = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyThreadState_GetDict()) }
            .ok_or_else(|| PyRuntimeError::new_err("this thread has no state"))?
            .cast_into::<PyDict>()?;
        if let Some(found) = dict.get_item(key)? {
            return Ok(found.cast::<Mark>()?.get().liveness.clone());
        }
        let liveness = Self {
            has_ended: Arc::default(),
        };
        let mark = Mark {
            liveness: liveness.clone(),
        };
        dict.set_item(key, Py::new(py, mark)?)?;
        Ok(liveness)
    }

    /// Whether the thread has stopped running Python.
    pub(in crate::sync) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.liveness.has_ended.store(true, Ordering::Relaxed);
        process::count_deaths();
    }
}
