//! The calls of a lock on a robust word, once for Lock and RLock.
//!
//! Generic bare functions, so that each class gets its own copy, and an uncontended call does nothing for the
//! other class.
//!
//! Invariant: an uncontended acquire or release returns without `fast::enter`.

use super::ownership::{Acquired, Ownership};
use crate::ipc::methods::Primitive;
use crate::ipc::segment::errors;
use crate::ipc::wait::{WaitRound, task_outcome, timeouts, yes};
use crate::sync::calls::arguments::{self, Timeout};
use crate::sync::calls::fast::{self, Method};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::CStr;
use unsnarl_ipc::Kernel;
use unsnarl_shm::Host;

const ACQUIRE: &CStr = c"Acquire it; with blocking=False or a timeout (seconds), False if that failed. OwnerDied if its owner died: it is held then.";
const RELEASE: &CStr = c"Release it; RuntimeError if it is not held.";

/// A class whose objects are held by one thread at a time, through a robust word.
pub(in crate::ipc) trait Held: Primitive {
    /// The message of a release by a caller that may not release.
    const NOT_HELD: &'static str;

    /// The robust word, and who holds it.
    fn ownership(&self) -> &Ownership;

    /// Releases one level; false if the caller may not.
    fn try_release(&self) -> bool;

    /// Takes one more level, where the calling thread holds it already and may hold it twice.
    #[inline]
    fn deepen(&self) -> bool {
        false
    }

    /// Acquires it if that needs no waiting.
    #[inline]
    fn try_acquire(&self) -> Option<Acquired> {
        if self.deepen() {
            return Some(Acquired::Sound);
        }
        self.ownership().try_acquire(self.body())
    }

    /// `OwnerDied` for the last holder.
    fn death(&self, py: Python<'_>) -> PyErr {
        self.ownership().death(py, self.body(), "the lock")
    }

    /// Acquires it, waiting as long as `timeout` allows; false if the time was up.
    fn acquire_within(&self, py: Python<'_>, timeout: Timeout) -> PyResult<bool> {
        if self.deepen() {
            return Ok(true);
        }
        match self.ownership().acquire(py, self.body(), timeout)? {
            Some(Acquired::Sound) => Ok(true),
            Some(Acquired::Damaged) => Err(self.death(py)),
            None => Ok(false),
        }
    }

    /// Acquires it for `with`, after `attempt`. `with` does not run its block if the owner died, so the lock is
    /// released again, unrepaired.
    fn enter_slowly(&self, py: Python<'_>, attempt: Option<Acquired>) -> PyResult<bool> {
        let acquired = match attempt {
            Some(acquired) => Some(acquired),
            None => self.ownership().acquire(py, self.body(), Timeout::Endless)?,
        };
        if acquired == Some(Acquired::Damaged) {
            let death = self.death(py);
            self.try_release();
            return Err(death);
        }
        Ok(true)
    }

    /// Attempts to take it for a task: True, or the sleep.
    fn attempt_in_task(slf: &Bound<'_, Self>, has_slept: bool) -> PyResult<Py<PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        if this.deepen() {
            return yes(py);
        }
        let step = this
            .ownership()
            .attempt(this.body(), WaitRound::of_task(has_slept, false));
        Host.end();
        task_outcome(py, slf.as_any(), step?, |acquired| match acquired {
            Acquired::Sound => yes(py),
            Acquired::Damaged => Err(this.death(py)),
        })
    }

    /// The text of `repr`.
    fn represent(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        Ok(format!(
            "<unsnarl.ipc.{}{}: {}>",
            slf.as_any().get_type().name()?,
            this.body().label(),
            this.ownership().state(this.body())
        ))
    }
}

unsafe extern "C" fn enter<T: Held>(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of T.
    let this = unsafe { fast::this::<T>(slf) };
    match this.try_acquire() {
        Some(Acquired::Sound) => fast::boolean(true),
        attempt => fast::enter(|py| this.enter_slowly(py, attempt).map(fast::boolean)),
    }
}

unsafe extern "C" fn acquire<T: Held>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of T.
    let this = unsafe { fast::this::<T>(slf) };
    if nargs == 0 && kwnames.is_null() {
        match this.try_acquire() {
            Some(Acquired::Sound) => return fast::boolean(true),
            Some(Acquired::Damaged) => return fast::enter(|py| Err(this.death(py))),
            None => {}
        }
    }
    fast::enter(|py| {
        // SAFETY: the arguments of this call.
        let timeout = unsafe { timeout_of(py, args, nargs, kwnames)? };
        this.acquire_within(py, timeout).map(fast::boolean)
    })
}

/// Reads the arguments of `acquire(blocking=True, timeout=-1)`. `block`, None and negative timeouts have the meaning
/// that they have in multiprocessing, except that -1 waits for ever.
///
/// # Safety
/// The arguments are those CPython passed to the method.
pub(in crate::ipc) unsafe fn timeout_of(
    py: Python<'_>,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> PyResult<Timeout> {
    // SAFETY: the caller's promise.
    let [blocking, timeout, block] =
        unsafe { arguments::sort(py, "acquire", ["blocking", "timeout", "block"], args, nargs, kwnames)? };
    let is_blocking = blocking.or(block).map_or(Ok(true), |blocking| blocking.is_truthy())?;
    if !is_blocking {
        return Ok(Timeout::None);
    }
    match timeout {
        Some(timeout) if !timeout.is_none() && timeout.extract::<f64>()? != -1.0 => {
            timeouts::wait_timeout(Some(&timeout))
        }
        _ => Ok(Timeout::Endless),
    }
}

unsafe extern "C" fn release<T: Held>(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of T.
    if unsafe { fast::this::<T>(slf) }.try_release() {
        return fast::none();
    }
    fast::enter(|py| Err(errors::not_held(py, T::NOT_HELD)))
}

unsafe extern "C" fn exit<T: Held>(
    slf: *mut ffi::PyObject,
    _args: *mut *mut ffi::PyObject,
    _nargs: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    // SAFETY: the same contract.
    unsafe { release::<T>(slf, std::ptr::null_mut()) }
}

/// The methods of a class that is held, for [`fast::install`].
pub(super) fn methods<T: Held>() -> [(&'static CStr, &'static CStr, Method); 4] {
    [
        (c"__enter__", ACQUIRE, Method::NoArgs(enter::<T>)),
        (c"__exit__", RELEASE, Method::Fast(exit::<T>)),
        (c"acquire", ACQUIRE, Method::FastKeywords(acquire::<T>)),
        (c"release", RELEASE, Method::NoArgs(release::<T>)),
    ]
}

/// `release` under the name that tasks use, for a class that any caller may release.
pub(super) fn async_release<T: Held>() -> (&'static CStr, &'static CStr, Method) {
    (c"async_release", RELEASE, Method::NoArgs(release::<T>))
}
