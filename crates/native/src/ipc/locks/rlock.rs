//! RLock: a lock that the thread which holds it may take again.

use super::lock::{ACQUIRE, RELEASE, patience};
use super::ownership::{self, Had, Tenure};
use crate::ipc::methods::{self, Primitive};
use crate::ipc::segment::errors;
use crate::ipc::segment::{Body, Inheritance};
use crate::ipc::wait::{Turn, told};
use crate::sync::arguments::Patience;
use crate::sync::fast::{self, Method};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use unsnarl_ipc::{AtomicU32, Kernel, Kind, Ordering};
use unsnarl_shm::Host;

/// A re-entrant lock between processes that survives the death of its holder.
///
/// Its owner is a thread, or the task of that thread that took it by `async_acquire`; a release by anybody
/// else raises `RuntimeError`. `OwnerDied` and `make_consistent`: as `Lock`.
/// Fairness: none between processes. Cancellation: as `Lock`. Timeouts are in seconds.
#[pyclass(frozen, subclass, weakref, module = "unsnarl.ipc", name = "RLock")]
pub(in crate::ipc) struct IpcRLock {
    pub(in crate::ipc) body: Body,
    pub(in crate::ipc) tenure: Tenure,
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

    /// One level deeper, if the calling thread holds it.
    #[inline]
    fn deepen(&self) -> bool {
        if !self.tenure.is_mine(&self.body) {
            return false;
        }
        self.depth().fetch_add(1, Ordering::Relaxed);
        true
    }

    fn acquire(&self, py: Python<'_>, patience: Patience) -> PyResult<bool> {
        if self.deepen() {
            return Ok(true);
        }
        match self.tenure.acquire(py, &self.body, patience)? {
            Some(Had::Sound) => Ok(true),
            Some(Had::Damaged) => Err(self.tenure.death(py, &self.body, "the lock")),
            None => Ok(false),
        }
    }

    #[inline]
    fn try_release(&self) -> bool {
        if !self.tenure.is_mine(&self.body) {
            return false;
        }
        let depth = self.depth().load(Ordering::Relaxed);
        if depth > 1 {
            self.depth().store(depth - 1, Ordering::Relaxed);
        } else {
            self.tenure.release(&self.body, 1);
        }
        true
    }

    fn enter_slowly(&self, py: Python<'_>, attempt: Option<Had>) -> PyResult<bool> {
        let had = match attempt {
            Some(had) => Some(had),
            None => self.tenure.acquire(py, &self.body, Patience::Endless)?,
        };
        if had == Some(Had::Damaged) {
            let death = self.tenure.death(py, &self.body, "the lock");
            self.try_release();
            return Err(death);
        }
        Ok(true)
    }

    /// For `Condition.wait`: give all levels back; returns how many there were.
    pub(in crate::ipc) fn release_all(&self) -> u32 {
        let depth = self.depth().load(Ordering::Relaxed);
        self.tenure.release(&self.body, 1);
        depth
    }

    /// For `Condition.wait`: take as many levels back.
    pub(in crate::ipc) fn restore(&self, depth: u32) {
        self.depth().store(depth.max(1), Ordering::Relaxed);
    }
}

unsafe extern "C" fn enter(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of IpcRLock.
    let this = unsafe { fast::this::<IpcRLock>(slf) };
    if this.deepen() {
        return fast::boolean(true);
    }
    match this.tenure.try_acquire(&this.body) {
        Some(Had::Sound) => fast::boolean(true),
        attempt => fast::enter(|py| this.enter_slowly(py, attempt).map(fast::boolean)),
    }
}

unsafe extern "C" fn acquire(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of IpcRLock.
    let this = unsafe { fast::this::<IpcRLock>(slf) };
    if nargs == 0 && kwnames.is_null() {
        if this.deepen() {
            return fast::boolean(true);
        }
        match this.tenure.try_acquire(&this.body) {
            Some(Had::Sound) => return fast::boolean(true),
            Some(Had::Damaged) => return fast::enter(|py| Err(this.tenure.death(py, &this.body, "the lock"))),
            None => {}
        }
    }
    fast::enter(|py| {
        // SAFETY: the arguments of this call.
        let patience = unsafe { patience(py, args, nargs, kwnames)? };
        this.acquire(py, patience).map(fast::boolean)
    })
}

unsafe extern "C" fn release(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of IpcRLock.
    if unsafe { fast::this::<IpcRLock>(slf) }.try_release() {
        return fast::none();
    }
    fast::enter(|py| Err(errors::not_held(py, "cannot release un-acquired lock")))
}

unsafe extern "C" fn exit(
    slf: *mut ffi::PyObject,
    _args: *mut *mut ffi::PyObject,
    _nargs: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    // SAFETY: the same contract.
    unsafe { release(slf, std::ptr::null_mut()) }
}

#[pymethods]
impl IpcRLock {
    #[new]
    #[pyo3(signature = (name=None))]
    fn new(py: Python<'_>, name: Option<&str>) -> PyResult<Self> {
        Ok(Self {
            body: Body::make(py, name, Kind::RLock, 0, 0, |_| {})?,
            tenure: Tenure::default(),
        })
    }

    #[staticmethod]
    fn _inherit(py: Python<'_>, place: Inheritance) -> PyResult<Self> {
        Ok(Self {
            body: Body::inherit(py, place, Kind::RLock)?,
            tenure: Tenure::default(),
        })
    }

    /// Take it for a task: True, or what to sleep on.
    fn _attempt(slf: &Bound<'_, Self>, has_slept: bool) -> PyResult<Py<PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let had_it = || Ok(true.into_pyobject(py)?.to_owned().into_any().unbind());
        if this.deepen() {
            return had_it();
        }
        let turn = Turn::of_task(has_slept, false);
        let step = this.tenure.attempt(&this.body, turn);
        Host.end();
        told(py, slf.as_any(), step?, |had| match had {
            Had::Sound => had_it(),
            Had::Damaged => Err(this.tenure.death(py, &this.body, "the lock")),
        })
    }

    /// Say that what a dead owner left is repaired: nobody gets OwnerDied for it any more.
    fn make_consistent(&self) -> PyResult<()> {
        self.tenure.make_consistent(&self.body)
    }

    /// Tell whether somebody holds the lock.
    fn locked(&self) -> bool {
        self.tenure.is_held(&self.body)
    }

    /// Describe the lock's state.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = self.tenure.describe(py, &self.body)?;
        let depth = if self.locked() {
            self.depth().load(Ordering::Relaxed)
        } else {
            0
        };
        statistics.set_item("depth", depth)?;
        Ok(statistics)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        Ok(format!(
            "<unsnarl.ipc.{}{}: {}>",
            slf.get_type().name()?,
            this.body.label(),
            this.tenure.state(&this.body)
        ))
    }

    // What multiprocessing's own queues and pools ask of a lock.
    #[getter]
    fn _semlock<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }
    fn _is_mine(&self) -> bool {
        self.tenure.is_mine(&self.body)
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
    fast::install(
        &class,
        &[
            (c"__enter__", ACQUIRE, Method::NoArgs(enter)),
            (c"__exit__", RELEASE, Method::Fast(exit)),
            (c"acquire", ACQUIRE, Method::FastKeywords(acquire)),
            (c"release", RELEASE, Method::NoArgs(release)),
        ],
    )?;
    methods::install::<IpcRLock>(&class, &methods::LOCKING_AGAIN)?;
    module.add("IpcRLock", class)
}
