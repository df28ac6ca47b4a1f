//! Lock: one permit.
//!
//! As `threading.Lock`, anybody may release it. It remembers which task took it
//! asynchronously, only to tell a thread that would wait for ever for a task of
//! its own.

use super::arguments::{self, Patience};
use super::blocking::block;
use super::fast::{self, Method};
use super::identity;
use super::operation::Operation;
use super::party::Party;
use super::permit_wait::{Acquirable, PermitWait};
use super::ready::done;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::{AtomicUsize, Ordering};
use unsnarl_sync::Permits;

/// A mutual exclusion lock for threads, tasks and greenlets.
#[pyclass(frozen, subclass, weakref, module = "unsnarl")]
pub(super) struct Lock {
    permits: Permits<Party>,
    /// The task that holds it, 0 for anybody else.
    holder: AtomicUsize,
    /// The thread that task runs in.
    holder_thread: AtomicUsize,
}

impl Acquirable for Lock {
    fn permits(&self) -> &Permits<Party> {
        &self.permits
    }
    fn taken(&self, who: usize) {
        if who != 0 {
            self.holder_thread.store(identity::thread(), Ordering::Relaxed);
            self.holder.store(who, Ordering::Relaxed);
        }
    }
    fn put_back(&self) {
        let _ = self.try_put_back();
    }
}

impl Lock {
    #[inline]
    pub(super) fn try_put_back(&self) -> bool {
        if self.holder.load(Ordering::Relaxed) != 0 {
            self.holder.store(0, Ordering::Relaxed);
        }
        self.permits.release(1, 1).is_ok()
    }

    pub(super) fn acquire(slf: &Bound<'_, Self>, patience: Patience) -> PyResult<bool> {
        let py = slf.py();
        let this = slf.get();
        match patience {
            _ if this.permits.try_acquire() => Ok(true),
            Patience::None => Ok(false),
            _ => {
                if matches!(patience, Patience::Endless) {
                    refuse_deadlock(
                        py,
                        this.holder.load(Ordering::Relaxed),
                        this.holder_thread.load(Ordering::Relaxed),
                    )?;
                }
                let mut wait = PermitWait {
                    object: slf.clone().unbind(),
                    who: 0,
                    silent: false,
                };
                block(py, &mut wait, patience.deadline())
            }
        }
    }
}

/// Raise if the holder is a task of the calling thread: it can never release.
pub(super) fn refuse_deadlock(py: Python<'_>, holder: usize, thread: usize) -> PyResult<()> {
    if holder == 0 || thread != identity::thread() {
        return Ok(());
    }
    let running = identity::python(py, "describe_task")?.call1((holder,))?;
    if running.is_none() {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(format!(
        "deadlock: the lock is held by {running}, a task of this very thread, which cannot run while the \
         thread waits; acquire it with 'async with' or 'await async_acquire()' instead"
    )))
}

unsafe extern "C" fn enter(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of Lock.
    let this = unsafe { fast::this::<Lock>(slf) };
    if this.permits.try_acquire() {
        return fast::boolean(true);
    }
    fast::enter(|py| {
        // SAFETY: as above.
        let slf = unsafe { Bound::from_borrowed_ptr(py, slf).cast_into_unchecked::<Lock>() };
        Lock::acquire(&slf, Patience::Endless).map(fast::boolean)
    })
}

unsafe extern "C" fn acquire(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of Lock.
    let this = unsafe { fast::this::<Lock>(slf) };
    if nargs == 0 && kwnames.is_null() && this.permits.try_acquire() {
        return fast::boolean(true);
    }
    fast::enter(|py| {
        // SAFETY: the arguments of this call; `slf` as above.
        let ([blocking, timeout], slf) = unsafe {
            (
                arguments::sort(py, "acquire", ["blocking", "timeout"], args, nargs, kwnames)?,
                Bound::from_borrowed_ptr(py, slf).cast_into_unchecked::<Lock>(),
            )
        };
        let patience = arguments::lock_patience(blocking.as_ref(), timeout.as_ref())?;
        Lock::acquire(&slf, patience).map(fast::boolean)
    })
}

unsafe extern "C" fn release(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of Lock.
    if unsafe { fast::this::<Lock>(slf) }.try_put_back() {
        return fast::none();
    }
    fast::enter(|_| Err(PyRuntimeError::new_err("release unlocked lock")))
}

unsafe extern "C" fn exit(
    slf: *mut ffi::PyObject,
    _args: *mut *mut ffi::PyObject,
    _nargs: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    // SAFETY: the same contract.
    unsafe { release(slf, std::ptr::null_mut()) }
}

unsafe extern "C" fn aenter(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    fast::enter(|py| {
        // SAFETY: a method descriptor of Lock.
        let slf = unsafe { Bound::from_borrowed_ptr(py, slf).cast_into_unchecked::<Lock>() };
        let who = identity::task(py)?;
        if slf.get().permits.try_acquire() {
            slf.get().taken(who);
            return Ok(done());
        }
        let wait = PermitWait {
            object: slf.unbind(),
            who,
            silent: true,
        };
        Operation::spawn(py, Box::new(wait), None)
    })
}

unsafe extern "C" fn aexit(
    slf: *mut ffi::PyObject,
    _args: *mut *mut ffi::PyObject,
    _nargs: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    // SAFETY: the same contract.
    let released = unsafe { release(slf, std::ptr::null_mut()) };
    if released.is_null() { released } else { done() }
}

#[pymethods]
impl Lock {
    #[new]
    fn new() -> Self {
        Self {
            permits: Permits::new(1),
            holder: AtomicUsize::new(0),
            holder_thread: AtomicUsize::new(0),
        }
    }

    /// Acquire the lock in a task; False if the timeout (seconds) passed first.
    #[pyo3(signature = (timeout=None))]
    fn async_acquire(slf: Bound<'_, Self>, timeout: Option<Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let wait = PermitWait {
            who: identity::task(py)?,
            object: slf.unbind(),
            silent: false,
        };
        let operation = Operation::spawn(py, Box::new(wait), arguments::task_timeout(timeout.as_ref())?)?;
        // SAFETY: a new reference.
        Ok(unsafe { Bound::from_owned_ptr(py, operation) }.unbind())
    }

    /// Tell whether somebody holds the lock.
    pub(super) fn locked(&self) -> bool {
        self.permits.free() == 0
    }

    /// How many parties wait.
    #[getter]
    fn waiting(&self) -> usize {
        self.permits.waiting()
    }

    /// Describe the lock's state.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = PyDict::new(py);
        statistics.set_item("locked", self.locked())?;
        statistics.set_item("waiting", self.waiting())?;
        Ok(statistics)
    }

    fn _at_fork_reinit(&self) {
        self.holder.store(0, Ordering::Relaxed);
        self.permits.reset(1);
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let state = if slf.get().locked() { "locked" } else { "unlocked" };
        Ok(format!(
            "<{state} unsnarl.{} object at {:#x}>",
            slf.get_type().name()?,
            slf.as_ptr() as usize
        ))
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Err(pyo3::exceptions::PyTypeError::new_err(format!(
            "cannot pickle '{}' object",
            slf.get_type().name()?
        )))
    }
}

const ACQUIRE: &std::ffi::CStr = c"Acquire the lock; with blocking=False or a timeout (seconds), False if that failed.";
const RELEASE: &std::ffi::CStr = c"Release the lock; RuntimeError if nobody holds it.";

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<Lock>();
    fast::install(
        &class,
        &[
            (c"__enter__", ACQUIRE, Method::NoArgs(enter)),
            (c"__exit__", RELEASE, Method::Fast(exit)),
            (c"acquire", ACQUIRE, Method::FastKeywords(acquire)),
            (c"green_acquire", ACQUIRE, Method::FastKeywords(acquire)),
            (c"acquire_lock", ACQUIRE, Method::FastKeywords(acquire)),
            (c"release", RELEASE, Method::NoArgs(release)),
            (c"green_release", RELEASE, Method::NoArgs(release)),
            (c"async_release", RELEASE, Method::NoArgs(release)),
            (c"release_lock", RELEASE, Method::NoArgs(release)),
            (c"__aenter__", ACQUIRE, Method::NoArgs(aenter)),
            (c"__aexit__", RELEASE, Method::Fast(aexit)),
        ],
    )?;
    class.setattr("locked_lock", class.getattr("locked")?)?;
    module.add("Lock", class)
}
