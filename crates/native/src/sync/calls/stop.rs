//! The result of an `await`, returned to CPython as cheaply as it accepts.
//!
//! An iterator's slot has one way to return a value: a `StopIteration` that carries it. Made by a call, that
//! exception costs more than everything else in an `await` that does not wait; made bare, with its one field
//! set, it costs a third. `am_send` needs no exception: CPython 3.11 awaits through it, and asyncio's task
//! does on every version.
//!
//! Invariant: a value that is passed as an owned pointer is owned by the exception afterwards.

use pyo3::exceptions::PyStopIteration;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// The outcome of one step of an awaitable.
pub(in crate::sync) enum Step {
    /// Yield this to the event loop, which resumes when it has completed.
    Yield(Py<PyAny>),
    /// Return this to the awaiting code.
    Return(Py<PyAny>),
}

/// Raise `StopIteration(value)` without calling the class; raise nothing for None, since a bare null also
/// ends an `await`. Returns null.
///
/// # Safety
/// Attached; `value` is an owned reference, which is taken over.
pub(in crate::sync) unsafe fn raise(value: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: attached by contract; the class and the singleton live for ever, and the class's
    // `tp_new` is BaseException's, which needs no arguments; what it makes is a StopIteration.
    unsafe {
        if value == ffi::Py_None() {
            ffi::Py_DECREF(value);
            return std::ptr::null_mut();
        }
        let class = ffi::PyExc_StopIteration;
        let arguments = ffi::PyTuple_New(0);
        let new = (*class.cast::<ffi::PyTypeObject>()).tp_new;
        let exception = match new {
            Some(new) if !arguments.is_null() => new(class.cast(), arguments, std::ptr::null_mut()),
            _ => std::ptr::null_mut(),
        };
        ffi::Py_XDECREF(arguments);
        if exception.is_null() {
            ffi::Py_DECREF(value);
            return std::ptr::null_mut();
        }
        let old = std::mem::replace(&mut (*exception.cast::<ffi::PyStopIterationObject>()).value, value);
        ffi::Py_XDECREF(old);
        restore(exception);
    }
    std::ptr::null_mut()
}

#[cfg(Py_3_12)]
unsafe fn restore(exception: *mut ffi::PyObject) {
    // SAFETY: by the caller: attached, an owned exception.
    unsafe { ffi::PyErr_SetRaisedException(exception) };
}

#[cfg(not(Py_3_12))]
unsafe fn restore(exception: *mut ffi::PyObject) {
    // SAFETY: by the caller: attached, an owned exception; its class lives for ever.
    unsafe {
        ffi::PyErr_Restore(
            ffi::Py_NewRef(ffi::PyExc_StopIteration),
            exception,
            std::ptr::null_mut(),
        );
    }
}

/// Return a step through `tp_iternext`.
///
/// # Safety
/// Attached.
pub(in crate::sync) unsafe fn through_next(py: Python<'_>, outcome: PyResult<Step>) -> *mut ffi::PyObject {
    match outcome {
        Ok(Step::Yield(object)) => object.into_ptr(),
        // SAFETY: attached; an owned reference.
        Ok(Step::Return(value)) => unsafe { raise(value.into_ptr()) },
        Err(error) => {
            error.restore(py);
            std::ptr::null_mut()
        }
    }
}

/// Return a step through `am_send`.
///
/// # Safety
/// `result` may be written to.
pub(in crate::sync) unsafe fn through_send(
    py: Python<'_>,
    outcome: PyResult<Step>,
    result: *mut *mut ffi::PyObject,
) -> ffi::PySendResult {
    let (object, answer) = match outcome {
        Ok(Step::Yield(object)) => (object.into_ptr(), ffi::PySendResult::PYGEN_NEXT),
        Ok(Step::Return(value)) => (value.into_ptr(), ffi::PySendResult::PYGEN_RETURN),
        Err(error) => {
            error.restore(py);
            (std::ptr::null_mut(), ffi::PySendResult::PYGEN_ERROR)
        }
    };
    // SAFETY: by contract.
    unsafe { *result = object };
    answer
}

/// Return a step through a method, where a bare null would be an error.
pub(in crate::sync) fn through_method(outcome: PyResult<Step>) -> PyResult<*mut ffi::PyObject> {
    match outcome? {
        Step::Yield(object) => Ok(object.into_ptr()),
        Step::Return(value) => Err(PyStopIteration::new_err((value,))),
    }
}

/// The exception that `throw(kind, value)` raises.
pub(in crate::sync) fn thrown(kind: Bound<'_, PyAny>, value: Option<Bound<'_, PyAny>>) -> PyResult<PyErr> {
    let instance = match value {
        Some(value) if value.is_instance_of::<pyo3::exceptions::PyBaseException>() => value,
        Some(value) => kind.call1((value,))?,
        None if kind.is_instance_of::<PyType>() => kind.call0()?,
        None => kind,
    };
    Ok(PyErr::from_value(instance))
}

unsafe extern "C" fn this_again(slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: `slf` is alive.
    unsafe { ffi::Py_NewRef(slf) }
}

/// Replace PyO3's `__next__`, `__await__` and `am_send`, which cost twice as much.
pub(in crate::sync) fn shorten(class: &Bound<'_, PyType>, next: ffi::iternextfunc, send: ffi::sendfunc) {
    let class = class.as_type_ptr();
    // SAFETY: a heap type of this module, not yet visible to any other thread; PyO3
    // filled the first two slots for `__next__` and `__await__`, ours have the same contracts.
    unsafe {
        (*class).tp_iternext = Some(next);
        if let Some(slots) = (*class).tp_as_async.as_mut() {
            slots.am_await = Some(this_again);
            slots.am_send = Some(send);
        }
    }
}
