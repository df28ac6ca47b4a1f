//! Whether a thread still runs Python: its greenlets end with it, wherever they are suspended.
//!
//! Nobody tells them: a hub is not woken when its thread ends, and a greenlet is switched to from its own thread
//! only. So what is handed out asks, before it is a greenlet's.
//!
//! Invariant: a presence is over before anybody who joined the thread goes on: it ends with the dict of the
//! thread's state, which CPython clears first (PyThreadState_Clear).

use super::process;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Of one thread.
#[derive(Debug, Clone)]
pub(in crate::sync) struct Presence {
    is_over: Arc<AtomicBool>,
}

/// What lies in the dict of the thread's state.
#[pyclass(frozen, module = "unsnarl._native")]
#[derive(Debug)]
struct Mark {
    presence: Presence,
}

impl Presence {
    /// The calling thread's.
    pub(in crate::sync) fn of_this_thread(py: Python<'_>) -> PyResult<Self> {
        let key = pyo3::intern!(py, "unsnarl._native.Mark");
        // SAFETY: attached; a borrowed reference to the dict of this thread's state, or null.
        let dict = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyThreadState_GetDict()) }
            .ok_or_else(|| PyRuntimeError::new_err("this thread has no state"))?
            .cast_into::<PyDict>()?;
        if let Some(found) = dict.get_item(key)? {
            return Ok(found.cast::<Mark>()?.get().presence.clone());
        }
        let presence = Self {
            is_over: Arc::default(),
        };
        let mark = Mark {
            presence: presence.clone(),
        };
        dict.set_item(key, Py::new(py, mark)?)?;
        Ok(presence)
    }

    /// Whether the thread has ended.
    pub(in crate::sync) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.presence.is_over.store(true, Ordering::Relaxed);
        process::count_deaths();
    }
}
