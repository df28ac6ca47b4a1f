//! RLock: a lock that its owner (thread, greenlet or task) may take again.
//!
//! | owner | depth | state |
//! |---|---|---|
//! | 0 | 0 | free |
//! | a thread, greenlet or task | n > 0 | held n times |
//!
//! Invariant: `owner` and `depth` are written by the owner alone, while it has
//! the permit; so reading one's own identity there proves ownership.

use super::arguments::{self, Patience};
use super::blocking::block;
use super::fast::{self, Method};
use super::identity;
use super::lock::refuse_deadlock;
use super::operation::Operation;
use super::party::Party;
use super::permit_wait::{Acquirable, PermitWait};
use super::ready::done;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use unsnarl_sync::Permits;

/// A re-entrant mutual exclusion lock for threads, tasks and greenlets.
#[pyclass(frozen, subclass, weakref, module = "unsnarl")]
pub(super) struct RLock {
    permits: Permits<Party>,
    owner: AtomicUsize,
    owner_thread: AtomicUsize,
    depth: AtomicUsize,
}

impl Acquirable for RLock {
    fn permits(&self) -> &Permits<Party> {
        &self.permits
    }
    fn taken(&self, who: usize) {
        self.owner_thread.store(identity::thread(), Relaxed);
        self.depth.store(1, Relaxed);
        self.owner.store(who, Relaxed);
    }
    fn put_back(&self) {
        self.depth.store(0, Relaxed);
        self.owner.store(0, Relaxed);
        let _ = self.permits.release(1, 1);
    }
}

impl RLock {
    /// Take it without waiting.
    #[inline]
    pub(super) fn try_take(&self, who: usize) -> bool {
        if self.owner.load(Relaxed) == who {
            self.depth.store(self.depth.load(Relaxed) + 1, Relaxed);
            return true;
        }
        let taken = self.permits.try_acquire();
        if taken {
            self.taken(who);
        }
        taken
    }

    /// Release one level; false if `who` does not own it.
    #[inline]
    pub(super) fn put_down(&self, who: usize) -> bool {
        if self.owner.load(Relaxed) != who {
            return false;
        }
        match self.depth.load(Relaxed) {
            1 => self.put_back(),
            depth => self.depth.store(depth - 1, Relaxed),
        }
        true
    }

    pub(super) fn is_owned_by(&self, who: usize) -> bool {
        self.owner.load(Relaxed) == who
    }

    /// Release all levels at once; their number.
    pub(super) fn put_down_all(&self) -> usize {
        let depth = self.depth.load(Relaxed);
        self.put_back();
        depth
    }

    pub(super) fn set_depth(&self, depth: usize) {
        self.depth.store(depth, Relaxed);
    }

    pub(super) fn acquire(slf: &Bound<'_, Self>, patience: Patience) -> PyResult<bool> {
        let py = slf.py();
        let this = slf.get();
        let who = identity::caller(py);
        match patience {
            _ if this.try_take(who) => Ok(true),
            Patience::None => Ok(false),
            _ => {
                if matches!(patience, Patience::Endless) {
                    refuse_deadlock(py, this.owner.load(Relaxed), this.owner_thread.load(Relaxed))?;
                }
                let mut wait = PermitWait {
                    object: slf.clone().unbind(),
                    who,
                    silent: false,
                };
                block(py, &mut wait, patience.deadline())
            }
        }
    }
}

fn not_owner() -> PyErr {
    PyRuntimeError::new_err("cannot release un-acquired lock")
}

#[inline]
fn caller() -> usize {
    // SAFETY: only used in methods of Python objects, hence attached.
    identity::caller(unsafe { Python::assume_attached() })
}

unsafe extern "C" fn enter(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of RLock.
    if unsafe { fast::this::<RLock>(slf) }.try_take(caller()) {
        return fast::boolean(true);
    }
    fast::enter(|py| {
        // SAFETY: as above.
        let slf = unsafe { Bound::from_borrowed_ptr(py, slf).cast_into_unchecked::<RLock>() };
        RLock::acquire(&slf, Patience::Endless).map(fast::boolean)
    })
}

unsafe extern "C" fn acquire(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of RLock.
    if nargs == 0 && kwnames.is_null() && unsafe { fast::this::<RLock>(slf) }.try_take(caller()) {
        return fast::boolean(true);
    }
    fast::enter(|py| {
        // SAFETY: the arguments of this call; `slf` as above.
        let ([blocking, timeout], slf) = unsafe {
            (
                arguments::sort(py, "acquire", ["blocking", "timeout"], args, nargs, kwnames)?,
                Bound::from_borrowed_ptr(py, slf).cast_into_unchecked::<RLock>(),
            )
        };
        let patience = arguments::lock_patience(blocking.as_ref(), timeout.as_ref())?;
        RLock::acquire(&slf, patience).map(fast::boolean)
    })
}

unsafe extern "C" fn release(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of RLock.
    if unsafe { fast::this::<RLock>(slf) }.put_down(caller()) {
        return fast::none();
    }
    fast::enter(|_| Err(not_owner()))
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
        // SAFETY: a method descriptor of RLock.
        let slf = unsafe { Bound::from_borrowed_ptr(py, slf).cast_into_unchecked::<RLock>() };
        let who = identity::task(py)?;
        if slf.get().try_take(who) {
            return Ok(done());
        }
        Operation::spawn(
            py,
            Box::new(PermitWait {
                object: slf.unbind(),
                who,
                silent: true,
            }),
            None,
        )
    })
}

unsafe extern "C" fn aexit(
    slf: *mut ffi::PyObject,
    _args: *mut *mut ffi::PyObject,
    _nargs: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    fast::enter(|py| {
        // SAFETY: a method descriptor of RLock.
        let this = unsafe { fast::this::<RLock>(slf) };
        if this.put_down(identity::task(py)?) {
            Ok(done())
        } else {
            Err(not_owner())
        }
    })
}

/// Taking again what one has does not wait: it must not go through the permits.
struct Again(PermitWait<RLock>);

impl super::blocking::Wait for Again {
    fn attempt(&mut self, _py: Python<'_>) -> PyResult<bool> {
        Ok(self.0.object.get().try_take(self.0.who))
    }
    fn begin(&mut self, py: Python<'_>, waiter: &unsnarl_sync::Arc<unsnarl_sync::Waiter<Party>>) -> PyResult<bool> {
        self.0.begin(py, waiter)
    }
    fn resume(&mut self, py: Python<'_>, waiter: &unsnarl_sync::Arc<unsnarl_sync::Waiter<Party>>) -> PyResult<bool> {
        self.0.resume(py, waiter)
    }
    fn cancel(&mut self, py: Python<'_>, waiter: &unsnarl_sync::Arc<unsnarl_sync::Waiter<Party>>) -> PyResult<bool> {
        self.0.cancel(py, waiter)
    }
    fn give_back(&mut self, py: Python<'_>) {
        self.0.give_back(py);
    }
    fn outcome(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.0.outcome(py)
    }
    fn expired(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.0.expired(py)
    }
    fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        self.0.traverse(visit)
    }
}

#[pymethods]
impl RLock {
    #[new]
    fn new() -> Self {
        Self {
            permits: Permits::new(1),
            owner: AtomicUsize::new(0),
            owner_thread: AtomicUsize::new(0),
            depth: AtomicUsize::new(0),
        }
    }

    /// Acquire the lock for the running task; False if the timeout (seconds) passed first.
    #[pyo3(signature = (timeout=None))]
    fn async_acquire(slf: Bound<'_, Self>, timeout: Option<Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let wait = Again(PermitWait {
            who: identity::task(py)?,
            object: slf.unbind(),
            silent: false,
        });
        let operation = Operation::spawn(py, Box::new(wait), arguments::task_timeout(timeout.as_ref())?)?;
        // SAFETY: a new reference.
        Ok(unsafe { Bound::from_owned_ptr(py, operation) }.unbind())
    }

    /// Release one level that the running task holds.
    fn async_release(&self, py: Python<'_>) -> PyResult<()> {
        if self.put_down(identity::task(py)?) {
            Ok(())
        } else {
            Err(not_owner())
        }
    }

    /// Tell whether somebody holds the lock.
    fn locked(&self) -> bool {
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
        statistics.set_item("depth", self.depth.load(Relaxed))?;
        statistics.set_item("waiting", self.waiting())?;
        Ok(statistics)
    }

    fn _is_owned(&self, py: Python<'_>) -> bool {
        self.is_owned_by(identity::caller(py))
    }

    fn _recursion_count(&self, py: Python<'_>) -> usize {
        if self._is_owned(py) {
            self.depth.load(Relaxed)
        } else {
            0
        }
    }

    fn _release_save(&self) -> PyResult<(usize, usize)> {
        if self.permits.free() > 0 {
            return Err(not_owner());
        }
        let owner = self.owner.load(Relaxed);
        Ok((self.put_down_all(), owner))
    }

    fn _acquire_restore(slf: &Bound<'_, Self>, state: (usize, usize)) -> PyResult<()> {
        Self::acquire(slf, Patience::Endless)?;
        let this = slf.get();
        this.depth.store(state.0, Relaxed);
        this.owner.store(state.1, Relaxed);
        Ok(())
    }

    /// Restore the depth that the running task had, after it took the lock once.
    fn _deepen(&self, depth: usize) {
        self.set_depth(depth);
    }

    fn _async_depth(&self, py: Python<'_>) -> PyResult<usize> {
        let who = identity::task(py)?;
        Ok(if self.is_owned_by(who) {
            self.depth.load(Relaxed)
        } else {
            0
        })
    }

    fn _at_fork_reinit(&self) {
        self.owner.store(0, Relaxed);
        self.depth.store(0, Relaxed);
        self.permits.reset(1);
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        Ok(format!(
            "<{} unsnarl.{} object owner={} count={} at {:#x}>",
            if this.locked() { "locked" } else { "unlocked" },
            slf.get_type().name()?,
            this.owner.load(Relaxed),
            this.depth.load(Relaxed),
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
const RELEASE: &std::ffi::CStr = c"Release one level; RuntimeError if the caller does not own the lock.";

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<RLock>();
    fast::install(
        &class,
        &[
            (c"__enter__", ACQUIRE, Method::NoArgs(enter)),
            (c"__exit__", RELEASE, Method::Fast(exit)),
            (c"acquire", ACQUIRE, Method::FastKeywords(acquire)),
            (c"green_acquire", ACQUIRE, Method::FastKeywords(acquire)),
            (c"release", RELEASE, Method::NoArgs(release)),
            (c"green_release", RELEASE, Method::NoArgs(release)),
            (c"__aenter__", ACQUIRE, Method::NoArgs(aenter)),
            (c"__aexit__", RELEASE, Method::Fast(aexit)),
        ],
    )?;
    module.add("RLock", class)
}
