//! Lock: a mutual exclusion lock on the robust word of a segment.
//!
//! Any thread may release it, as with `multiprocessing.Lock`. If the thread that took it ends, alone or with its
//! process, the kernel marks the word.
//!
//! Invariant: at most one living thread holds the lock.

use super::held::{self, Held};
use super::ownership::Ownership;
use crate::ipc::methods::{self, Primitive};
use crate::ipc::segment::{Body, Inheritance};
use crate::sync::calls::fast;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use unsnarl_ipc::Kind;

/// A mutual exclusion lock between processes that survives the death of its holder.
///
/// With a name for any process of this user, without one for children. It belongs to the thread that took it, but
/// any thread may release it; `RuntimeError` if it is free. If a holder died, the caller that gets `OwnerDied`
/// from `acquire` holds the lock, should repair what it protects, and calls `make_consistent`. After `OwnerDied`
/// from `with` the lock is not held.
/// Fairness: none between processes; the first thread to run takes a free lock. Timeouts are in seconds.
/// Cancellation: a task that is cancelled has taken nothing; a wake-up meant for it goes to another sleeper.
#[pyclass(frozen, subclass, weakref, module = "unsnarl.ipc", name = "Lock")]
pub(in crate::ipc) struct IpcLock {
    pub(in crate::ipc) body: Body,
    pub(in crate::ipc) ownership: Ownership,
}

impl Primitive for IpcLock {
    fn body(&self) -> &Body {
        &self.body
    }
}

impl Held for IpcLock {
    const NOT_HELD: &'static str = "release unlocked lock";

    fn ownership(&self) -> &Ownership {
        &self.ownership
    }

    #[inline]
    fn try_release(&self) -> bool {
        let is_held = self.ownership.is_held(&self.body);
        if is_held {
            self.ownership.release(&self.body, 1);
        }
        is_held
    }
}

#[pymethods]
impl IpcLock {
    #[new]
    #[pyo3(signature = (name=None))]
    fn new(py: Python<'_>, name: Option<&str>) -> PyResult<Self> {
        Ok(Self {
            body: Body::make(py, name, Kind::Lock, 0, 0, |_| {})?,
            ownership: Ownership::default(),
        })
    }

    #[staticmethod]
    fn _inherit(py: Python<'_>, allocation: Inheritance) -> PyResult<Self> {
        Ok(Self {
            body: Body::inherit(py, allocation, Kind::Lock)?,
            ownership: Ownership::default(),
        })
    }

    /// Attempts to take it for a task: True, or the sleep.
    fn _attempt(slf: &Bound<'_, Self>, has_slept: bool) -> PyResult<Py<PyAny>> {
        Held::attempt_in_task(slf, has_slept)
    }

    /// Declare repaired what a dead owner left: no caller gets OwnerDied for it any more.
    fn make_consistent(&self) -> PyResult<()> {
        self.ownership.make_consistent(&self.body)
    }

    /// Tell whether the lock is held.
    fn locked(&self) -> bool {
        self.ownership.is_held(&self.body)
    }

    /// Describe the lock's state.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.ownership.describe(py, &self.body)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Held::represent(slf)
    }

    // The interface that multiprocessing's own queues and pools expect of a lock.
    #[getter]
    fn _semlock<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }
    fn _is_mine(&self) -> bool {
        self.ownership.is_mine(&self.body)
    }
    fn _is_zero(&self) -> bool {
        self.locked()
    }
    fn _count(&self) -> u32 {
        u32::from(self._is_mine())
    }
    fn _get_value(&self) -> u32 {
        u32::from(!self.locked())
    }
}

pub(in crate::ipc) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<IpcLock>();
    fast::install(&class, &held::methods::<IpcLock>())?;
    fast::install(&class, &[held::async_release::<IpcLock>()])?;
    methods::install::<IpcLock>(&class, &methods::LOCKING)?;
    module.add("IpcLock", class)
}
