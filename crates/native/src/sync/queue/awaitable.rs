//! The awaitable of `async_put` and `async_get`: one put or get, performed when it is awaited.
//!
//! Most of them need not wait, and then everything that an [`Operation`] is made for costs time. So this is
//! as little as an awaitable can be: an object of bare C slots, with the queue, the item and the timeout.
//! Only if there is no item or no room it makes an operation, and forwards every call to it from then on.
//!
//! | stage | left by |
//! |---|---|
//! | fresh: nothing has happened | the first `send`: → done, or → waiting; `throw`, `close` → done |
//! | waiting: `inner` is an operation | never; `inner` decides |
//! | done | never |
//!
//! Invariant: nothing is put or taken before the first `send`, so an awaitable that is cancelled before it
//! ran has put and taken nothing.

use super::items::Item;
use super::state::Queue;
use super::waits::{GetWait, PutWait};
use crate::sync::calls::fast::{self, Method};
use crate::sync::calls::stop::{self, Step};
use crate::sync::wait::operation::Operation;
use crate::sync::wait::protocol::Wait;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use unsnarl_sync::Give;

const FRESH: u8 = 0;
const WAITING: u8 = 1;
const DONE: u8 = 2;

/// The object behind the class; its pointers are owned references or null.
#[repr(C)]
struct QueueAwaitable {
    base: ffi::PyObject,
    queue: *mut ffi::PyObject,
    /// Null for a get.
    item: *mut ffi::PyObject,
    /// The operation, in the waiting stage.
    inner: *mut ffi::PyObject,
    /// Seconds; NaN for none.
    timeout_s: f64,
    stage: AtomicU8,
    /// Whether it belongs to an `async for`, which a shutdown ends.
    ends_iteration: bool,
}

static CLASS: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(std::ptr::null_mut());

/// The request of an awaitable.
pub(in crate::sync) enum QueueRequest {
    /// An owned reference to the item.
    Put(Py<PyAny>),
    Get {
        ends_iteration: bool,
    },
}

/// Make an awaitable for a queue; a new reference.
///
/// # Errors
/// `MemoryError`.
///
/// # Safety
/// `queue` is a live Queue.
pub(in crate::sync) unsafe fn issue(
    py: Python<'_>,
    queue: *mut ffi::PyObject,
    request: QueueRequest,
    timeout_s: Option<f64>,
) -> PyResult<*mut ffi::PyObject> {
    let class = CLASS.load(Ordering::Relaxed);
    // SAFETY: attached; a class made by `register`, whose instances are `QueueAwaitable`s.
    let this = unsafe { ((*class).tp_alloc.unwrap_or(ffi::PyType_GenericAlloc))(class, 0) }.cast::<QueueAwaitable>();
    if this.is_null() {
        return Err(PyErr::fetch(py));
    }
    // SAFETY: a new object, zeroed behind its head, to which there is no other reference.
    unsafe {
        (*this).queue = ffi::Py_NewRef(queue);
        match request {
            QueueRequest::Put(item) => (*this).item = item.into_ptr(),
            QueueRequest::Get { ends_iteration } => (*this).ends_iteration = ends_iteration,
        }
        (*this).timeout_s = timeout_s.unwrap_or(f64::NAN);
    }
    Ok(this.cast())
}

/// Put or get if that needs no waiting. Returns the owned result.
///
/// # Safety
/// Attached; a live awaitable.
#[inline]
unsafe fn attempt(this: *mut QueueAwaitable) -> Option<*mut ffi::PyObject> {
    // SAFETY: by contract; `queue` is a Queue until the awaitable is cleared.
    unsafe {
        if (*this).queue.is_null() {
            return None;
        }
        let queue = fast::this::<Queue>((*this).queue);
        if (*this).item.is_null() {
            return queue.channel.take_quietly().map(Item::into_ptr);
        }
        match queue.channel.give_here(Item::of((*this).item), None) {
            Give::Given => Some(fast::none()),
            Give::Full(item) | Give::Closed(item) | Give::Elsewhere(item) => {
                // The awaitable still has its own reference, so this one is not the last.
                ffi::Py_DECREF(item.into_ptr());
                None
            }
        }
    }
}

/// Make the operation that waits.
fn enlist(py: Python<'_>, this: &QueueAwaitable) -> PyResult<*mut ffi::PyObject> {
    if this.queue.is_null() {
        return Err(PyRuntimeError::new_err("the queue of this call was collected"));
    }
    // SAFETY: a Queue, alive with the awaitable.
    let queue = unsafe { Bound::from_borrowed_ptr(py, this.queue).cast_into_unchecked::<Queue>() }.unbind();
    // SAFETY: an object, alive with the awaitable; or null.
    let item = unsafe { Bound::from_borrowed_ptr_or_opt(py, this.item) };
    let wait: Box<dyn Wait> = match item {
        Some(item) => Box::new(PutWait {
            queue,
            item: item.unbind(),
        }),
        None => Box::new(GetWait::new(queue, this.ends_iteration)),
    };
    Operation::spawn(py, wait, Some(this.timeout_s).filter(|timeout_s| !timeout_s.is_nan()))
}

unsafe extern "C" fn send(
    slf: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
    result: *mut *mut ffi::PyObject,
) -> ffi::PySendResult {
    let this = slf.cast::<QueueAwaitable>();
    // SAFETY: a slot of the class: attached, a live awaitable, memory for the result.
    unsafe {
        let stage = &(*this).stage;
        // ORDERING: pairs with the stores of `stage` below and in `clear`. Of two threads that send at the
        // same time one gets an error.
        let found = stage.compare_exchange(FRESH, DONE, Ordering::AcqRel, Ordering::Acquire);
        if found.is_ok()
            && let Some(object) = attempt(this)
        {
            *result = object;
            return ffi::PySendResult::PYGEN_RETURN;
        }
        if found != Err(WAITING) {
            let outcome = Python::attach(|py| {
                if found.is_err() {
                    return Err(PyRuntimeError::new_err("cannot reuse a call that was already awaited"));
                }
                (*this).inner = enlist(py, &*this)?;
                Ok(())
            });
            if let Err(error) = outcome {
                *result = std::ptr::null_mut();
                Python::attach(|py| error.restore(py));
                return ffi::PySendResult::PYGEN_ERROR;
            }
            // ORDERING: pairs with the exchanges of `stage`, whose failure acquires `inner`.
            stage.store(WAITING, Ordering::Release);
        }
        ffi::PyIter_Send((*this).inner, value, result)
    }
}

unsafe extern "C" fn next(slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
    let mut result = std::ptr::null_mut();
    // SAFETY: a slot of the class; None lives for ever; the result is an owned reference or null.
    unsafe {
        match send(slf, ffi::Py_None(), &raw mut result) {
            ffi::PySendResult::PYGEN_RETURN => stop::raise(result),
            _ => result,
        }
    }
}

unsafe extern "C" fn send_method(slf: *mut ffi::PyObject, value: *mut ffi::PyObject) -> *mut ffi::PyObject {
    fast::enter(|py| {
        let mut result = std::ptr::null_mut();
        // SAFETY: a method descriptor of the class; the result is an owned reference or null.
        let sent = unsafe { send(slf, value, &raw mut result) };
        if matches!(sent, ffi::PySendResult::PYGEN_ERROR) {
            return Err(PyErr::fetch(py));
        }
        // SAFETY: as above, not null.
        let object = unsafe { Bound::from_owned_ptr(py, result) }.unbind();
        stop::through_method(Ok(match sent {
            ffi::PySendResult::PYGEN_NEXT => Step::Yield(object),
            _ => Step::Return(object),
        }))
    })
}

/// The operation, in the waiting stage; in the fresh stage, the awaitable is done from now on.
fn inner<'py>(py: Python<'py>, slf: *mut ffi::PyObject) -> Option<Bound<'py, PyAny>> {
    let this = slf.cast::<QueueAwaitable>();
    // SAFETY: a method descriptor of the class; `inner` is a live object once the stage is WAITING.
    unsafe {
        // ORDERING: a failure acquires `inner`, which pairs with the store in `send`.
        let found = (*this)
            .stage
            .compare_exchange(FRESH, DONE, Ordering::AcqRel, Ordering::Acquire);
        (found == Err(WAITING)).then(|| Bound::from_borrowed_ptr(py, (*this).inner))
    }
}

unsafe extern "C" fn throw(
    slf: *mut ffi::PyObject,
    args: *mut *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    fast::enter(|py| {
        let names = ["kind", "value", "traceback"];
        // SAFETY: the arguments of this call.
        let arguments =
            unsafe { crate::sync::calls::arguments::sort(py, "throw", names, args, nargs, std::ptr::null_mut())? };
        let given = arguments.iter().flatten().cloned().collect::<Vec<_>>();
        if let Some(inner) = inner(py, slf) {
            let given = pyo3::types::PyTuple::new(py, given)?;
            return Ok(inner.call_method1("throw", given)?.into_ptr());
        }
        let [kind, value, _traceback] = arguments;
        let kind = kind.ok_or_else(|| crate::sync::calls::arguments::missing("throw", "kind"))?;
        Err(stop::thrown(kind, value.filter(|value| !value.is_none()))?)
    })
}

unsafe extern "C" fn close(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    fast::enter(|py| match inner(py, slf) {
        Some(inner) => Ok(inner.call_method0("close")?.into_ptr()),
        None => Ok(fast::none()),
    })
}

unsafe extern "C" fn this_again(slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: `slf` is alive.
    unsafe { ffi::Py_NewRef(slf) }
}

unsafe extern "C" fn traverse(slf: *mut ffi::PyObject, visit: ffi::visitproc, arg: *mut c_void) -> c_int {
    let this = slf.cast::<QueueAwaitable>();
    // SAFETY: called by the collector with a live awaitable.
    unsafe {
        for object in [ffi::Py_TYPE(slf).cast(), (*this).queue, (*this).item, (*this).inner] {
            if !object.is_null() {
                let stop = visit(object, arg);
                if stop != 0 {
                    return stop;
                }
            }
        }
    }
    0
}

unsafe extern "C" fn clear(slf: *mut ffi::PyObject) -> c_int {
    let this = slf.cast::<QueueAwaitable>();
    // SAFETY: called attached, with a live awaitable; each field is null before its reference is dropped.
    unsafe {
        ffi::Py_XDECREF(std::mem::replace(&mut (*this).item, std::ptr::null_mut()));
        ffi::Py_XDECREF(std::mem::replace(&mut (*this).inner, std::ptr::null_mut()));
        ffi::Py_XDECREF(std::mem::replace(&mut (*this).queue, std::ptr::null_mut()));
        // ORDERING: pairs with the exchanges of `stage`.
        (*this).stage.store(DONE, Ordering::Release);
    }
    0
}

unsafe extern "C" fn dealloc(slf: *mut ffi::PyObject) {
    // SAFETY: no reference is left; an instance of a heap type owns one to its type.
    unsafe {
        let class = ffi::Py_TYPE(slf);
        ffi::PyObject_GC_UnTrack(slf.cast());
        clear(slf);
        if let Some(free) = (*class).tp_free {
            free(slf.cast());
        }
        ffi::Py_DECREF(class.cast());
    }
}

/// Make the class.
pub(in crate::sync) fn register(py: Python<'_>) -> PyResult<()> {
    let slot = |slot: c_int, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
    let mut slots = [
        slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
        slot(ffi::Py_tp_traverse, traverse as *mut c_void),
        slot(ffi::Py_tp_clear, clear as *mut c_void),
        slot(ffi::Py_tp_iter, this_again as *mut c_void),
        slot(ffi::Py_tp_iternext, next as *mut c_void),
        slot(ffi::Py_am_await, this_again as *mut c_void),
        slot(ffi::Py_am_send, send as *mut c_void),
        slot(0, std::ptr::null_mut()),
    ];
    let flags = ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_HAVE_GC | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION;
    let mut spec = ffi::PyType_Spec {
        name: c"unsnarl._native.QueueAwaitable".as_ptr(),
        basicsize: size_of::<QueueAwaitable>() as c_int,
        itemsize: 0,
        flags: flags as std::ffi::c_uint,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: attached; the slots have the types that their names demand.
    let class =
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&raw mut spec))? }.cast_into::<PyType>()?;
    fast::install(
        &class,
        &[
            (c"send", c"Do it, or go on with it.", Method::One(send_method)),
            (c"throw", c"Raise in it.", Method::Fast(throw)),
            (c"close", c"End it.", Method::NoArgs(close)),
        ],
    )?;
    // The class lives for ever.
    CLASS.store(class.into_ptr().cast(), Ordering::Relaxed);
    Ok(())
}
