//! What is awaited when the answer is there already: `async with` on a free lock.
//!
//! Invariant: there is one object of each class, and it has no state.

use super::fast;
use super::operation::shorten;
use pyo3::exceptions::PyStopIteration;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// What is awaited when everything has happened already: `async with` on a free lock.
#[pyclass(frozen, module = "unsnarl._native")]
struct Done;

unsafe extern "C" fn done_next(_slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
    std::ptr::null_mut()
}

#[pymethods]
impl Done {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    fn __next__(&self) -> Option<Py<PyAny>> {
        None
    }
    fn send(&self, _value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        Err(PyStopIteration::new_err(()))
    }
    #[pyo3(signature = (kind, value=None, traceback=None))]
    fn throw(
        &self,
        kind: Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let _ = traceback;
        let instance = match value {
            Some(value) => value,
            None if kind.is_instance_of::<pyo3::types::PyType>() => kind.call0()?,
            None => kind,
        };
        Err(PyErr::from_value(instance))
    }
    fn close(&self) {}
}

/// What is awaited when the answer is True already, and nothing was taken for it.
#[pyclass(frozen, module = "unsnarl._native")]
struct Yes;

unsafe extern "C" fn yes_next(_slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: attached (a slot of a Python object); True lives for ever.
    unsafe { ffi::PyErr_SetObject(ffi::PyExc_StopIteration, ffi::Py_True()) };
    std::ptr::null_mut()
}

#[pymethods]
impl Yes {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    fn __next__(&self) -> PyResult<Option<Py<PyAny>>> {
        Err(PyStopIteration::new_err((true,)))
    }
    fn send(&self, _value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        Err(PyStopIteration::new_err((true,)))
    }
    #[pyo3(signature = (kind, value=None, traceback=None))]
    fn throw(
        &self,
        kind: Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        Done.throw(kind, value, traceback)
    }
    fn close(&self) {}
}

/// The one `Yes`.
pub(super) fn yes(py: Python<'_>) -> PyResult<Py<PyAny>> {
    static YES: PyOnceLock<Py<Yes>> = PyOnceLock::new();
    Ok(YES.get_or_try_init(py, || Py::new(py, Yes))?.clone_ref(py).into_any())
}

/// The one `Done`, as a new reference.
pub(super) fn done() -> *mut ffi::PyObject {
    static DONE: PyOnceLock<Py<Done>> = PyOnceLock::new();
    // SAFETY: every caller is a method of a Python object, hence attached.
    let py = unsafe { Python::assume_attached() };
    match DONE.get(py) {
        // SAFETY: the object lives in a static.
        Some(done) => unsafe { ffi::Py_NewRef(done.as_ptr()) },
        None => fast::enter(|py| {
            let done = DONE.get_or_try_init(py, || Py::new(py, Done))?;
            Ok(done.clone_ref(py).into_ptr())
        }),
    }
}

/// Let the classes answer without a detour.
pub(super) fn register(module: &Bound<'_, PyModule>) {
    let py = module.py();
    shorten(&py.get_type::<Done>(), done_next);
    shorten(&py.get_type::<Yes>(), yes_next);
}
