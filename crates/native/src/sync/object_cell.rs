//! A cell for one Python object that is set once, read by any thread, and cleared only by the collector.
//!
//! `PyOnceLock` lacks the last: a cycle through one would never be collected.
//!
//! Invariant: the pointer is null or an owned reference. The reference is removed only when the owner is no
//! longer reachable: in `__clear__`, and when the owner is dropped.

use pyo3::ffi;
use pyo3::prelude::*;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// One object, or none yet.
#[derive(Debug, Default)]
pub(in crate::sync) struct ObjectCell(AtomicPtr<ffi::PyObject>);

impl ObjectCell {
    /// Set the object. False: the cell was set before.
    pub(in crate::sync) fn set(&self, py: Python<'_>, object: Py<PyAny>) -> bool {
        let object = object.into_ptr();
        // ORDERING: pairs with the acquire in `get`: releases the object.
        let found = self
            .0
            .compare_exchange(null_mut(), object, Ordering::AcqRel, Ordering::Relaxed);
        if found.is_err() {
            // SAFETY: the reference that was to go in.
            drop(unsafe { Bound::from_owned_ptr(py, object) });
        }
        found.is_ok()
    }

    /// The object, if the cell is set.
    pub(in crate::sync) fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        // ORDERING: pairs with the release in `set`.
        let object = self.0.load(Ordering::Acquire);
        // SAFETY: null, or alive while the caller can reach the cell.
        unsafe { Bound::from_borrowed_ptr_or_opt(py, object) }
    }

    /// Whether the cell is set.
    pub(in crate::sync) fn is_set(&self) -> bool {
        // ORDERING: pairs with the release in `set`.
        !self.0.load(Ordering::Acquire).is_null()
    }

    /// For `__traverse__`.
    pub(in crate::sync) fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        // ORDERING: pairs with the release in `set`.
        let object = self.0.load(Ordering::Acquire);
        if object.is_null() {
            return Ok(());
        }
        // SAFETY: a `Py` is one pointer to an owned reference; it is borrowed here.
        visit.call(unsafe { &*(&raw const object).cast::<Py<PyAny>>() })
    }

    /// For `__clear__`.
    pub(in crate::sync) fn clear(&self) {
        // ORDERING: pairs with `set`, whose object is dropped here.
        let object = self.0.swap(null_mut(), Ordering::AcqRel);
        if !object.is_null() {
            // SAFETY: the reference that the cell owned.
            Python::attach(|py| drop(unsafe { Bound::from_owned_ptr(py, object) }));
        }
    }
}

impl Drop for ObjectCell {
    fn drop(&mut self) {
        self.clear();
    }
}
