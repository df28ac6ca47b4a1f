//! Semaphore and BoundedSemaphore: any number of permits.

use super::arguments::{self, Patience};
use super::blocking::block;
use super::fast::{self, Method};
use super::operation::Operation;
use super::party::Party;
use super::permit_wait::{Acquirable, PermitWait};
use super::ready::done;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::atomic::{AtomicUsize, Ordering};
use unsnarl_sync::Permits;

/// More permits than any program has.
const UNBOUNDED: usize = usize::MAX / 4;

/// A counter of permits for threads, tasks and greenlets.
#[pyclass(frozen, subclass, weakref, module = "unsnarl")]
pub(super) struct Semaphore {
    permits: Permits<Party>,
    bound: AtomicUsize,
}

impl Acquirable for Semaphore {
    fn permits(&self) -> &Permits<Party> {
        &self.permits
    }
    fn taken(&self, _who: usize) {}
    fn put_back(&self) {
        let _ = self.permits.release(1, UNBOUNDED);
    }
}

impl Semaphore {
    fn acquire(slf: &Bound<'_, Self>, patience: Patience) -> PyResult<bool> {
        match patience {
            _ if slf.get().permits.try_acquire() => Ok(true),
            Patience::None => Ok(false),
            _ => {
                let mut wait = PermitWait {
                    object: slf.clone().unbind(),
                    who: 0,
                    silent: false,
                };
                block(slf.py(), &mut wait, patience.deadline())
            }
        }
    }

    fn put_back_many(&self, count: i64) -> PyResult<()> {
        let count = usize::try_from(count)
            .ok()
            .filter(|count| *count >= 1)
            .ok_or_else(|| PyValueError::new_err("n must be one or more"))?;
        self.permits
            .release(count, self.bound.load(Ordering::Relaxed))
            .map_err(|_| PyValueError::new_err("Semaphore released too many times"))
    }

    fn start(&self, value: i64, is_bounded: bool) -> PyResult<()> {
        let value =
            usize::try_from(value).map_err(|_| PyValueError::new_err("semaphore initial value must be >= 0"))?;
        self.permits.reset(value);
        self.bound
            .store(if is_bounded { value } else { UNBOUNDED }, Ordering::Relaxed);
        Ok(())
    }
}

unsafe extern "C" fn enter(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of Semaphore.
    if unsafe { fast::this::<Semaphore>(slf) }.permits.try_acquire() {
        return fast::boolean(true);
    }
    fast::enter(|py| {
        // SAFETY: as above.
        let slf = unsafe { Bound::from_borrowed_ptr(py, slf).cast_into_unchecked::<Semaphore>() };
        Semaphore::acquire(&slf, Patience::Endless).map(fast::boolean)
    })
}

unsafe extern "C" fn acquire(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of Semaphore.
    if nargs == 0 && kwnames.is_null() && unsafe { fast::this::<Semaphore>(slf) }.permits.try_acquire() {
        return fast::boolean(true);
    }
    fast::enter(|py| {
        // SAFETY: the arguments of this call; `slf` as above.
        let ([blocking, timeout], slf) = unsafe {
            (
                arguments::sort(py, "acquire", ["blocking", "timeout"], args, nargs, kwnames)?,
                Bound::from_borrowed_ptr(py, slf).cast_into_unchecked::<Semaphore>(),
            )
        };
        let is_blocking = blocking.map_or(Ok(true), |blocking| blocking.is_truthy())?;
        let patience = arguments::wait_patience(timeout.as_ref())?;
        let patience = match (is_blocking, patience) {
            (true, patience) => patience,
            (false, Patience::Endless) => Patience::None,
            (false, _) => {
                return Err(PyValueError::new_err("can't specify timeout for non-blocking acquire"));
            }
        };
        Semaphore::acquire(&slf, patience).map(fast::boolean)
    })
}

unsafe extern "C" fn release(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of Semaphore.
    let this = unsafe { fast::this::<Semaphore>(slf) };
    if nargs == 0 && kwnames.is_null() && this.permits.release(1, this.bound.load(Ordering::Relaxed)).is_ok() {
        return fast::none();
    }
    fast::enter(|py| {
        // SAFETY: the arguments of this call.
        let [count] = unsafe { arguments::sort(py, "release", ["n"], args, nargs, kwnames)? };
        this.put_back_many(count.map_or(Ok(1), |count| count.extract())?)?;
        Ok(fast::none())
    })
}

unsafe extern "C" fn exit(
    slf: *mut ffi::PyObject,
    _args: *mut *mut ffi::PyObject,
    _nargs: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    // SAFETY: the same contract, without arguments.
    unsafe { release(slf, std::ptr::null(), 0, std::ptr::null_mut()) }
}

unsafe extern "C" fn aenter(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of Semaphore.
    if unsafe { fast::this::<Semaphore>(slf) }.permits.try_acquire() {
        return done();
    }
    fast::enter(|py| {
        // SAFETY: as above.
        let object = unsafe { Bound::from_borrowed_ptr(py, slf).cast_into_unchecked::<Semaphore>() }.unbind();
        Operation::spawn(
            py,
            Box::new(PermitWait {
                object,
                who: 0,
                silent: true,
            }),
            None,
        )
    })
}

unsafe extern "C" fn aexit(
    slf: *mut ffi::PyObject,
    args: *mut *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    // SAFETY: the same contract.
    let released = unsafe { exit(slf, args, nargs) };
    if released.is_null() { released } else { done() }
}

#[pymethods]
impl Semaphore {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "(value=1)")]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            permits: Permits::new(1),
            bound: AtomicUsize::new(UNBOUNDED),
        }
    }

    #[pyo3(signature = (value=1))]
    fn __init__(&self, value: i64) -> PyResult<()> {
        self.start(value, false)
    }

    /// Acquire a permit in a task; False if the timeout (seconds) passed first.
    #[pyo3(signature = (timeout=None))]
    fn async_acquire(slf: Bound<'_, Self>, timeout: Option<Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let wait = PermitWait {
            who: 0,
            object: slf.unbind(),
            silent: false,
        };
        let operation = Operation::spawn(py, Box::new(wait), arguments::task_timeout(timeout.as_ref())?)?;
        // SAFETY: a new reference.
        Ok(unsafe { Bound::from_owned_ptr(py, operation) }.unbind())
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
        let class = slf.get_type();
        Ok(format!(
            "<{}.{} at {:#x}: value={}{bound}>",
            class.module()?,
            class.qualname()?,
            slf.as_ptr() as usize,
            this.value()
        ))
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Err(pyo3::exceptions::PyTypeError::new_err(format!(
            "cannot pickle '{}' object",
            slf.get_type().name()?
        )))
    }
}

/// A semaphore that refuses to be released more often than it was acquired.
#[pyclass(frozen, subclass, weakref, extends = Semaphore, module = "unsnarl")]
pub(super) struct BoundedSemaphore;

#[pymethods]
impl BoundedSemaphore {
    #[new]
    #[pyo3(signature = (*args, **kwargs), text_signature = "(value=1)")]
    fn new(args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyClassInitializer<Self> {
        PyClassInitializer::from(Semaphore::new(args, kwargs)).add_subclass(Self)
    }

    #[pyo3(signature = (value=1))]
    fn __init__(slf: &Bound<'_, Self>, value: i64) -> PyResult<()> {
        slf.as_super().get().start(value, true)
    }
}

const ACQUIRE: &std::ffi::CStr = c"Acquire a permit; with blocking=False or a timeout (seconds), False if that failed.";
const RELEASE: &std::ffi::CStr = c"Give n permits back; ValueError beyond the bound.";

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let methods = [
        (c"__enter__", ACQUIRE, Method::NoArgs(enter)),
        (c"__exit__", RELEASE, Method::Fast(exit)),
        (c"acquire", ACQUIRE, Method::FastKeywords(acquire)),
        (c"green_acquire", ACQUIRE, Method::FastKeywords(acquire)),
        (c"release", RELEASE, Method::FastKeywords(release)),
        (c"green_release", RELEASE, Method::FastKeywords(release)),
        (c"async_release", RELEASE, Method::FastKeywords(release)),
        (c"__aenter__", ACQUIRE, Method::NoArgs(aenter)),
        (c"__aexit__", RELEASE, Method::Fast(aexit)),
    ];
    // CPython calls a method directly only on the very class it was made for.
    for class in [py.get_type::<Semaphore>(), py.get_type::<BoundedSemaphore>()] {
        fast::install(&class, &methods)?;
        module.add(class.name()?, class)?;
    }
    Ok(())
}
