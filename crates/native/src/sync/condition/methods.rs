//! The methods of Condition.
//!
//! With a lock of ours a notified waiter is not woken: it moves to the lock's queue, and wakes when it can
//! have the lock. That is one wake-up instead of two. The waiters of `notify_all` get the lock one
//! after the other, and do not compete for a lock that the notifying party still holds.
//!
//! Any other lock works as in the standard library, through its methods.
//!
//! Invariant: `wait` returns, or raises, with the lock held as before.

use super::guard::Guard;
use super::notify_wait::{Holding, NotifyWait};
use super::state::Condition;
use crate::sync::calls::arguments::{self, Timeout};
use crate::sync::calls::description;
use crate::sync::calls::fast::{self, Method};
use crate::sync::permit::acquirable::Acquirable;
use crate::sync::permit::lock::Lock;
use crate::sync::permit::rlock::RLock;
use crate::sync::wait::blocking::block;
use crate::sync::wait::operation::Operation;
use crate::sync::who::backends;
use crate::sync::who::identity;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyFloat, PyTuple};
use std::sync::atomic::Ordering;
use std::time::Instant;
use unsnarl_sync::Notifier;

impl Condition {
    fn notify_owned(&self, py: Python<'_>, count: usize) -> PyResult<()> {
        let guard = self.guard()?;
        let owned = guard.is_owned_by(py, identity::caller(py))?
            || (guard.is_owned_by_tasks(py)
                && identity::task(py).is_ok_and(|task| guard.is_owned_by(py, task).unwrap_or(false)));
        if !owned {
            return Err(PyRuntimeError::new_err("cannot notify on un-acquired lock"));
        }
        self.pass_on(count);
        Ok(())
    }

    fn wait_until(slf: &Bound<'_, Self>, timeout: Timeout) -> PyResult<bool> {
        let py = slf.py();
        let guard = slf.get().guard()?;
        let who = identity::caller(py);
        if !guard.is_owned_by(py, who)? {
            return Err(PyRuntimeError::new_err("cannot wait on un-acquired lock"));
        }
        let mut wait = NotifyWait::new(slf.clone().unbind(), who);
        let deadline = match timeout {
            Timeout::None => Some(Instant::now()),
            timeout => timeout.deadline(),
        };
        let outcome = block(py, &mut wait, deadline);
        if !wait.has_lock.load(Ordering::Relaxed)
            && let Some(saved) = &wait.saved
        {
            guard.acquire_restore(py, saved)?;
        }
        outcome.map(|_| wait.notified)
    }

    fn enter_guard(slf: &Bound<'_, Self>) -> PyResult<*mut ffi::PyObject> {
        match slf.get().guard()? {
            Guard::Lock(lock) => Lock::acquire(lock.bind(slf.py()), Timeout::Endless).map(fast::boolean),
            Guard::RLock(lock) => RLock::acquire(lock.bind(slf.py()), Timeout::Endless).map(fast::boolean),
            Guard::Foreign(lock) => lock
                .call_method0(slf.py(), pyo3::intern!(slf.py(), "__enter__"))
                .map(Py::into_ptr),
        }
    }
}

unsafe extern "C" fn enter(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of Condition, hence attached.
    let (this, py) = unsafe { (fast::this::<Condition>(slf), Python::assume_attached()) };
    if let Some(Guard::RLock(lock)) = this.guard.get(py)
        && lock.get().try_take(py)
    {
        return fast::boolean(true);
    }
    fast::enter(|py| {
        // SAFETY: as above.
        let slf = unsafe { Bound::from_borrowed_ptr(py, slf).cast_into_unchecked::<Condition>() };
        Condition::enter_guard(&slf)
    })
}

unsafe extern "C" fn exit(
    slf: *mut ffi::PyObject,
    args: *mut *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of Condition, hence attached.
    let (this, py) = unsafe { (fast::this::<Condition>(slf), Python::assume_attached()) };
    if let Some(Guard::RLock(lock)) = this.guard.get(py)
        && lock.get().try_release(py)
    {
        return fast::none();
    }
    fast::enter(|py| match this.guard()? {
        Guard::Foreign(lock) => {
            // SAFETY: the arguments of this call.
            let [kind, value, traceback] =
                unsafe { arguments::sort(py, "__exit__", ["a", "b", "c"], args, nargs, std::ptr::null_mut())? };
            lock.call_method1(py, pyo3::intern!(py, "__exit__"), (kind, value, traceback))
                .map(Py::into_ptr)
        }
        guard => guard
            .object(py)
            .call_method0(pyo3::intern!(py, "release"))
            .map(|none| none.unbind().into_ptr()),
    })
}

unsafe extern "C" fn notify(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of Condition, hence attached.
    let (this, py) = unsafe { (fast::this::<Condition>(slf), Python::assume_attached()) };
    if nargs == 0
        && kwnames.is_null()
        && let Some(Guard::RLock(lock)) = this.guard.get(py)
        && lock.get().is_owned_by(identity::caller(py))
    {
        this.pass_on(1);
        return fast::none();
    }
    fast::enter(|py| {
        // SAFETY: the arguments of this call.
        let [count] = unsafe { arguments::sort(py, "notify", ["n"], args, nargs, kwnames)? };
        let count: i64 = count.map_or(Ok(1), |count| arguments::count(&count))?;
        this.notify_owned(py, usize::try_from(count).unwrap_or(0))?;
        Ok(fast::none())
    })
}

#[pymethods]
impl Condition {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "(lock=None)")]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            notifier: Notifier::default(),
            guard: PyOnceLock::new(),
        }
    }

    #[pyo3(signature = (lock=None))]
    fn __init__(&self, py: Python<'_>, lock: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let lock = match lock {
            Some(lock) => lock,
            None => py.get_type::<RLock>().call0()?,
        };
        let _ = self.guard.set(py, Guard::of(&lock));
        Ok(())
    }

    /// Acquire the lock, as its own `acquire` does.
    #[pyo3(signature = (*args, **kwargs))]
    fn acquire<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.guard()?
            .object(py)
            .call_method(pyo3::intern!(py, "acquire"), args, kwargs)
    }

    /// Release the lock.
    fn release<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.guard()?.object(py).call_method0(pyo3::intern!(py, "release"))
    }

    /// Release the lock and wait for a notification; False if the timeout (seconds) passed first.
    #[pyo3(signature = (timeout=None))]
    fn wait(slf: &Bound<'_, Self>, timeout: Option<Bound<'_, PyAny>>) -> PyResult<bool> {
        Self::wait_until(slf, arguments::wait_timeout(timeout.as_ref())?)
    }

    /// Wait until `predicate()` is true; its last value.
    #[pyo3(signature = (predicate, timeout=None))]
    fn wait_for<'py>(
        slf: &Bound<'py, Self>,
        predicate: Bound<'py, PyAny>,
        timeout: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let mut left = timeout.filter(|timeout| !timeout.is_none());
        let mut deadline = None;
        let mut result = predicate.call0()?;
        while !result.is_truthy()? {
            match (&left, deadline) {
                (None, _) => {}
                // The timeout begins now. A timeout of zero waits too: other parties get the lock in between.
                (Some(timeout), None) => {
                    let timeout = arguments::wait_timeout(Some(timeout))?;
                    deadline = Some(timeout.deadline().unwrap_or_else(Instant::now));
                }
                (Some(_), Some(deadline)) => {
                    let rest = deadline.saturating_duration_since(Instant::now());
                    if rest.is_zero() {
                        break;
                    }
                    left = Some(PyFloat::new(py, rest.as_secs_f64()).into_any());
                }
            }
            // Called by name: a subclass may have a `wait` of its own.
            slf.call_method1(pyo3::intern!(py, "wait"), (&left,))?;
            result = predicate.call0()?;
        }
        Ok(result)
    }

    /// Notify every party that waits.
    fn notify_all(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        if slf.is_exact_instance_of::<Self>() {
            return slf.get().notify_owned(py, usize::MAX);
        }
        // Called by name: a subclass may have a `notify` of its own.
        slf.call_method1(pyo3::intern!(py, "notify"), (slf.get().waiting(),))
            .map(drop)
    }

    /// Deprecated name of `notify_all`.
    #[allow(non_snake_case)]
    fn notifyAll(slf: &Bound<'_, Self>) -> PyResult<()> {
        arguments::deprecated(slf.py(), c"notifyAll() is deprecated, use notify_all() instead")?;
        slf.call_method0(pyo3::intern!(slf.py(), "notify_all")).map(drop)
    }

    /// Await a notification with the lock released; the caller acquires the lock again if need be.
    #[pyo3(signature = (timeout=None))]
    fn _notified(slf: Bound<'_, Self>, timeout: Option<Bound<'_, PyAny>>) -> PyResult<(Py<PyAny>, Holding)> {
        let py = slf.py();
        let who = identity::task(py)?;
        let guard = slf.get().guard()?;
        // Before the lock is released: the task could not acquire it again.
        if matches!(guard, Guard::Foreign(_)) && !guard.object(py).hasattr("async_acquire")? {
            return Err(PyTypeError::new_err(
                "a task cannot wait with this condition: its lock has no async_acquire(); make it of unsnarl's own",
            ));
        }
        if !guard.is_owned_by(py, who)? {
            return Err(PyRuntimeError::new_err("cannot wait on un-acquired lock"));
        }
        let wait = NotifyWait::new(slf.unbind(), who);
        let holding = wait.holding(py);
        let operation = Operation::of(py, wait, arguments::task_timeout(timeout.as_ref())?)?;
        Ok((operation, holding))
    }

    /// Wait in a task for a notification; False if the timeout (seconds) passed first.
    #[pyo3(signature = (timeout=None))]
    fn async_wait<'py>(slf: &Bound<'py, Self>, timeout: Option<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        backends::function(slf.py(), "condition_wait")?.call1((slf, timeout))
    }

    /// Wait in a task until `predicate()` is true; its last value.
    #[pyo3(signature = (predicate, timeout=None))]
    fn async_wait_for<'py>(
        slf: &Bound<'py, Self>,
        predicate: Bound<'py, PyAny>,
        timeout: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        backends::function(slf.py(), "condition_wait_for")?.call1((slf, predicate, timeout))
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        // Called by name: a subclass may have an `async_wait` of its own.
        slf.call_method0(pyo3::intern!(slf.py(), "async_wait"))?
            .call_method0("__await__")
    }

    fn __aenter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.guard()?.object(py).call_method0(pyo3::intern!(py, "__aenter__"))
    }

    #[pyo3(signature = (*_args))]
    fn __aexit__<'py>(&self, py: Python<'py>, _args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let none = py.None();
        self.guard()?
            .object(py)
            .call_method1(pyo3::intern!(py, "__aexit__"), (&none, &none, &none))
    }

    #[getter]
    fn _lock<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.guard()?.object(py))
    }

    /// The lock.
    #[getter]
    fn lock<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self._lock(py)
    }

    fn _is_owned(&self, py: Python<'_>) -> PyResult<bool> {
        self.guard()?.is_owned_by(py, identity::caller(py))
    }

    fn _release_save<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let lock = self.guard()?.object(py);
        if lock.hasattr("_release_save")? {
            lock.call_method0("_release_save")
        } else {
            lock.call_method0("release")
        }
    }

    fn _acquire_restore<'py>(&self, py: Python<'py>, state: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let lock = self.guard()?.object(py);
        if lock.hasattr("_acquire_restore")? {
            lock.call_method1("_acquire_restore", (state,))
        } else {
            lock.call_method0("acquire")
        }
    }

    fn _at_fork_reinit(&self, py: Python<'_>) -> PyResult<()> {
        self.notifier.reset();
        self.guard()?.object(py).call_method0("_at_fork_reinit").map(drop)
    }

    /// Tell whether the lock is held.
    fn locked<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.guard()?.object(py).call_method0("locked")
    }

    /// How many parties wait for a notification.
    #[getter]
    fn waiting(&self) -> usize {
        self.notifier.waiting()
    }

    /// One item, of no use, for each party that waits: private in `threading.Condition`, and programs count them.
    #[getter]
    fn _waiters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, (0..self.waiting()).map(|_| py.None()).collect::<Vec<_>>())
    }

    /// Describe the condition's state.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = PyDict::new(py);
        statistics.set_item("waiting", self.waiting())?;
        Ok(statistics)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        Ok(format!(
            "<Condition({}, {})>",
            this.guard()?.object(slf.py()).repr()?,
            this.waiting()
        ))
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        // SAFETY: only reads the cell; no reference count is touched.
        match self.guard.get(unsafe { Python::assume_attached() }) {
            Some(Guard::Lock(lock)) => visit.call(lock),
            Some(Guard::RLock(lock)) => visit.call(lock),
            Some(Guard::Foreign(lock)) => visit.call(lock),
            None => Ok(()),
        }
    }
}

pub(in crate::sync) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<Condition>();
    fast::install(
        &class,
        &[
            (c"__enter__", c"Acquire the lock.", Method::NoArgs(enter)),
            (c"__exit__", c"Release the lock.", Method::Fast(exit)),
            (
                c"notify",
                c"($self, /, n=1)\n--\n\nNotify up to n parties, the longest waiting first.",
                Method::FastKeywords(notify),
            ),
        ],
    )?;
    class.setattr("green_wait", class.getattr("wait")?)?;
    description::refuse_copies(&class)?;
    module.add("Condition", class)
}
