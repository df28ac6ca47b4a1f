//! Semaphore and BoundedSemaphore: any number of permits, without owners.
//!
//! Invariant: a release never makes more than `bound` permits free; a semaphore without a bound has [`UNBOUNDED`].

use super::acquirable::Acquirable;
use super::calls;
use crate::sync::calls::arguments::{self, Timeout};
use crate::sync::calls::description;
use crate::sync::calls::fast::{self, Method};
use crate::sync::wait::party::Party;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::type_object::PyTypeInfo;
use pyo3::types::{PyDict, PyTuple};
use std::sync::atomic::{AtomicUsize, Ordering};
use unsnarl_sync::Permits;

/// The bound of a semaphore without one: as many permits as can be counted.
const UNBOUNDED: usize = i64::MAX as usize;

/// A counter of permits for threads, tasks and greenlets.
///
/// `acquire` takes one permit, `release(n)` returns n; `value` is the number of free permits, and `max_value`
/// the most that there may be. `ValueError` for a negative initial value, for n below one and for a release
/// beyond `max_value`.
/// Fairness: as `Lock`.
/// Cancellation: as `Lock`.
#[pyclass(frozen, subclass, weakref, module = "unsnarl")]
pub(in crate::sync) struct Semaphore {
    permits: Permits<Party>,
    bound: AtomicUsize,
}

impl Acquirable for Semaphore {
    const KNOWS_TASKS: bool = false;
    const TASKS_OWN: bool = false;
    const TRIES_FIRST: bool = true;
    const ACQUIRE: &'static std::ffi::CStr = c"($self, /, blocking=True, timeout=None)\n--\n\nAcquire; with blocking=False or a timeout (seconds), False if that failed.";

    fn permits(&self) -> &Permits<Party> {
        &self.permits
    }
    fn taken(&self, _who: usize) {}
    fn put_back(&self) {
        let _ = self.permits.release(1, UNBOUNDED);
    }
    #[inline]
    fn try_take(&self, _py: Python<'_>) -> bool {
        self.permits.try_acquire()
    }
    #[inline]
    fn try_release(&self, _py: Python<'_>) -> bool {
        let bound = self.bound.load(Ordering::Relaxed);
        self.permits.release(1, bound).is_ok() || bound == UNBOUNDED
    }
    #[inline]
    fn exits_by_name(py: Python<'_>, class: *mut ffi::PyTypeObject) -> bool {
        class != Semaphore::type_object_raw(py) && class != BoundedSemaphore::type_object_raw(py)
    }
    fn not_held() -> PyErr {
        PyValueError::new_err("Semaphore released too many times")
    }
    fn timeout(blocking: Option<&Bound<'_, PyAny>>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<Timeout> {
        let is_blocking = blocking.map_or(Ok(true), |blocking| blocking.is_truthy())?;
        match (is_blocking, arguments::wait_timeout(timeout)?) {
            (true, timeout) => Ok(timeout),
            (false, Timeout::Endless) => Ok(Timeout::None),
            (false, _) => Err(PyValueError::new_err("can't specify timeout for non-blocking acquire")),
        }
    }
}

impl Semaphore {
    fn put_back_many(&self, count: i64) -> PyResult<()> {
        let count = usize::try_from(count)
            .ok()
            .filter(|count| *count >= 1)
            .ok_or_else(|| PyValueError::new_err("n must be one or more"))?;
        let bound = self.bound.load(Ordering::Relaxed);
        let mut released = self.permits.release(count, bound);
        // Up to the last permit that can be counted; once more if other parties release meanwhile.
        while released.is_err() && bound == UNBOUNDED {
            released = self.permits.release(count.min(UNBOUNDED - self.value()), bound);
        }
        released.map_err(|_| Self::not_held())
    }

    fn start(&self, value: i64, bound: Option<i64>) -> PyResult<()> {
        let value =
            usize::try_from(value).map_err(|_| PyValueError::new_err("semaphore initial value must be >= 0"))?;
        let bound = match bound.map(usize::try_from) {
            None => UNBOUNDED,
            Some(Ok(bound)) if bound >= value => bound,
            Some(_) => return Err(PyValueError::new_err("max_value must be >= the initial value")),
        };
        self.bound.store(bound, Ordering::Relaxed);
        self.permits.restart(value);
        Ok(())
    }
}

unsafe extern "C" fn release(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of Semaphore.
    let this = unsafe { fast::this::<Semaphore>(slf) };
    // SAFETY: attached, as every method is.
    if nargs == 0 && kwnames.is_null() && this.try_release(unsafe { Python::assume_attached() }) {
        return fast::none();
    }
    fast::enter(|py| {
        // SAFETY: the arguments of this call.
        let [count] = unsafe { arguments::sort(py, "release", ["n"], args, nargs, kwnames)? };
        this.put_back_many(count.map_or(Ok(1), |count| arguments::count(&count))?)?;
        Ok(fast::none())
    })
}

#[pymethods]
impl Semaphore {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "(value=1, max_value=None)")]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            permits: Permits::new(1),
            bound: AtomicUsize::new(UNBOUNDED),
        }
    }

    #[pyo3(signature = (value=1, max_value=None))]
    fn __init__(
        &self,
        #[pyo3(from_py_with = arguments::count)] value: i64,
        #[pyo3(from_py_with = arguments::perhaps_count)] max_value: Option<i64>,
    ) -> PyResult<()> {
        self.start(value, max_value)
    }

    /// Tell whether no permit is free.
    fn locked(&self) -> bool {
        self.permits.free() == 0
    }

    /// Free permits.
    #[getter]
    fn value(&self) -> usize {
        self.permits.free()
    }

    #[getter]
    fn _value(&self) -> usize {
        self.permits.free()
    }

    /// How many parties wait.
    #[getter]
    fn waiting(&self) -> usize {
        self.permits.waiting()
    }

    /// Describe the semaphore's state.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = PyDict::new(py);
        statistics.set_item("value", self.value())?;
        statistics.set_item("waiting", self.waiting())?;
        Ok(statistics)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        let bound = this.bound.load(Ordering::Relaxed);
        let bound = if bound == UNBOUNDED {
            String::new()
        } else {
            format!("/{bound}")
        };
        description::with_state(slf, format_args!("value={}{bound}", this.value()))
    }
}

/// A semaphore that refuses to be released more often than it was acquired.
///
/// The bound is `max_value` or else the initial value: a release beyond it raises `ValueError`.
/// Fairness and cancellation: as `Lock`.
#[pyclass(frozen, subclass, weakref, extends = Semaphore, module = "unsnarl")]
pub(in crate::sync) struct BoundedSemaphore;

#[pymethods]
impl BoundedSemaphore {
    #[new]
    #[pyo3(signature = (*args, **kwargs), text_signature = "(value=1, max_value=None)")]
    fn new(args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyClassInitializer<Self> {
        PyClassInitializer::from(Semaphore::new(args, kwargs)).add_subclass(Self)
    }

    #[pyo3(signature = (value=1, max_value=None))]
    fn __init__(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = arguments::count)] value: i64,
        #[pyo3(from_py_with = arguments::perhaps_count)] max_value: Option<i64>,
    ) -> PyResult<()> {
        slf.as_super().get().start(value, Some(max_value.unwrap_or(value)))
    }

    /// The bound, by the standard library's name; a larger one lets more releases through.
    #[getter]
    fn _initial_value(slf: &Bound<'_, Self>) -> usize {
        slf.as_super().get().bound.load(Ordering::Relaxed)
    }

    #[setter(_initial_value)]
    fn set_initial_value(slf: &Bound<'_, Self>, #[pyo3(from_py_with = arguments::count)] bound: i64) {
        let bound = usize::try_from(bound).unwrap_or(0);
        slf.as_super().get().bound.store(bound, Ordering::Relaxed);
    }
}

const RELEASE: &std::ffi::CStr = c"($self, /, n=1)\n--\n\nGive n permits back; ValueError beyond the bound.";

pub(in crate::sync) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    // CPython calls a method directly only on the class that the method was made for.
    for class in [py.get_type::<Semaphore>(), py.get_type::<BoundedSemaphore>()] {
        fast::install(&class, &calls::methods::<Semaphore>())?;
        let releases =
            [c"release", c"green_release", c"async_release"].map(|name| (name, RELEASE, Method::FastKeywords(release)));
        fast::install(&class, &releases)?;
        description::refuse_copies(&class)?;
        module.add(class.name()?, class)?;
    }
    Ok(())
}
