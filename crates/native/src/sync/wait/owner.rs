//! A weak reference from a suspended task's future to the object that waits for it.
//!
//! [`super::mailbox`], [`super::party`] and [`super::suspension`] know the waiting object (an `Operation`) only as
//! [`Suspended`], so none of them depends on what an operation does.
//!
//! Must never: keep the waiting object alive; its collection is what withdraws it from its queue.

use pyo3::ffi;
use pyo3::prelude::*;

/// An object that waits behind a future.
pub(in crate::sync) trait Suspended: pyo3::PyClass {
    /// End the wait of a task that never runs again: its loop is closed.
    fn leave_behind(slf: &Bound<'_, Self>) -> PyResult<()>;
}

/// A weak reference to a [`Suspended`] object of any class.
#[derive(Debug)]
pub(in crate::sync) struct Owner {
    weak: Py<PyAny>,
    leave_behind: fn(&Bound<'_, PyAny>) -> PyResult<()>,
}

impl Owner {
    pub(in crate::sync) fn of<T: Suspended>(object: &Bound<'_, T>) -> PyResult<Self> {
        let py = object.py();
        // SAFETY: a live object of a class with weak references.
        let weak =
            unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyWeakref_NewRef(object.as_ptr(), std::ptr::null_mut()))? };
        Ok(Self {
            weak: weak.unbind(),
            leave_behind: leave_behind::<T>,
        })
    }

    /// End the object's wait, unless it was collected.
    pub(in crate::sync) fn leave_behind(&self, py: Python<'_>) -> PyResult<()> {
        (self.leave_behind)(&self.weak.bind(py).call0()?)
    }

    pub(in crate::sync) fn clone_ref(&self, py: Python<'_>) -> Self {
        Self {
            weak: self.weak.clone_ref(py),
            leave_behind: self.leave_behind,
        }
    }

    pub(in crate::sync) fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.weak)
    }
}

/// `object` is a `T`, or None if that was collected.
fn leave_behind<T: Suspended>(object: &Bound<'_, PyAny>) -> PyResult<()> {
    match object.cast::<T>() {
        Ok(object) => T::leave_behind(object),
        Err(_) => Ok(()),
    }
}
