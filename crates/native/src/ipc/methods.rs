//! The methods that all classes share, and the methods for tasks, which are written in Python.
//!
//! PyO3 wants all methods of a class in one block. These methods are put into the class's dictionary afterwards, once
//! for all classes.
//!
//! Invariant: no function here waits.
//!
//! Invariant: nothing here waits.

use super::segment::Body;
use crate::sync::calls::arguments;
use crate::sync::calls::fast::{self, Method};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::ffi::CStr;

/// A class with a segment.
pub(super) trait Primitive: pyo3::PyClass<Frozen = pyo3::pyclass::boolean_struct::True> + Sync {
    fn body(&self) -> &Body;
}

unsafe extern "C" fn close<T: Primitive>(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of T.
    let this = unsafe { fast::this::<T>(slf) };
    fast::enter(|py| {
        py.detach(|| this.body().segment.leave());
        Ok(fast::none())
    })
}

unsafe extern "C" fn allocation<T: Primitive>(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of T.
    let this = unsafe { fast::this::<T>(slf) };
    fast::enter(|py| Ok(this.body().allocation().into_pyobject(py)?.into_ptr()))
}

unsafe extern "C" fn name<T: Primitive>(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of T.
    let this = unsafe { fast::this::<T>(slf) };
    fast::enter(|py| Ok(this.body().segment.name().into_pyobject(py)?.into_ptr()))
}

/// Calls `unsnarl.ipc.MODULE.FUNCTION(self)`.
fn python(slf: *mut ffi::PyObject, module: &str, function: &str) -> *mut ffi::PyObject {
    fast::enter(|py| {
        // SAFETY: `self` of a method, borrowed for the call.
        let slf = unsafe { Bound::from_borrowed_ptr(py, slf) };
        Ok(py.import(module)?.getattr(function)?.call1((slf,))?.into_ptr())
    })
}

unsafe extern "C" fn reduce(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    python(slf, "unsnarl.ipc.inheritance", "reduce")
}

unsafe extern "C" fn aenter(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    python(slf, "unsnarl.ipc.tasks", "enter")
}

unsafe extern "C" fn aexit(
    slf: *mut ffi::PyObject,
    _args: *mut *mut ffi::PyObject,
    _nargs: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    python(slf, "unsnarl.ipc.tasks", "leave")
}

unsafe extern "C" fn awaited(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    python(slf, "unsnarl.ipc.tasks", "awaited")
}

unsafe extern "C" fn release_reentrant(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    python(slf, "unsnarl.ipc.tasks", "release_reentrant")
}

/// A method `f(timeout=None)` that is `unsnarl.ipc.tasks.FUNCTION(self, timeout)`.
macro_rules! task_method {
    ($name:ident, $function:literal) => {
        pub(super) unsafe extern "C" fn $name(
            slf: *mut ffi::PyObject,
            args: *const *mut ffi::PyObject,
            nargs: ffi::Py_ssize_t,
            kwnames: *mut ffi::PyObject,
        ) -> *mut ffi::PyObject {
            fast::enter(|py| {
                // SAFETY: `self` and the arguments of this call.
                let (slf, [timeout]) = unsafe {
                    (
                        Bound::from_borrowed_ptr(py, slf),
                        arguments::sort(py, $function, ["timeout"], args, nargs, kwnames)?,
                    )
                };
                let left_s = super::wait::timeouts::task_timeout(timeout.as_ref())?;
                let tasks = py.import("unsnarl.ipc.tasks")?;
                Ok(tasks.getattr($function)?.call1((slf, left_s))?.into_ptr())
            })
        }
    };
}

task_method!(acquire, "acquire");
task_method!(acquire_reentrant, "acquire_reentrant");
task_method!(wait_event, "wait_event");
task_method!(wait_countdown, "wait_countdown");
task_method!(wait_barrier, "wait_barrier");
task_method!(wait_condition, "wait_condition");
task_method!(join, "join");

const ACQUIRE: &CStr = c"Take it in a task; False if the timeout (seconds) passed first.";
const WAIT: &CStr = c"Wait in a task; False if the timeout (seconds) passed first.";
const NOTIFIED: &CStr =
    c"Give the lock up and wait in a task to be notified; False if the timeout (seconds) passed first.";
const NOTIFIED_FOR: &CStr =
    c"Wait in a task until predicate() is true; its last value, false if the timeout (seconds) passed first.";
const ENTER: &CStr = c"Take it in a task.";
const RELEASE: &CStr = c"Release what a task took.";

/// `f(predicate, timeout=None)` of a condition.
pub(super) unsafe extern "C" fn wait_condition_for(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    fast::enter(|py| {
        // SAFETY: `self` and the arguments of this call.
        let (slf, [predicate, timeout]) = unsafe {
            (
                Bound::from_borrowed_ptr(py, slf),
                arguments::sort(py, "async_wait_for", ["predicate", "timeout"], args, nargs, kwnames)?,
            )
        };
        let predicate =
            predicate.ok_or_else(|| PyTypeError::new_err("async_wait_for() missing required argument: 'predicate'"))?;
        let left_s = super::wait::timeouts::task_timeout(timeout.as_ref())?;
        let tasks = py.import("unsnarl.ipc.tasks")?;
        Ok(tasks
            .getattr("wait_condition_for")?
            .call1((slf, predicate, left_s))?
            .into_ptr())
    })
}

/// The methods by which tasks acquire and release.
pub(super) const LOCKING: [(&CStr, &CStr, Method); 3] = [
    (c"async_acquire", ACQUIRE, Method::FastKeywords(acquire)),
    (c"__aenter__", ENTER, Method::NoArgs(aenter)),
    (c"__aexit__", RELEASE, Method::Fast(aexit)),
];

/// The same for a re-entrant lock.
pub(super) const LOCKING_AGAIN: [(&CStr, &CStr, Method); 4] = [
    (c"async_acquire", ACQUIRE, Method::FastKeywords(acquire_reentrant)),
    (c"async_release", RELEASE, Method::NoArgs(release_reentrant)),
    (c"__aenter__", ENTER, Method::NoArgs(aenter)),
    (c"__aexit__", RELEASE, Method::Fast(aexit)),
];

/// The methods of a condition for tasks.
pub(super) const WAITING_NOTIFIED: [(&CStr, &CStr, Method); 3] = [
    (c"async_wait", NOTIFIED, Method::FastKeywords(wait_condition)),
    (
        c"async_wait_for",
        NOTIFIED_FOR,
        Method::FastKeywords(wait_condition_for),
    ),
    (c"__await__", NOTIFIED, Method::NoArgs(awaited)),
];

/// The method by which tasks join a queue.
pub(super) const JOINING: [(&CStr, &CStr, Method); 1] = [(c"async_join", WAIT, Method::FastKeywords(join))];

/// The methods by which tasks wait: `async_wait`, and `await` on the object.
pub(super) const fn waiting(call: fast::FastKeywords) -> [(&'static CStr, &'static CStr, Method); 2] {
    [
        (c"async_wait", WAIT, Method::FastKeywords(call)),
        (c"__await__", WAIT, Method::NoArgs(awaited)),
    ]
}

/// Adds to a class the methods that every class has, and `more`.
pub(super) fn install<T: Primitive>(
    class: &Bound<'_, PyType>,
    more: &[(&'static CStr, &'static CStr, Method)],
) -> PyResult<()> {
    const CLOSE: &CStr = c"Stop counting as a user of the name; the last user removes the segment.";
    fast::install(
        class,
        &[
            (c"close", CLOSE, Method::NoArgs(close::<T>)),
            (
                c"_allocation",
                c"Descriptor, page and pages; None with a name.",
                Method::NoArgs(allocation::<T>),
            ),
            (c"_name", c"The name, or None.", Method::NoArgs(name::<T>)),
            (
                c"__reduce__",
                c"Pickle it for a child, or by name.",
                Method::NoArgs(reduce),
            ),
        ],
    )?;
    fast::install(class, more)?;
    let property = class.py().import("builtins")?.getattr("property")?;
    class.setattr("name", property.call1((class.getattr("_name")?,))?)
}
