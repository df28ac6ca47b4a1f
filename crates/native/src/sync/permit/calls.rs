//! The methods of Lock, RLock and Semaphore, written once for every [`Acquirable`] class.
//!
//! They are generic bare functions: each class gets its own copy, so the uncontended call knows at compile
//! time what to do.
//!
//! Invariant: a call that need not wait returns before `fast::enter`.

use super::acquirable::{Acquirable, PermitWait};
use super::release_waiver;
use crate::sync::calls::arguments::{self, Timeout};
use crate::sync::calls::fast::{self, FastKeywords, Method};
use crate::sync::calls::ready::done;
use crate::sync::wait::blocking::block;
use crate::sync::wait::operation::Operation;
use crate::sync::who::identity::{self, NO_TASK};
use pyo3::ffi;
use pyo3::prelude::*;
use std::time::Instant;

/// Acquire for the calling thread or greenlet, within the timeout.
pub(in crate::sync) fn acquire_within<T: Acquirable>(slf: &Bound<'_, T>, timeout: Timeout) -> PyResult<bool> {
    let (py, this) = (slf.py(), slf.get());
    if this.try_take(py) {
        return Ok(true);
    }
    match timeout {
        Timeout::None => return Ok(false),
        Timeout::Endless => this.refuse_deadlock(py)?,
        Timeout::Until(_) => {}
    }
    wait_until(slf, timeout.deadline())
}

/// Acquire without a timeout, and without the check for a deadlock: for a caller that must not go on without
/// the lock.
pub(in crate::sync) fn acquire_again<T: Acquirable>(slf: &Bound<'_, T>) -> PyResult<()> {
    if !slf.get().try_take(slf.py()) {
        wait_until(slf, None)?;
    }
    Ok(())
}

fn wait_until<T: Acquirable>(slf: &Bound<'_, T>, deadline: Option<Instant>) -> PyResult<bool> {
    let py = slf.py();
    let mut wait = PermitWait {
        object: slf.clone().unbind(),
        who: T::caller(py),
        silent: false,
    };
    block(py, &mut wait, deadline)
}

/// `self` of a method of T.
///
/// # Safety
/// CPython checked the type of `slf` (method descriptors do).
unsafe fn bound<T: Acquirable>(py: Python<'_>, slf: *mut ffi::PyObject) -> Bound<'_, T> {
    // SAFETY: alive, and of type T by contract.
    unsafe { Bound::from_borrowed_ptr(py, slf).cast_into_unchecked::<T>() }
}

/// Acquire `self` if that needs no waiting.
///
/// # Safety
/// As [`bound`], and attached.
#[inline]
unsafe fn take<T: Acquirable>(slf: *mut ffi::PyObject) -> bool {
    // SAFETY: by contract.
    unsafe { fast::this::<T>(slf).try_take(Python::assume_attached()) }
}

unsafe extern "C" fn enter<T: Acquirable>(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of T, hence attached.
    if unsafe { take::<T>(slf) } {
        return fast::boolean(true);
    }
    fast::enter(|py| {
        // SAFETY: as above.
        acquire_within(&unsafe { bound::<T>(py, slf) }, Timeout::Endless).map(fast::boolean)
    })
}

unsafe extern "C" fn acquire<T: Acquirable>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of T, hence attached.
    if nargs == 0 && kwnames.is_null() && unsafe { take::<T>(slf) } {
        return fast::boolean(true);
    }
    fast::enter(|py| {
        // SAFETY: the arguments of this call.
        let [blocking, timeout] =
            unsafe { arguments::sort(py, "acquire", ["blocking", "timeout"], args, nargs, kwnames)? };
        // SAFETY: as above.
        let slf = unsafe { bound::<T>(py, slf) };
        match T::timeout(blocking.as_ref(), timeout.as_ref()) {
            Ok(timeout) => acquire_within(&slf, timeout).map(fast::boolean),
            Err(error) if T::TRIES_FIRST && arguments::is_too_long(py, &error) && slf.get().try_take(py) => {
                Ok(fast::boolean(true))
            }
            Err(error) => Err(error),
        }
    })
}

unsafe extern "C" fn release<T: Acquirable>(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of T, hence attached.
    if unsafe { fast::this::<T>(slf).try_release(Python::assume_attached()) } {
        return fast::none();
    }
    fast::enter(|_| Err(T::not_held()))
}

unsafe extern "C" fn exit<T: Acquirable>(
    slf: *mut ffi::PyObject,
    _args: *mut *mut ffi::PyObject,
    _nargs: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of T, hence attached; the class of a live object.
    if unsafe { T::exits_by_name(Python::assume_attached(), ffi::Py_TYPE(slf)) } {
        return fast::enter(|py| {
            // SAFETY: `self` of a method is alive.
            let slf = unsafe { Bound::from_borrowed_ptr(py, slf) };
            slf.call_method0(pyo3::intern!(py, "release"))?;
            Ok(fast::none())
        });
    }
    // SAFETY: the same contract.
    unsafe { release::<T>(slf, std::ptr::null_mut()) }
}

unsafe extern "C" fn aenter<T: Acquirable>(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    if T::KNOWS_TASKS {
        release_waiver::forget(slf as usize);
    }
    // SAFETY: a method descriptor of T, hence attached.
    if !T::KNOWS_TASKS && unsafe { take::<T>(slf) } {
        return done();
    }
    fast::enter(|py| {
        let who = T::task(py)?;
        // SAFETY: as above.
        let object = unsafe { bound::<T>(py, slf) };
        if (who != NO_TASK || !T::KNOWS_TASKS) && object.get().try_take_for(who) {
            return Ok(done());
        }
        let wait = PermitWait {
            object: object.unbind(),
            who,
            silent: true,
        };
        Operation::spawn(py, Box::new(wait), None)
    })
}

unsafe extern "C" fn aexit<T: Acquirable>(
    slf: *mut ffi::PyObject,
    _args: *mut *mut ffi::PyObject,
    _nargs: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    // SAFETY: the same contract.
    let released = unsafe { async_release::<T>(slf, std::ptr::null_mut()) };
    if released.is_null() { released } else { done() }
}

/// Release for the running task. If that task holds nothing, release for an owner that has ended: then the
/// owner's own coroutine is being closed, wherever that happens.
fn release_in_task<T: Acquirable>(py: Python<'_>, lock: &T) -> PyResult<()> {
    let task = identity::task(py);
    if task.as_ref().is_ok_and(|who| lock.try_release_for(*who)) {
        return Ok(());
    }
    let owner = lock.owner();
    if identity::has_ended(py, owner)? && lock.try_release_for(owner) {
        return Ok(());
    }
    task.and_then(|_| Err(T::not_held()))
}

unsafe extern "C" fn async_release<T: Acquirable>(
    slf: *mut ffi::PyObject,
    unused: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    if T::KNOWS_TASKS && release_waiver::is_waived(slf as usize) {
        return fast::none();
    }
    if !T::TASKS_OWN {
        // SAFETY: the same contract.
        return unsafe { release::<T>(slf, unused) };
    }
    // SAFETY: a method descriptor of T, hence attached.
    fast::enter(|py| release_in_task(py, unsafe { fast::this::<T>(slf) }).map(|()| fast::none()))
}

unsafe extern "C" fn async_acquire<T: Acquirable>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    if T::KNOWS_TASKS {
        release_waiver::forget(slf as usize);
    }
    fast::enter(|py| {
        // SAFETY: the arguments of this call.
        let [timeout, blocking] =
            unsafe { arguments::sort(py, "async_acquire", ["timeout", "blocking"], args, nargs, kwnames)? };
        let wait = PermitWait {
            who: T::task(py)?,
            // SAFETY: a method descriptor of T.
            object: unsafe { bound::<T>(py, slf) }.unbind(),
            silent: false,
        };
        Operation::spawn(
            py,
            Box::new(wait),
            arguments::task_timeout_if_blocking(blocking.as_ref(), timeout.as_ref())?,
        )
    })
}

const ENTER: &std::ffi::CStr = c"Acquire.";
const ASYNC_ACQUIRE: &std::ffi::CStr =
    c"($self, /, timeout=None, blocking=True)\n--\n\nAcquire in a task; with blocking=False or a timeout (seconds), False if that failed.";
const RELEASE: &std::ffi::CStr = c"Release once; an error if that is once too often.";

/// The methods of every class. `release` is left to the class if it takes arguments.
pub(in crate::sync) fn methods<T: Acquirable>() -> [(&'static std::ffi::CStr, &'static std::ffi::CStr, Method); 8] {
    let acquire: FastKeywords = acquire::<T>;
    [
        (c"__enter__", ENTER, Method::NoArgs(enter::<T>)),
        (c"__exit__", RELEASE, Method::Fast(exit::<T>)),
        (c"acquire", T::ACQUIRE, Method::FastKeywords(acquire)),
        (c"green_acquire", T::ACQUIRE, Method::FastKeywords(acquire)),
        (
            c"async_acquire",
            ASYNC_ACQUIRE,
            Method::FastKeywords(async_acquire::<T>),
        ),
        (c"__aenter__", ENTER, Method::NoArgs(aenter::<T>)),
        (c"__aexit__", RELEASE, Method::Fast(aexit::<T>)),
        (c"async_release", RELEASE, Method::NoArgs(async_release::<T>)),
    ]
}

/// `release()` without arguments, under its names.
pub(in crate::sync) fn release_methods<T: Acquirable>()
-> [(&'static std::ffi::CStr, &'static std::ffi::CStr, Method); 2] {
    [
        (c"release", RELEASE, Method::NoArgs(release::<T>)),
        (c"green_release", RELEASE, Method::NoArgs(release::<T>)),
    ]
}
