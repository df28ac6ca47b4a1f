//! RLock: a lock that its owner (a thread, greenlet or task) may acquire again.
//!
//! | owner | depth | state |
//! |---|---|---|
//! | 0 | 0 | free |
//! | a thread, greenlet or task | n > 0 | held n times |
//!
//! Invariant: `owner` and `depth` are written only by the party that has the permit. So a party that reads
//! its own identity there is the owner.

use super::acquirable::Acquirable;
use super::calls::{self, acquire_within};
use super::deadlock::refuse_deadlock;
use crate::sync::calls::arguments::{self, Timeout};
use crate::sync::calls::description;
use crate::sync::calls::fast;
use crate::sync::wait::party::Party;
use crate::sync::who::identity;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use unsnarl_sync::Permits;

/// A re-entrant mutual exclusion lock for threads, tasks and greenlets.
///
/// Its owner (a thread, a greenlet or, by `async with`, a task) may acquire it again; it is free when it was
/// released as often. A thread and a task that runs in it are two owners. A release by any other party raises
/// `RuntimeError`; but a lock that an ended task has left held is released by `__aexit__` and `async_release`
/// anywhere.
/// Fairness: as `Lock`.
/// Cancellation: as `Lock`.
#[pyclass(frozen, subclass, weakref, module = "unsnarl")]
pub(in crate::sync) struct RLock {
    permits: Permits<Party>,
    owner: AtomicUsize,
    depth: AtomicUsize,
}

impl Acquirable for RLock {
    const KNOWS_TASKS: bool = true;
    const TASKS_OWN: bool = true;

    fn permits(&self) -> &Permits<Party> {
        &self.permits
    }
    #[inline]
    fn taken(&self, who: usize) {
        self.depth.store(1, Relaxed);
        self.owner.store(who, Relaxed);
    }
    #[inline]
    fn put_back(&self) {
        self.depth.store(0, Relaxed);
        self.owner.store(0, Relaxed);
        let _ = self.permits.release(1, 1);
    }
    #[inline]
    fn try_take(&self, py: Python<'_>) -> bool {
        self.try_take_for(identity::caller(py))
    }
    #[inline]
    fn try_release(&self, py: Python<'_>) -> bool {
        self.try_release_for(identity::caller(py))
    }
    fn not_held() -> PyErr {
        PyRuntimeError::new_err("cannot release un-acquired lock")
    }
    fn timeout(blocking: Option<&Bound<'_, PyAny>>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<Timeout> {
        arguments::lock_timeout(blocking, timeout)
    }
    /// The owner does not wait.
    #[inline]
    fn try_take_for(&self, who: usize) -> bool {
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
    #[inline]
    fn try_release_for(&self, who: usize) -> bool {
        if self.owner.load(Relaxed) != who {
            return false;
        }
        match self.depth.load(Relaxed) {
            1 => self.put_back(),
            depth => self.depth.store(depth - 1, Relaxed),
        }
        true
    }
    fn owner(&self) -> usize {
        self.owner.load(Relaxed)
    }
    fn refuse_deadlock(&self, py: Python<'_>) -> PyResult<()> {
        refuse_deadlock(py, self.owner.load(Relaxed), &self.permits)
    }
    fn caller(py: Python<'_>) -> usize {
        identity::caller(py)
    }
}

impl RLock {
    pub(in crate::sync) fn is_owned_by(&self, who: usize) -> bool {
        self.owner.load(Relaxed) == who
    }

    /// Release all levels. Returns their number.
    pub(in crate::sync) fn put_down_all(&self) -> usize {
        let depth = self.depth.load(Relaxed);
        self.put_back();
        depth
    }

    pub(in crate::sync) fn set_depth(&self, depth: usize) {
        self.depth.store(depth, Relaxed);
    }

    pub(in crate::sync) fn acquire(slf: &Bound<'_, Self>, timeout: Timeout) -> PyResult<bool> {
        acquire_within(slf, timeout)
    }
}

#[pymethods]
impl RLock {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "()")]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            permits: Permits::new(1),
            owner: AtomicUsize::new(0),
            depth: AtomicUsize::new(0),
        }
    }

    #[pyo3(signature = ())]
    fn __init__(&self) {}

    /// Tell whether the lock is held.
    fn locked(&self) -> bool {
        self.permits.free() == 0
    }

    /// How often its owner holds it.
    #[getter]
    fn count(&self) -> usize {
        self.depth.load(Relaxed)
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
            return Err(Self::not_held());
        }
        let owner = self.owner.load(Relaxed);
        Ok((self.put_down_all(), owner))
    }

    fn _acquire_restore(slf: &Bound<'_, Self>, state: (usize, usize)) -> PyResult<()> {
        Self::acquire(slf, Timeout::Endless)?;
        let this = slf.get();
        this.depth.store(state.0, Relaxed);
        this.owner.store(state.1, Relaxed);
        Ok(())
    }

    /// Restore the depth that the running task had, after it acquired the lock once.
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
}

pub(in crate::sync) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<RLock>();
    fast::install(&class, &calls::methods::<RLock>())?;
    fast::install(&class, &calls::release_methods::<RLock>())?;
    description::refuse_copies(&class)?;
    module.add("RLock", class)
}
