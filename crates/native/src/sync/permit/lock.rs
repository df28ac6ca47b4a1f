//! Lock: a mutual exclusion lock, made of one permit.
//!
//! As with `threading.Lock`, any party may release it. The lock remembers the task that acquired it
//! asynchronously, and its queue the task that was granted it and has not run yet. Both serve only to refuse
//! the wait of a thread for a task of its own (see [`super::deadlock`]).
//!
//! Must never: treat the remembered task as an owner.

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

/// A mutual exclusion lock for threads, tasks and greenlets.
///
/// Any party may release it; `release` of a free lock raises `RuntimeError`. So does `acquire` without a
/// timeout (seconds) in a thread whose own task holds the lock, or gets it first: that wait could not end.
/// Fairness: first come, first served among waiters. A thread that need not wait may overtake a woken thread
/// once; tasks and greenlets are always handed the lock.
/// Cancellation: a waiter that leaves after it was granted the lock passes it to the next.
#[pyclass(frozen, subclass, weakref, module = "unsnarl")]
pub(in crate::sync) struct Lock {
    permits: Permits<Party>,
    /// The task that holds it; 0 for any other holder.
    holder: AtomicUsize,
}

impl Acquirable for Lock {
    const KNOWS_TASKS: bool = true;
    const TASKS_OWN: bool = false;

    fn permits(&self) -> &Permits<Party> {
        &self.permits
    }
    fn taken(&self, who: usize) {
        if identity::is_task(who) {
            self.holder.store(who, Relaxed);
        }
    }
    fn put_back(&self) {
        let _ = self.try_put_back();
    }
    #[inline]
    fn try_take(&self, _py: Python<'_>) -> bool {
        self.permits.try_acquire()
    }
    #[inline]
    fn try_release(&self, _py: Python<'_>) -> bool {
        self.try_put_back()
    }
    fn not_held() -> PyErr {
        PyRuntimeError::new_err("release unlocked lock")
    }
    fn timeout(blocking: Option<&Bound<'_, PyAny>>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<Timeout> {
        arguments::lock_timeout(blocking, timeout)
    }
    fn refuse_deadlock(&self, py: Python<'_>) -> PyResult<()> {
        refuse_deadlock(py, self.holder.load(Relaxed), &self.permits)
    }
}

impl Lock {
    #[inline]
    pub(in crate::sync) fn try_put_back(&self) -> bool {
        if self.holder.load(Relaxed) != 0 {
            self.holder.store(0, Relaxed);
        }
        self.permits.release(1, 1).is_ok()
    }

    pub(in crate::sync) fn acquire(slf: &Bound<'_, Self>, timeout: Timeout) -> PyResult<bool> {
        acquire_within(slf, timeout)
    }
}

#[pymethods]
impl Lock {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "()")]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            permits: Permits::new(1),
            holder: AtomicUsize::new(0),
        }
    }

    #[pyo3(signature = ())]
    fn __init__(&self) {}

    /// Tell whether the lock is held.
    pub(in crate::sync) fn locked(&self) -> bool {
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
        self.holder.store(0, Relaxed);
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
}

pub(in crate::sync) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<Lock>();
    fast::install(&class, &calls::methods::<Lock>())?;
    fast::install(&class, &calls::release_methods::<Lock>())?;
    for (alias, name) in [
        ("acquire_lock", "acquire"),
        ("release_lock", "release"),
        ("locked_lock", "locked"),
    ] {
        class.setattr(alias, class.getattr(name)?)?;
    }
    description::refuse_copies(&class)?;
    module.add("Lock", class)
}
