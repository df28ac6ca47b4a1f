//! The fast path of a plain priority queue's `put` and `get`, taken if the mutex is free and no party waits.
//!
//! The heap is a Python list behind the mutex of [`super::hooks`], and heapq's own C functions order it. So
//! items are compared exactly as the standard library compares them. The fast path only saves the way there:
//! no argument is sorted, no hook looked up, nothing counted twice.
//!
//! Invariant: it does what [`Queue::give`] and [`Queue::take`] do, in the same order, under the same mutex.
//! None means that nothing was done, and that those must be called.

use super::hooks::{self, Hooks};
use super::items::{Item, Items};
use super::state::Queue;
use crate::sync::calls::fast;
use crate::sync::permit::acquirable::Acquirable;
use crate::sync::wait::gil;
use pyo3::ffi;
use pyo3::prelude::*;

/// Put the item. Returns the result of `put`, null with an exception set.
///
/// # Safety
/// Attached; `item` is alive.
#[inline]
pub(in crate::sync) unsafe fn put(queue: &Queue, item: *mut ffi::PyObject) -> Option<*mut ffi::PyObject> {
    // SAFETY: by contract.
    let py = unsafe { Python::assume_attached() };
    let guard = HeapGuard::take(py, queue, hooks::heap_push_known(py)?)?;
    if let Err(_nothing) = queue.channel.count_quietly(Item::NOTHING) {
        return None;
    }
    // SAFETY: attached; all of them are alive.
    let pushed = unsafe { guard.call(&[guard.heap, item]) };
    if pushed.is_null() {
        return Some(guard.fail(|queue| {
            let _nothing = queue.channel.undo_give(gil::fan_out());
        }));
    }
    guard.recount();
    // SAFETY: attached; an owned reference, to heappush's None.
    unsafe { ffi::Py_DECREF(pushed) };
    Some(fast::none())
}

/// Get the least item; null with an exception set.
///
/// # Safety
/// Attached.
#[inline]
pub(in crate::sync) unsafe fn get(queue: &Queue) -> Option<*mut ffi::PyObject> {
    // SAFETY: by contract.
    let py = unsafe { Python::assume_attached() };
    let guard = HeapGuard::take(py, queue, hooks::heap_pop_known(py)?)?;
    let _nothing = queue.channel.uncount_quietly()?;
    // SAFETY: attached; all of them are alive.
    let item = unsafe { guard.call(&[guard.heap]) };
    if item.is_null() {
        return Some(guard.fail(|_| {}));
    }
    guard.recount();
    Some(item)
}

/// The heap, with its mutex held until this is dropped.
struct HeapGuard<'a> {
    queue: &'a Queue,
    hooks: &'a Hooks,
    function: *mut ffi::PyObject,
    /// An owned reference to a list: a comparison may run code that replaces the container.
    heap: *mut ffi::PyObject,
}

impl<'a> HeapGuard<'a> {
    #[inline]
    fn take(py: Python<'_>, queue: &'a Queue, function: &Bound<'_, PyAny>) -> Option<Self> {
        let hooks = queue.hooks()?;
        if !hooks.is_heap() || !hooks.mutex.get().try_take(py) {
            return None;
        }
        // Checked with the mutex held: a caller that reads the container or a condition has to acquire the
        // mutex next.
        if hooks.is_shared() {
            hooks.mutex.get().try_put_back();
            return None;
        }
        match hooks.container(py) {
            // SAFETY: attached, alive.
            Some(heap) if unsafe { ffi::PyList_CheckExact(heap.as_ptr()) } != 0 => Some(Self {
                queue,
                hooks,
                function: function.as_ptr(),
                heap: heap.into_ptr(),
            }),
            other => {
                hooks.mutex.get().try_put_back();
                // Not dropped by PyO3, which would defer that outside of its own entry.
                // SAFETY: attached; an owned reference, or null.
                unsafe { ffi::Py_XDECREF(other.map_or(std::ptr::null_mut(), Py::into_ptr)) };
                None
            }
        }
    }

    /// # Safety
    /// Attached; the arguments are alive.
    #[inline]
    unsafe fn call(&self, arguments: &[*mut ffi::PyObject]) -> *mut ffi::PyObject {
        // SAFETY: by contract; as many arguments as said.
        unsafe { ffi::PyObject_Vectorcall(self.function, arguments.as_ptr(), arguments.len(), std::ptr::null_mut()) }
    }

    /// Return null with the exception that is set. Waking a waiter may run Python code, which must not see
    /// the exception.
    #[cold]
    fn fail(self, undo: impl FnOnce(&Queue)) -> *mut ffi::PyObject {
        fast::enter(|py| {
            let raised = PyErr::fetch(py);
            undo(self.queue);
            self.recount();
            drop(self);
            Err(raised)
        })
    }

    /// An item that was put by a call of `_put` is counted with the next call.
    #[inline]
    fn recount(&self) {
        // SAFETY: a live list.
        let size = usize::try_from(unsafe { ffi::PyList_Size(self.heap) }).unwrap_or(0);
        if self.queue.channel.len() != size {
            self.queue.channel.change_store(|items| {
                if let Items::Counted(count) = items {
                    *count = size;
                }
            });
        }
    }
}

impl Drop for HeapGuard<'_> {
    fn drop(&mut self) {
        self.hooks.mutex.get().try_put_back();
        // SAFETY: attached while the guard lives; an owned reference.
        unsafe { ffi::Py_DECREF(self.heap) };
    }
}
