//! Lock: the robust word of a segment.
//!
//! Anybody may release it, as with `multiprocessing.Lock`. It belongs to the thread that
//! took it as far as dying is concerned: the kernel marks the word when that thread ends,
//! by itself or with its process.

use super::ownership::{Had, Tenure};
use crate::ipc::methods::{self, Primitive};
use crate::ipc::segment::errors;
use crate::ipc::segment::{Body, Inheritance};
use crate::ipc::wait::{Turn, told};
use crate::sync::arguments::{self, Patience};
use crate::sync::fast::{self, Method};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use unsnarl_ipc::{Kernel, Kind};
use unsnarl_shm::Host;

/// A mutual exclusion lock between processes that survives the death of its holder.
///
/// With a name for any process of this user, without one for children. It belongs to the thread that took
/// it; anybody may release it, `RuntimeError` if it is free. If a holder died, who gets `OwnerDied` from
/// `acquire` holds the lock, is to repair what it protects, and calls `make_consistent`; from `with` it
/// comes without the lock.
/// Fairness: none between processes; whoever runs first takes a free lock. Timeouts are in seconds.
/// Cancellation: a task that is cancelled has taken nothing; a wake-up meant for it goes to another
/// sleeper.
#[pyclass(frozen, subclass, weakref, module = "unsnarl.ipc", name = "Lock")]
pub(in crate::ipc) struct IpcLock {
    pub(in crate::ipc) body: Body,
    pub(in crate::ipc) tenure: Tenure,
}

impl Primitive for IpcLock {
    fn body(&self) -> &Body {
        &self.body
    }
}

impl IpcLock {
    fn acquire(&self, py: Python<'_>, patience: Patience) -> PyResult<bool> {
        match self.tenure.acquire(py, &self.body, patience)? {
            Some(Had::Sound) => Ok(true),
            Some(Had::Damaged) => Err(self.tenure.death(py, &self.body, "the lock")),
            None => Ok(false),
        }
    }

    /// Give it back; false if nobody holds it.
    #[inline]
    fn try_release(&self) -> bool {
        let is_held = self.tenure.is_held(&self.body);
        if is_held {
            self.tenure.release(&self.body, 1);
        }
        is_held
    }
}

unsafe extern "C" fn enter(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of IpcLock.
    let this = unsafe { fast::this::<IpcLock>(slf) };
    match this.tenure.try_acquire(&this.body) {
        Some(Had::Sound) => fast::boolean(true),
        attempt => fast::enter(|py| this.enter_slowly(py, attempt).map(fast::boolean)),
    }
}

impl IpcLock {
    /// `with` does not run its block if the owner died, so the lock is given back, still to be repaired.
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
}

unsafe extern "C" fn acquire(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of IpcLock.
    let this = unsafe { fast::this::<IpcLock>(slf) };
    if nargs == 0 && kwnames.is_null() {
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

/// The arguments of `acquire(blocking=True, timeout=-1)`; `block`, None and any negative
/// timeout mean what they mean in multiprocessing, save that -1 waits for ever.
///
/// # Safety
/// The arguments are those CPython passed to the method.
pub(in crate::ipc) unsafe fn patience(
    py: Python<'_>,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> PyResult<Patience> {
    // SAFETY: the caller's promise.
    let [blocking, timeout, block] =
        unsafe { arguments::sort(py, "acquire", ["blocking", "timeout", "block"], args, nargs, kwnames)? };
    let is_blocking = blocking.or(block).map_or(Ok(true), |blocking| blocking.is_truthy())?;
    if !is_blocking {
        return Ok(Patience::None);
    }
    match timeout {
        Some(timeout) if !timeout.is_none() && timeout.extract::<f64>()? != -1.0 => {
            crate::ipc::wait::timeouts::wait_patience(Some(&timeout))
        }
        _ => Ok(Patience::Endless),
    }
}

unsafe extern "C" fn release(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of IpcLock.
    if unsafe { fast::this::<IpcLock>(slf) }.try_release() {
        return fast::none();
    }
    fast::enter(|py| Err(errors::not_held(py, "release unlocked lock")))
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
impl IpcLock {
    #[new]
    #[pyo3(signature = (name=None))]
    fn new(py: Python<'_>, name: Option<&str>) -> PyResult<Self> {
        Ok(Self {
            body: Body::make(py, name, Kind::Lock, 0, 0, |_| {})?,
            tenure: Tenure::default(),
        })
    }

    #[staticmethod]
    fn _inherit(py: Python<'_>, place: Inheritance) -> PyResult<Self> {
        Ok(Self {
            body: Body::inherit(py, place, Kind::Lock)?,
            tenure: Tenure::default(),
        })
    }

    /// Take it for a task: True, or what to sleep on.
    fn _attempt(slf: &Bound<'_, Self>, has_slept: bool) -> PyResult<Py<PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let turn = Turn::of_task(has_slept, false);
        let step = this.tenure.attempt(&this.body, turn);
        Host.end();
        told(py, slf.as_any(), step?, |had| match had {
            Had::Sound => Ok(true.into_pyobject(py)?.to_owned().into_any().unbind()),
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
        self.tenure.describe(py, &self.body)
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

pub(in crate::ipc) const ACQUIRE: &std::ffi::CStr =
    c"Acquire it; with blocking=False or a timeout (seconds), False if that failed. OwnerDied if its owner died: it is held then.";
pub(in crate::ipc) const RELEASE: &std::ffi::CStr = c"Release it; RuntimeError if nobody holds it.";

pub(in crate::ipc) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<IpcLock>();
    fast::install(
        &class,
        &[
            (c"__enter__", ACQUIRE, Method::NoArgs(enter)),
            (c"__exit__", RELEASE, Method::Fast(exit)),
            (c"acquire", ACQUIRE, Method::FastKeywords(acquire)),
            (c"release", RELEASE, Method::NoArgs(release)),
            (c"async_release", RELEASE, Method::NoArgs(release)),
        ],
    )?;
    methods::install::<IpcLock>(&class, &methods::LOCKING)?;
    module.add("IpcLock", class)
}
