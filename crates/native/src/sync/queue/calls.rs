//! The fast methods of the queues: `put`, `get` and their variants, without PyO3's trampolines.
//!
//! Invariant: an uncontended call makes no Python object.

use super::awaitable::{self, QueueRequest};
use super::hooks::Change;
use super::items::Item;
use super::kinds::{LifoQueue, PriorityQueue, SimpleQueue};
use super::priority;
use super::state::Queue;
use crate::sync::calls::arguments::{self, Timeout};
use crate::sync::calls::description;
use crate::sync::calls::fast::{self, Method};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The name of the argument that the standard library calls `block`; aiologic's methods have another.
const fn blocking<const IS_GREEN: bool>() -> &'static str {
    if IS_GREEN { "blocking" } else { "block" }
}

/// `put`, and `green_put`, whose second argument has another name.
unsafe extern "C" fn put<const IS_GREEN: bool>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of Queue.
    let this = unsafe { fast::this::<Queue>(slf) };
    if nargs == 1 && kwnames.is_null() {
        // SAFETY: attached; the argument is alive.
        match this.channel.give_quietly(unsafe { Item::of(*args) }) {
            Ok(()) => return fast::none(),
            // The caller still has a reference, so this one is not the last.
            // SAFETY: attached, an owned reference.
            Err(item) => unsafe { ffi::Py_DECREF(item.into_ptr()) },
        }
        // SAFETY: attached; the argument is alive.
        if let Some(outcome) = unsafe { priority::put(this, *args) } {
            return outcome;
        }
    }
    fast::enter(|py| {
        // SAFETY: the arguments of this call; `slf` as above.
        let ([item, block, timeout], slf) = unsafe {
            (
                arguments::sort(
                    py,
                    "put",
                    ["item", blocking::<IS_GREEN>(), "timeout"],
                    args,
                    nargs,
                    kwnames,
                )?,
                Bound::from_borrowed_ptr(py, slf).cast_into_unchecked::<Queue>(),
            )
        };
        let item = item.ok_or_else(|| arguments::missing("put", "item"))?;
        let block = block.map_or(Ok(true), |block| block.is_truthy())?;
        match arguments::queue_timeout(block, timeout.as_ref()) {
            Ok(limit) => match Queue::own_wait(&slf, Change::NotFull, limit)? {
                Some(module) => drop(module.call_method1(pyo3::intern!(py, "put"), (&slf, &item, timeout))?),
                None => Queue::put_within(&slf, &item, limit)?,
            },
            // Without a bound it never waits, and the timeout is not checked.
            Err(error) => {
                let channel = &slf.get().channel;
                let may_try = channel.capacity() == 0 || channel.is_closed() || arguments::is_too_long(py, &error);
                if !may_try || !Queue::give(&slf, &item, None)? {
                    return Err(error);
                }
            }
        }
        Ok(fast::none())
    })
}

/// `get`, and `green_get`.
unsafe extern "C" fn get<const IS_GREEN: bool>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of Queue.
    let this = unsafe { fast::this::<Queue>(slf) };
    if nargs == 0 && kwnames.is_null() {
        if let Some(item) = this.channel.take_quietly() {
            return item.into_ptr();
        }
        // SAFETY: attached.
        if let Some(outcome) = unsafe { priority::get(this) } {
            return outcome;
        }
    }
    fast::enter(|py| {
        // SAFETY: the arguments of this call; `slf` as above.
        let ([block, timeout], slf) = unsafe {
            (
                arguments::sort(py, "get", [blocking::<IS_GREEN>(), "timeout"], args, nargs, kwnames)?,
                Bound::from_borrowed_ptr(py, slf).cast_into_unchecked::<Queue>(),
            )
        };
        let block = block.map_or(Ok(true), |block| block.is_truthy())?;
        match arguments::queue_timeout(block, timeout.as_ref()) {
            Ok(limit) => match Queue::own_wait(&slf, Change::NotEmpty, limit)? {
                Some(module) => Ok(module
                    .call_method1(pyo3::intern!(py, "get"), (&slf, timeout))?
                    .into_ptr()),
                None => Ok(Queue::get_within(&slf, limit)?.into_ptr()),
            },
            Err(error) if slf.get().channel.is_closed() || arguments::is_too_long(py, &error) => {
                match Queue::take(&slf, None)? {
                    Some(item) => Ok(item.into_ptr()),
                    None => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    })
}

unsafe extern "C" fn put_nowait(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    fast::enter(|py| {
        // SAFETY: the arguments of this call; a method descriptor of Queue.
        let ([item], slf) = unsafe {
            (
                arguments::sort(py, "put_nowait", ["item"], args, nargs, kwnames)?,
                Bound::from_borrowed_ptr(py, slf).cast_into_unchecked::<Queue>(),
            )
        };
        let item = item.ok_or_else(|| arguments::missing("put_nowait", "item"))?;
        if Queue::is_plain(&slf) {
            Queue::put_within(&slf, &item, Timeout::None)?;
            return Ok(fast::none());
        }
        let options = PyDict::new(py);
        options.set_item(pyo3::intern!(py, "block"), false)?;
        Ok(slf
            .call_method(pyo3::intern!(py, "put"), (item,), Some(&options))?
            .into_ptr())
    })
}

unsafe extern "C" fn get_nowait(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    fast::enter(|py| {
        // SAFETY: a method descriptor of Queue.
        let slf = unsafe { Bound::from_borrowed_ptr(py, slf).cast_into_unchecked::<Queue>() };
        if Queue::is_plain(&slf) {
            return Ok(Queue::get_within(&slf, Timeout::None)?.into_ptr());
        }
        let options = PyDict::new(py);
        options.set_item(pyo3::intern!(py, "block"), false)?;
        Ok(slf
            .call_method(pyo3::intern!(py, "get"), (), Some(&options))?
            .into_ptr())
    })
}

unsafe extern "C" fn async_put(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: attached; the arguments of this call to a method descriptor of Queue.
    unsafe {
        if nargs == 1 && kwnames.is_null() {
            return issue(
                slf,
                QueueRequest::Put(Bound::from_borrowed_ptr(Python::assume_attached(), *args).unbind()),
                None,
            );
        }
    }
    fast::enter(|py| {
        // SAFETY: the arguments of this call.
        let [item, timeout, blocking] =
            unsafe { arguments::sort(py, "async_put", ["item", "timeout", "blocking"], args, nargs, kwnames)? };
        let item = item.ok_or_else(|| arguments::missing("async_put", "item"))?.unbind();
        let timeout = arguments::task_timeout_if_blocking(blocking.as_ref(), timeout.as_ref())?;
        // SAFETY: a method descriptor of Queue.
        unsafe { awaitable::issue(py, slf, QueueRequest::Put(item), timeout) }
    })
}

unsafe extern "C" fn async_get(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let request = QueueRequest::Get { ends_iteration: false };
    if nargs == 0 && kwnames.is_null() {
        // SAFETY: a method descriptor of Queue, hence attached.
        return unsafe { issue(slf, request, None) };
    }
    fast::enter(|py| {
        // SAFETY: the arguments of this call.
        let [timeout, blocking] =
            unsafe { arguments::sort(py, "async_get", ["timeout", "blocking"], args, nargs, kwnames)? };
        let timeout = arguments::task_timeout_if_blocking(blocking.as_ref(), timeout.as_ref())?;
        // SAFETY: a method descriptor of Queue.
        unsafe { awaitable::issue(py, slf, request, timeout) }
    })
}

/// Make an awaitable, with errors raised.
///
/// # Safety
/// Attached; `queue` is a live Queue.
unsafe fn issue(queue: *mut ffi::PyObject, request: QueueRequest, timeout_s: Option<f64>) -> *mut ffi::PyObject {
    // SAFETY: by contract.
    unsafe {
        let py = Python::assume_attached();
        awaitable::issue(py, queue, request, timeout_s).unwrap_or_else(|error| {
            error.restore(py);
            std::ptr::null_mut()
        })
    }
}

const PUT: &std::ffi::CStr = c"($self, /, item, block=True, timeout=None)\n--\n\nPut an item; Full if there is no room in time (seconds), ShutDown if the queue is closed.";
const GREEN_PUT: &std::ffi::CStr = c"($self, /, item, blocking=True, timeout=None)\n--\n\nPut an item; Full if there is no room in time (seconds), ShutDown if the queue is closed.";
const PUT_NOWAIT: &std::ffi::CStr =
    c"($self, /, item)\n--\n\nPut an item; Full if there is no room, ShutDown if the queue is closed.";
const ASYNC_PUT: &std::ffi::CStr = c"($self, /, item, timeout=None, blocking=True)\n--\n\nPut an item in a task; Full if there is no room in time (seconds), ShutDown if the queue is closed.";
const GET: &std::ffi::CStr = c"($self, /, block=True, timeout=None)\n--\n\nGet an item; Empty if there is none in time (seconds), ShutDown if none will come.";
const GREEN_GET: &std::ffi::CStr = c"($self, /, blocking=True, timeout=None)\n--\n\nGet an item; Empty if there is none in time (seconds), ShutDown if none will come.";
const GET_NOWAIT: &std::ffi::CStr = c"Get an item; Empty if there is none, ShutDown if none will come.";
const ASYNC_GET: &std::ffi::CStr = c"($self, /, timeout=None, blocking=True)\n--\n\nGet an item in a task; Empty if there is none in time (seconds), ShutDown if none will come.";

pub(in crate::sync) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let methods = [
        (c"put", PUT, Method::FastKeywords(put::<false>)),
        (c"green_put", GREEN_PUT, Method::FastKeywords(put::<true>)),
        (c"async_put", ASYNC_PUT, Method::FastKeywords(async_put)),
        (c"put_nowait", PUT_NOWAIT, Method::FastKeywords(put_nowait)),
        (c"get", GET, Method::FastKeywords(get::<false>)),
        (c"green_get", GREEN_GET, Method::FastKeywords(get::<true>)),
        (c"async_get", ASYNC_GET, Method::FastKeywords(async_get)),
        (c"get_nowait", GET_NOWAIT, Method::NoArgs(get_nowait)),
    ];
    // CPython calls a method directly only on the class that the method was made for.
    awaitable::register(py)?;
    for class in [
        py.get_type::<Queue>(),
        py.get_type::<LifoQueue>(),
        py.get_type::<PriorityQueue>(),
        py.get_type::<SimpleQueue>(),
    ] {
        fast::install(&class, &methods)?;
        description::refuse_copies(&class)?;
        module.add(class.name()?, class)?;
    }
    Ok(())
}
