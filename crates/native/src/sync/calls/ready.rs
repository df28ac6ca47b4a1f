//! Awaitables whose result is known already, as for `async with` on a free lock or `await` of a set event.
//!
//! Invariant: each class has a single object, without state.

use super::fast;
use super::stop;
use pyo3::exceptions::PyStopIteration;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// An awaitable that returns None immediately.
#[pyclass(frozen, module = "unsnarl._native")]
struct Done;

/// An awaitable that returns True immediately.
#[pyclass(frozen, module = "unsnarl._native")]
struct Yes;

unsafe extern "C" fn done_next(_slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
    std::ptr::null_mut()
}

unsafe extern "C" fn yes_next(_slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: attached (a slot of a Python object); True lives for ever.
    unsafe { stop::raise(ffi::Py_NewRef(ffi::Py_True())) }
}

unsafe extern "C" fn done_send(
    _slf: *mut ffi::PyObject,
    _value: *mut ffi::PyObject,
    result: *mut *mut ffi::PyObject,
) -> ffi::PySendResult {
    // SAFETY: CPython passes memory for the result; the singleton lives for ever.
    unsafe { *result = ffi::Py_NewRef(ffi::Py_None()) };
    ffi::PySendResult::PYGEN_RETURN
}

unsafe extern "C" fn yes_send(
    _slf: *mut ffi::PyObject,
    _value: *mut ffi::PyObject,
    result: *mut *mut ffi::PyObject,
) -> ffi::PySendResult {
    // SAFETY: as above.
    unsafe { *result = ffi::Py_NewRef(ffi::Py_True()) };
    ffi::PySendResult::PYGEN_RETURN
}

/// The methods of a coroutine that ends with the first step.
macro_rules! awaited_at_once {
    ($class:ident, $answer:expr) => {
        #[pymethods]
        impl $class {
            fn __await__(slf: Py<Self>) -> Py<Self> {
                slf
            }
            fn __iter__(slf: Py<Self>) -> Py<Self> {
                slf
            }
            fn __next__(&self) -> PyResult<Option<Py<PyAny>>> {
                Err(PyStopIteration::new_err($answer))
            }
            fn send(&self, _value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                Err(PyStopIteration::new_err($answer))
            }
            #[pyo3(signature = (kind, value=None, traceback=None))]
            fn throw(
                &self,
                kind: Bound<'_, PyAny>,
                value: Option<Bound<'_, PyAny>>,
                traceback: Option<Bound<'_, PyAny>>,
            ) -> PyResult<Py<PyAny>> {
                let _ = traceback;
                Err(stop::thrown(kind, value)?)
            }
            fn close(&self) {}
        }
    };
}

awaited_at_once!(Done, ());
awaited_at_once!(Yes, (true,));

static DONE: PyOnceLock<Py<Done>> = PyOnceLock::new();
static YES: PyOnceLock<Py<Yes>> = PyOnceLock::new();

/// The one `Done`, as a new reference.
pub(in crate::sync) fn done() -> *mut ffi::PyObject {
    // SAFETY: every caller is a method of a Python object, hence attached.
    match DONE.get(unsafe { Python::assume_attached() }) {
        // SAFETY: the object lives in a static.
        Some(done) => unsafe { ffi::Py_NewRef(done.as_ptr()) },
        None => fast::enter(|py| {
            let done = DONE.get_or_try_init(py, || Py::new(py, Done))?;
            Ok(done.clone_ref(py).into_ptr())
        }),
    }
}

/// The one `Yes`, as a new reference.
pub(in crate::sync) fn yes() -> *mut ffi::PyObject {
    // SAFETY: every caller is a method of a Python object, hence attached.
    match YES.get(unsafe { Python::assume_attached() }) {
        // SAFETY: the object lives in a static.
        Some(yes) => unsafe { ffi::Py_NewRef(yes.as_ptr()) },
        None => fast::enter(|py| {
            let yes = YES.get_or_try_init(py, || Py::new(py, Yes))?;
            Ok(yes.clone_ref(py).into_ptr())
        }),
    }
}

/// Replace PyO3's slots of the classes by direct ones.
pub(in crate::sync) fn register(module: &Bound<'_, PyModule>) {
    let py = module.py();
    stop::shorten(&py.get_type::<Done>(), done_next, done_send);
    stop::shorten(&py.get_type::<Yes>(), yes_next, yes_send);
}
