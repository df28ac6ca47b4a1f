//! The representation of the primitives, and their refusal to be copied.
//!
//! Invariant: the words are the standard library's.

use super::fast::{self, Method};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// `module.Class`, the beginning of most representations.
pub(in crate::sync) fn name(slf: &Bound<'_, PyAny>) -> PyResult<String> {
    let class = slf.get_type();
    Ok(format!("{}.{}", class.module()?, class.qualname()?))
}

/// `<module.Class at 0x…: state>`
pub(in crate::sync) fn with_state(slf: &Bound<'_, PyAny>, state: impl std::fmt::Display) -> PyResult<String> {
    Ok(format!("<{} at {:#x}: {state}>", name(slf)?, slf.as_ptr() as usize))
}

unsafe extern "C" fn reduce(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    fast::enter(|py| {
        // SAFETY: `self` of a method is alive.
        let class = unsafe { Bound::from_borrowed_ptr(py, slf) }.get_type();
        Err(PyTypeError::new_err(format!(
            "cannot pickle '{}' object",
            class.name()?
        )))
    })
}

/// Make `pickle`, `copy` and `deepcopy` raise TypeError for the class and those derived from it.
pub(in crate::sync) fn refuse_copies(class: &Bound<'_, PyType>) -> PyResult<()> {
    let words = c"Raise TypeError: what waits for it cannot be copied.";
    fast::install(class, &[(c"__reduce__", words, Method::NoArgs(reduce))])
}
