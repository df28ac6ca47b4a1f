//! RLock: a lock that its holder's thread may take again.
//!
//! Invariant: `depth` is at least 1 while the lock is held.

use super::held::{self, Held};
use super::ownership::{self, Ownership};
use crate::ipc::methods::{self, Primitive};
use crate::ipc::segment::{Body, Inheritance};
use crate::sync::calls::fast;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use unsnarl_ipc::{AtomicU32, Kind, Ordering};

/// A re-entrant lock between processes that survives the death of its holder.
///
/// Its owner is a thread, or the task of that thread that took it by `async_acquire`; a release by any other
/// raises `RuntimeError`. `OwnerDied` and `make_consistent`: as `Lock`.
/// Fairness: none between processes.
/// Cancellation: as `Lock`. Timeouts are in seconds.
#[pyclass(frozen, subclass, weakref, module = "unsnarl.ipc", name = "RLock")]
pub(in crate::ipc) struct IpcRLock {
    pub(in crate::ipc) body: Body,
    pub(in crate::ipc) ownership: Ownership,
}

impl Primitive for IpcRLock {
    fn body(&self) -> &Body {
        &self.body
    }
}

impl IpcRLock {
    #[inline]
    fn depth(&self) -> &AtomicU32 {
        &ownership::words(&self.body.segment.mapping).depth
    }

    /// Releases all levels for `Condition.wait`; returns how many there were.
    pub(in crate::ipc) fn release_all(&self) -> u32 {
        let depth = self.depth().load(Ordering::Relaxed);
        self.ownership.release(&self.body, 1);
        depth
    }

    /// Restores that many levels for `Condition.wait`.
    pub(in crate::ipc) fn restore(&self, depth: u32) {
        self.depth().store(depth.max(1), Ordering::Relaxed);
    }
}

impl Held for IpcRLock {
    const NOT_HELD: &'static str = "cannot release un-acquired lock";

    fn ownership(&self) -> &Ownership {
        &self.ownership
    }

    #[inline]
    fn deepen(&self) -> bool {
        if !self.ownership.is_mine(&self.body) {
            return false;
        }
        self.depth().fetch_add(1, Ordering::Relaxed);
        true
    }

    #[inline]
    fn try_release(&self) -> bool {
        if !self.ownership.is_mine(&self.body) {
            return false;
        }
        let depth = self.depth().load(Ordering::Relaxed);
        if depth > 1 {
            self.depth().store(depth - 1, Ordering::Relaxed);
        } else {
            self.ownership.release(&self.body, 1);
        }
        true
    }
}

#[pymethods]
impl IpcRLock {
    #[new]
    #[pyo3(signature = (name=None))]
    fn new(py: Python<'_>, name: Option<&str>) -> PyResult<Self> {
        Ok(Self {
            body: Body::make(py, name, Kind::RLock, 0, 0, |_| {})?,
            ownership: Ownership::default(),
        })
    }

    #[staticmethod]
    fn _inherit(py: Python<'_>, allocation: Inheritance) -> PyResult<Self> {
        Ok(Self {
            body: Body::inherit(py, allocation, Kind::RLock)?,
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
        let statistics = self.ownership.describe(py, &self.body)?;
        let depth = if self.locked() {
            self.depth().load(Ordering::Relaxed)
        } else {
            0
        };
        statistics.set_item("depth", depth)?;
        Ok(statistics)
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
    fn _is_owned(&self) -> bool {
        self._is_mine()
    }
    fn _is_zero(&self) -> bool {
        self.locked()
    }
    fn _count(&self) -> u32 {
        if self._is_mine() {
            self.depth().load(Ordering::Relaxed)
        } else {
            0
        }
    }
    fn _get_value(&self) -> u32 {
        u32::from(!self.locked())
    }
}

pub(in crate::ipc) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<IpcRLock>();
    fast::install(&class, &held::methods::<IpcRLock>())?;
    methods::install::<IpcRLock>(&class, &methods::LOCKING_AGAIN)?;
    module.add("IpcRLock", class)
}
