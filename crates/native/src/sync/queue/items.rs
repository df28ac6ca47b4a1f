//! The store of a queue: items in native memory, or a count of those in a Python container that the queue's
//! hooks manage.
//!
//! An item is a bare owned reference: it enters and leaves the store under the core's mutex, where no
//! reference count may reach zero.
//!
//! Invariant: the caller that takes an `Item` out of the store turns it into an object, or drops it, after the mutex
//! is unlocked.

use pyo3::ffi;
use pyo3::prelude::*;
use std::collections::VecDeque;
use unsnarl_sync::Store;

/// An owned reference; null in a counted store.
#[derive(Debug)]
#[must_use]
pub(in crate::sync) struct Item(*mut ffi::PyObject);

// SAFETY: a reference may move between threads; it is only used by attached ones.
unsafe impl Send for Item {}

impl Item {
    /// The item of a counted store.
    pub(in crate::sync) const NOTHING: Self = Self(std::ptr::null_mut());

    /// A new reference to the object.
    ///
    /// # Safety
    /// The caller is attached and the object alive.
    #[inline]
    pub(in crate::sync) unsafe fn of(object: *mut ffi::PyObject) -> Self {
        // SAFETY: by contract.
        Self(unsafe { ffi::Py_NewRef(object) })
    }

    /// The owned reference; null for the item of a counted store.
    #[inline]
    pub(in crate::sync) fn into_ptr(self) -> *mut ffi::PyObject {
        self.0
    }

    /// A new reference to the object. Not for the item of a counted store.
    pub(in crate::sync) fn clone_ref(&self, py: Python<'_>) -> Py<PyAny> {
        // SAFETY: attached; a live object.
        unsafe { Bound::from_borrowed_ptr(py, self.0) }.unbind()
    }

    /// Drop the reference.
    #[inline]
    pub(in crate::sync) fn release(self, _py: Python<'_>) {
        // SAFETY: attached; a reference of ours, or null.
        unsafe { ffi::Py_XDECREF(self.0) };
    }

    pub(in crate::sync) fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        if self.0.is_null() {
            return Ok(());
        }
        // SAFETY: a `Py` is one pointer to an owned reference; it is borrowed here.
        visit.call(unsafe { &*(&raw const self.0).cast::<Py<PyAny>>() })
    }
}

/// The store of a queue.
#[derive(Debug)]
pub(in crate::sync) enum Items {
    /// First in, first out.
    Fifo(VecDeque<Item>),
    /// Last in, first out.
    Lifo(Vec<Item>),
    /// The number of items in a Python container.
    Counted(usize),
}

impl Store for Items {
    type Item = Item;

    #[inline]
    fn len(&self) -> usize {
        match self {
            Self::Fifo(items) => items.len(),
            Self::Lifo(items) => items.len(),
            Self::Counted(count) => *count,
        }
    }

    #[inline]
    fn push(&mut self, item: Item) {
        match self {
            Self::Fifo(items) => items.push_back(item),
            Self::Lifo(items) => items.push(item),
            Self::Counted(count) => *count += 1,
        }
    }

    #[inline]
    fn is_here(&self) -> bool {
        !matches!(self, Self::Counted(_))
    }

    #[inline]
    fn pop(&mut self) -> Option<Item> {
        match self {
            Self::Fifo(items) => items.pop_front(),
            Self::Lifo(items) => items.pop(),
            Self::Counted(0) => None,
            Self::Counted(count) => {
                *count -= 1;
                Some(Item::NOTHING)
            }
        }
    }
}

impl Items {
    pub(in crate::sync) fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        match self {
            Self::Fifo(items) => items.iter().try_for_each(|item| item.traverse(visit)),
            Self::Lifo(items) => items.iter().try_for_each(|item| item.traverse(visit)),
            Self::Counted(_) => Ok(()),
        }
    }
}

pub(in crate::sync) fn into_items(items: Items) -> Box<dyn Iterator<Item = Item>> {
    match items {
        Items::Fifo(items) => Box::new(items.into_iter()),
        Items::Lifo(items) => Box::new(items.into_iter()),
        Items::Counted(_) => Box::new(std::iter::empty()),
    }
}

pub(in crate::sync) fn release_all(py: Python<'_>, items: Vec<Item>) {
    items.into_iter().for_each(|item| item.release(py));
}
