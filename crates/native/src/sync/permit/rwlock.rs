//! RWLock: readers together or one writer alone, with a lock-like view for each side.
//!
//! `lock.reader` and `lock.writer` are locks like any other (`with`, `async with`, `acquire`, `release`); the
//! lock itself adds the changes from one side to the other.
//!
//! Invariant: a side refers to its lock, the lock never to a side.

use super::deadlock::{Relation, refuse_if_stuck};
use crate::sync::calls::arguments::{self, Timeout};
use crate::sync::calls::ready::done;
use crate::sync::wait::blocking::block;
use crate::sync::wait::operation::Operation;
use crate::sync::wait::party::Party;
use crate::sync::wait::protocol::{Wait, boolean};
use crate::sync::who::identity::{self, NO_TASK};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use unsnarl_sync::{Arc, Obstacle, ReadWrite, Side, Waiter};

/// A read/write lock for threads, tasks and greenlets; writers do not starve.
///
/// `reader` and `writer` are its sides. It is not re-entrant, and any party may leave on behalf of another;
/// leaving a side on which no party is raises `RuntimeError`. So does `acquire` without a timeout (seconds)
/// in a thread whose own task is in the way: that wait could not end.
/// Fairness: first come, first served; readers next to each other enter together, and a reader that arrives
/// while any party waits queues behind it.
/// Cancellation: a side that was granted to a cancelled waiter is left immediately, and the next waiter
/// enters.
#[pyclass(frozen, subclass, weakref, module = "unsnarl")]
pub(in crate::sync) struct RWLock {
    core: ReadWrite<Party>,
}

/// One side of a read/write lock.
///
/// A lock with timeouts in seconds, for `with` and `async with`; fairness and cancellation are those of
/// `RWLock`.
#[pyclass(frozen, weakref, module = "unsnarl")]
pub(in crate::sync) struct RWLockSide {
    lock: Py<RWLock>,
    side: Side,
}

struct SideWait {
    lock: Py<RWLock>,
    side: Side,
    /// The waiting task; [`NO_TASK`] for a thread, and before the first step.
    who: usize,
    silent: bool,
}

impl Wait for SideWait {
    fn attempt(&mut self, py: Python<'_>) -> PyResult<bool> {
        self.who = identity::task_if_any(py)?;
        Ok(self.lock.get().core.try_enter(self.side, self.who))
    }
    fn begin(&mut self, _py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        Ok(self.lock.get().core.begin(self.side, waiter))
    }
    fn cancel(&mut self, _py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        Ok(self.lock.get().core.cancel(waiter))
    }
    fn give_back(&mut self, _py: Python<'_>) {
        self.lock.get().core.leave(self.side, self.who);
    }
    fn outcome(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(if self.silent { py.None() } else { boolean(py, true) })
    }
    fn task(&self) -> usize {
        self.who
    }
    fn object(&self) -> usize {
        self.lock.as_ptr() as usize
    }
    fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.lock)
    }
}

fn enter(py: Python<'_>, lock: &Py<RWLock>, side: Side, timeout: Timeout) -> PyResult<bool> {
    if lock.get().core.try_enter(side, NO_TASK) {
        return Ok(true);
    }
    match timeout {
        Timeout::None => return Ok(false),
        Timeout::Endless => refuse_deadlock(py, lock.get(), side)?,
        Timeout::Until(_) => {}
    }
    let mut wait = SideWait {
        lock: lock.clone_ref(py),
        side,
        who: NO_TASK,
        silent: false,
    };
    block(py, &mut wait, timeout.deadline())
}

/// Raise if a task of the calling thread is in the way: that task cannot leave while the thread waits.
fn refuse_deadlock(py: Python<'_>, lock: &RWLock, side: Side) -> PyResult<()> {
    let (task, relation) = match lock.core.find_obstacle(side, identity::task_of_this_thread) {
        Some(Obstacle::Inside(task)) => (task, Relation::Holds),
        Some(Obstacle::Before(task)) => (task, Relation::ComesFirst),
        None => return Ok(()),
    };
    refuse_if_stuck(py, task, relation)
}

fn leave(py: Python<'_>, lock: &RWLock, side: Side) -> PyResult<()> {
    let who = match side {
        Side::Read if lock.core.is_any_of_many() => identity::task_if_any(py)?,
        _ => NO_TASK,
    };
    if lock.core.leave(side, who) {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(match side {
        Side::Read => "release of a read lock that nobody holds",
        Side::Write => "release of a write lock that nobody holds",
    }))
}

fn enter_async(
    py: Python<'_>,
    lock: Py<RWLock>,
    side: Side,
    timeout: Option<f64>,
    silent: bool,
) -> PyResult<Py<PyAny>> {
    let wait = SideWait {
        lock,
        side,
        who: NO_TASK,
        silent,
    };
    Operation::of(py, wait, timeout)
}

#[pymethods]
impl RWLockSide {
    /// Enter; False if blocking is False or the timeout (seconds) passed first.
    #[pyo3(signature = (blocking=None, timeout=None), text_signature = "($self, blocking=True, timeout=-1)")]
    fn acquire(
        &self,
        py: Python<'_>,
        blocking: Option<Bound<'_, PyAny>>,
        timeout: Option<Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        enter(
            py,
            &self.lock,
            self.side,
            arguments::lock_timeout(blocking.as_ref(), timeout.as_ref())?,
        )
    }

    /// Leave; RuntimeError if no party is inside on this side.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        leave(py, self.lock.get(), self.side)
    }

    /// As `acquire`.
    #[pyo3(signature = (blocking=None, timeout=None), text_signature = "($self, blocking=True, timeout=-1)")]
    fn green_acquire(
        &self,
        py: Python<'_>,
        blocking: Option<Bound<'_, PyAny>>,
        timeout: Option<Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        self.acquire(py, blocking, timeout)
    }

    /// As `release`.
    fn green_release(&self, py: Python<'_>) -> PyResult<()> {
        self.release(py)
    }

    /// Leave.
    fn async_release(&self, py: Python<'_>) -> PyResult<()> {
        self.release(py)
    }

    /// Enter from a task; False if the timeout (seconds) passed first.
    #[pyo3(signature = (timeout=None, blocking=None), text_signature = "($self, timeout=None, blocking=True)")]
    fn async_acquire(
        &self,
        py: Python<'_>,
        timeout: Option<Bound<'_, PyAny>>,
        blocking: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let timeout = arguments::task_timeout_if_blocking(blocking.as_ref(), timeout.as_ref())?;
        enter_async(py, self.lock.clone_ref(py), self.side, timeout, false)
    }

    /// Tell whether any party is inside on this side.
    fn locked(&self) -> bool {
        let (readers, writing, _) = self.lock.get().core.status();
        match self.side {
            Side::Read => readers > 0,
            Side::Write => writing,
        }
    }

    /// How many parties wait for this side.
    #[getter]
    fn waiting(&self) -> usize {
        self.lock.get().core.waiting(self.side)
    }

    /// Describe the side's state.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = PyDict::new(py);
        statistics.set_item("locked", self.locked())?;
        statistics.set_item("waiting", self.waiting())?;
        Ok(statistics)
    }

    // No `__clear__`: a cycle through this side goes through its lock's other references, which are cleared
    // with the lock.
    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.lock)
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<bool> {
        enter(py, &self.lock, self.side, Timeout::Endless)
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.release(py)
    }

    fn __aenter__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        enter_async(py, self.lock.clone_ref(py), self.side, None, true)
    }

    #[pyo3(signature = (*_args))]
    fn __aexit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        self.release(py)?;
        // SAFETY: a new reference.
        Ok(unsafe { Bound::from_owned_ptr(py, done()) }.unbind())
    }
}

#[pymethods]
impl RWLock {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "()")]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            core: ReadWrite::default(),
        }
    }

    #[pyo3(signature = ())]
    fn __init__(&self) {}

    /// The side that many parties may hold together.
    #[getter]
    fn reader(slf: Py<Self>) -> RWLockSide {
        RWLockSide {
            lock: slf,
            side: Side::Read,
        }
    }

    /// The side that one party holds alone.
    #[getter]
    fn writer(slf: Py<Self>) -> RWLockSide {
        RWLockSide {
            lock: slf,
            side: Side::Write,
        }
    }

    /// Turn the held write lock into a read lock; no writer enters in between.
    fn downgrade(&self) -> PyResult<()> {
        if self.core.downgrade() {
            return Ok(());
        }
        Err(PyRuntimeError::new_err("downgrade of a write lock that nobody holds"))
    }

    /// Turn the held read lock into the write lock, if no other party reads; never waits.
    fn try_upgrade(&self) -> PyResult<bool> {
        if self.core.status().0 == 0 {
            return Err(PyRuntimeError::new_err("upgrade of a read lock that nobody holds"));
        }
        Ok(self.core.try_upgrade())
    }

    /// How many parties read now.
    #[getter]
    fn readers(&self) -> usize {
        self.core.status().0
    }

    /// Tell whether any party is inside.
    fn locked(&self) -> bool {
        let (readers, writing, _) = self.core.status();
        readers > 0 || writing
    }

    /// How many parties wait.
    #[getter]
    fn waiting(&self) -> usize {
        self.core.status().2
    }

    /// Describe the lock's state.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (readers, writing, waiting) = self.core.status();
        let statistics = PyDict::new(py);
        statistics.set_item("readers", readers)?;
        statistics.set_item("writing", writing)?;
        statistics.set_item("waiting", waiting)?;
        Ok(statistics)
    }
}

pub(in crate::sync) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<RWLock>()?;
    module.add_class::<RWLockSide>()
}
