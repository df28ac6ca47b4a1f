//! A place for one Python object that is set once, read by anybody, and emptied by the collector alone.
//!
//! `PyOnceLock` does the same but for the last: what is in a cycle through one would never be collected.
//!
//! Invariant: the pointer is null or an owned reference. It leaves the slot only when nobody can reach the owner any
//! more: in `__clear__`, and at its end.

use pyo3::ffi;
use pyo3::prelude::*;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// One object, or none yet.
#[derive(Debug, Default)]
pub(in crate::sync) struct ObjectCell(AtomicPtr<ffi::PyObject>);

impl ObjectCell {
    /// Put the object in. False: there was one before.
    pub(in crate::sync) fn set(&self, py: Python<'_>, object: Py<PyAny>) -> bool {
        let object = object.into_ptr();
        // ORDERING: releases the object to `get`.
        let found = self
            .0
            .compare_exchange(null_mut(), object, Ordering::AcqRel, Ordering::Relaxed);
        if found.is_err() {
            // SAFETY: the reference that was to go in.
            drop(unsafe { Bound::from_owned_ptr(py, object) });
        }
        found.is_ok()
    }

    /// The object that is in it.
    pub(in crate::sync) fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        // ORDERING: acquires what `set` released.
        let object = self.0.load(Ordering::Acquire);
        // SAFETY: null, or alive for as long as the caller can reach this.
        unsafe { Bound::from_borrowed_ptr_or_opt(py, object) }
    }

    /// Whether there is an object.
    pub(in crate::sync) fn is_set(&self) -> bool {
        !self.0.load(Ordering::Acquire).is_null()
    }

    /// For `__traverse__`.
    pub(in crate::sync) fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        let object = self.0.load(Ordering::Acquire);
        if object.is_null() {
            return Ok(());
        }
        // SAFETY: a `Py` is one pointer to an owned reference; it is borrowed here.
        visit.call(unsafe { &*(&raw const object).cast::<Py<PyAny>>() })
    }

    /// For `__clear__`.
    pub(in crate::sync) fn clear(&self) {
        let object = self.0.swap(null_mut(), Ordering::AcqRel);
        if !object.is_null() {
            // SAFETY: the reference that was in it.
            Python::attach(|py| drop(unsafe { Bound::from_owned_ptr(py, object) }));
        }
    }
}

impl Drop for ObjectCell {
    fn drop(&mut self) {
        self.clear();
    }
}
