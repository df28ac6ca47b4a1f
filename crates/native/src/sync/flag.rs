//! Flag and ResourceGuard: primitives that never wait.
//!
//! Invariant: a flag's value is set once and never changes.

use super::object_cell::ObjectCell;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// A value that is set once: the first caller of `set` wins, and every caller of `get` gets the winner's
/// value.
///
/// `set` returns True to the winner; `get` of an unset flag raises `LookupError`. No call waits.
#[pyclass(frozen, subclass, weakref, module = "unsnarl")]
pub(in crate::sync) struct Flag {
    value: ObjectCell,
}

/// An argument for which None is a value.
#[allow(clippy::unnecessary_wraps)]
fn given<'py>(argument: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(Some(argument.clone()))
}

#[pymethods]
impl Flag {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "()")]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            value: ObjectCell::default(),
        }
    }

    #[pyo3(signature = ())]
    fn __init__(&self) {}

    /// Set the flag; True for the one caller that did.
    #[pyo3(signature = (value=None))]
    fn set(&self, py: Python<'_>, value: Option<Py<PyAny>>) -> bool {
        self.value.set(py, value.unwrap_or_else(|| py.None()))
    }

    /// The value the flag was set to; `default` if it was not, or LookupError if there is none.
    #[pyo3(signature = (default=None), text_signature = "($self, default=...)")]
    fn get<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = given)] default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.value
            .get(py)
            .or(default)
            .ok_or_else(|| pyo3::exceptions::PyLookupError::new_err("the flag is not set"))
    }

    /// Tell whether the flag is set.
    fn is_set(&self) -> bool {
        self.value.is_set()
    }

    fn __bool__(&self) -> bool {
        self.is_set()
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        self.value.traverse(&visit)
    }

    fn __clear__(&self) {
        self.value.clear();
    }
}

/// A guard that raises instead of waiting when a resource is used twice at the same time.
///
/// `with guard:` raises `RuntimeError` while another caller is inside; `action` is the word for what that
/// caller does. No call waits.
#[pyclass(frozen, subclass, weakref, module = "unsnarl")]
pub(in crate::sync) struct ResourceGuard {
    action: Mutex<Box<str>>,
    is_used: AtomicBool,
}

#[pymethods]
impl ResourceGuard {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "(action='using')")]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            action: Mutex::new("using".into()),
            is_used: AtomicBool::new(false),
        }
    }

    #[pyo3(signature = (action="using"))]
    fn __init__(&self, action: &str) {
        *self.action.lock().unwrap_or_else(PoisonError::into_inner) = action.into();
    }

    fn __enter__(&self) -> PyResult<()> {
        // ORDERING: pairs with the release in `__exit__`.
        if self.is_used.swap(true, Ordering::Acquire) {
            return Err(PyRuntimeError::new_err(format!(
                "another caller is already {} this resource",
                self.action.lock().unwrap_or_else(PoisonError::into_inner)
            )));
        }
        Ok(())
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, _args: &Bound<'_, PyTuple>) {
        // ORDERING: pairs with the acquire in `__enter__`.
        self.is_used.store(false, Ordering::Release);
    }

    /// Tell whether the resource is used.
    fn locked(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }
}

pub(in crate::sync) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Flag>()?;
    module.add_class::<ResourceGuard>()
}
