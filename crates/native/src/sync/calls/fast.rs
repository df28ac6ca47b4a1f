//! Hand-written methods for calls that are made millions of times a second.
//!
//! PyO3's trampolines cost 10–15 ns a call (attach count, panic guard, argument parsing). The methods listed
//! here replace them in the class's dictionary. Everything outside of the fast path runs in `enter`, which is
//! PyO3's own entry.
//!
//! Must never: drop a Python object, or panic, outside of `enter`.
//!
//! Invariant: a method uses `self` by shared reference only (the classes are frozen).

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::ffi::{CStr, CString};

pub(crate) type NoArgs = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> *mut ffi::PyObject;
pub(crate) type Fast =
    unsafe extern "C" fn(*mut ffi::PyObject, *mut *mut ffi::PyObject, ffi::Py_ssize_t) -> *mut ffi::PyObject;
pub(crate) type FastKeywords = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    ffi::Py_ssize_t,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// A calling convention and the function.
#[derive(Clone, Copy)]
pub(crate) enum Method {
    /// `f()`
    NoArgs(NoArgs),
    /// `f(a)`
    One(NoArgs),
    /// `f(a, …)`
    Fast(Fast),
    /// `f(a, …, k=v)`
    FastKeywords(FastKeywords),
}

/// The doc string in the form that `inspect.signature` parses. A documentation that begins with `($self` and
/// ends that line as CPython does (`--`) lists parameters that the calling convention does not imply.
fn described(name: &CStr, doc: &CStr, method: Method) -> CString {
    let parameters = match method {
        _ if doc.to_bytes().starts_with(b"($self") => "",
        Method::NoArgs(_) => "($self, /)\n--\n\n",
        Method::Fast(_) => "($self, /, *args)\n--\n\n",
        Method::One(_) | Method::FastKeywords(_) => return doc.to_owned(),
    };
    let bytes = [name.to_bytes(), parameters.as_bytes(), doc.to_bytes()].concat();
    // None of the parts contains a nul byte.
    CString::new(bytes).unwrap_or_default()
}

/// Put the methods into the class's dictionary, in place of PyO3's.
pub(crate) fn install(class: &Bound<'_, PyType>, methods: &[(&'static CStr, &'static CStr, Method)]) -> PyResult<()> {
    let py = class.py();
    for (name, doc, method) in methods {
        let (ml_meth, ml_flags) = match *method {
            Method::NoArgs(f) => (ffi::PyMethodDefPointer { PyCFunction: f }, ffi::METH_NOARGS),
            Method::One(f) => (ffi::PyMethodDefPointer { PyCFunction: f }, ffi::METH_O),
            Method::Fast(f) => (ffi::PyMethodDefPointer { PyCFunctionFast: f }, ffi::METH_FASTCALL),
            Method::FastKeywords(f) => (
                ffi::PyMethodDefPointer {
                    PyCFunctionFastWithKeywords: f,
                },
                ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
            ),
        };
        let definition = Box::leak(Box::new(ffi::PyMethodDef {
            ml_name: name.as_ptr(),
            ml_meth,
            ml_flags,
            ml_doc: described(name, doc, *method).into_raw(),
        }));
        // SAFETY: the class is alive, the definition is never freed.
        let descriptor =
            unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), definition))? };
        class.setattr(name.to_string_lossy().as_ref(), descriptor)?;
    }
    Ok(())
}

/// The frozen object behind `self` of a method.
///
/// # Safety
/// CPython checked the type of `this` (method descriptors do); the caller is attached.
#[inline]
pub(crate) unsafe fn this<'a, T: pyo3::PyClass<Frozen = pyo3::pyclass::boolean_struct::True> + Sync>(
    this: *mut ffi::PyObject,
) -> &'a T {
    // SAFETY: attached, and of type T, by the contract above.
    unsafe {
        Borrowed::from_ptr(Python::assume_attached(), this)
            .cast_unchecked::<T>()
            .get()
    }
}

/// A new reference to `True` or `False`.
#[inline]
pub(crate) fn boolean(value: bool) -> *mut ffi::PyObject {
    // SAFETY: the singletons live for ever.
    unsafe { ffi::Py_NewRef(if value { ffi::Py_True() } else { ffi::Py_False() }) }
}

/// A new reference to `None`.
#[inline]
pub(crate) fn none() -> *mut ffi::PyObject {
    // SAFETY: the singleton lives for ever.
    unsafe { ffi::Py_NewRef(ffi::Py_None()) }
}

/// Run the slow path the way PyO3 runs methods: attached and counted, errors raised.
#[cold]
#[inline(never)]
pub(crate) fn enter(body: impl FnOnce(Python<'_>) -> PyResult<*mut ffi::PyObject>) -> *mut ffi::PyObject {
    Python::attach(|py| match body(py) {
        Ok(object) => object,
        Err(error) => {
            error.restore(py);
            std::ptr::null_mut()
        }
    })
}
