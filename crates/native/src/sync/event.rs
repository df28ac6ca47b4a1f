//! Event: a flag that parties wait for, and the wait for any [`Gate`].
//!
//! Must never: take anything on behalf of a waiter, so that nothing can be lost with one.
//!
//! Invariant: `set` releases exactly the parties that wait at that moment.

use super::calls::arguments::{self, Timeout};
use super::calls::description;
use super::calls::fast::{self, Method};
use super::calls::ready::yes;
use super::wait::blocking::block;
use super::wait::gil;
use super::wait::operation::Operation;
use super::wait::party::Party;
use super::wait::protocol::Wait;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use unsnarl_sync::{Arc, Gate, Waiter};

/// A class whose core is a [`Gate`].
pub(in crate::sync) trait Gated: pyo3::PyClass<Frozen = True> + Sync + Send {
    /// The core.
    fn gate(&self) -> &Gate<Party>;
}

/// The wait for a gate to open.
pub(in crate::sync) struct GateWait<T> {
    pub(in crate::sync) object: Py<T>,
}

impl<T: Gated> Wait for GateWait<T> {
    fn attempt(&mut self, _py: Python<'_>) -> PyResult<bool> {
        Ok(self.object.get().gate().is_open())
    }
    fn begin(&mut self, _py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        Ok(self.object.get().gate().begin(waiter))
    }
    fn cancel(&mut self, _py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        Ok(self.object.get().gate().cancel(waiter))
    }
    fn object(&self) -> usize {
        self.object.as_ptr() as usize
    }
    fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.object)
    }
}

/// Wait for the gate in a thread or a greenlet.
pub(in crate::sync) fn pass<T: Gated>(slf: &Bound<'_, T>, timeout: Timeout) -> PyResult<bool> {
    match timeout {
        _ if slf.get().gate().is_open() => Ok(true),
        Timeout::None => Ok(false),
        _ => block(
            slf.py(),
            &mut GateWait {
                object: slf.clone().unbind(),
            },
            timeout.deadline(),
        ),
    }
}

/// Wait for the gate in a task.
pub(in crate::sync) fn pass_async<T: Gated>(
    slf: Bound<'_, T>,
    timeout: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    if slf.get().gate().is_open() {
        arguments::task_timeout(timeout)?;
        // SAFETY: a new reference.
        return Ok(unsafe { Bound::from_owned_ptr(py, yes()) }.unbind());
    }
    let wait = GateWait { object: slf.unbind() };
    Operation::of(py, wait, arguments::task_timeout(timeout)?)
}

/// A flag that threads, tasks and greenlets can wait for.
///
/// Fairness: `set` releases every party that waits at that moment, even if `clear` follows immediately.
/// Threads are woken in a cascade, four at once; all at once where there is no GIL.
/// Cancellation: nothing is taken, so nothing can be lost. Timeouts are in seconds.
#[pyclass(frozen, subclass, weakref, module = "unsnarl")]
pub(in crate::sync) struct Event {
    gate: Gate<Party>,
    condition: PyOnceLock<Py<PyAny>>,
}

impl Gated for Event {
    fn gate(&self) -> &Gate<Party> {
        &self.gate
    }
}

unsafe extern "C" fn set(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of Event.
    unsafe { fast::this::<Event>(slf) }.gate.open(gil::fan_out());
    fast::none()
}

unsafe extern "C" fn clear(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of Event.
    unsafe { fast::this::<Event>(slf) }.gate.close();
    fast::none()
}

unsafe extern "C" fn is_set(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of Event.
    fast::boolean(unsafe { fast::this::<Event>(slf) }.gate.is_open())
}

unsafe extern "C" fn wait(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of Event.
    if unsafe { fast::this::<Event>(slf) }.gate.is_open() {
        return fast::boolean(true);
    }
    fast::enter(|py| {
        // SAFETY: the arguments of this call; `slf` as above.
        let ([timeout], slf) = unsafe {
            (
                arguments::sort(py, "wait", ["timeout"], args, nargs, kwnames)?,
                Bound::from_borrowed_ptr(py, slf).cast_into_unchecked::<Event>(),
            )
        };
        pass(&slf, arguments::wait_timeout(timeout.as_ref())?).map(fast::boolean)
    })
}

unsafe extern "C" fn async_wait(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of Event.
    if nargs == 0 && kwnames.is_null() && unsafe { fast::this::<Event>(slf) }.gate.is_open() {
        return yes();
    }
    fast::enter(|py| {
        // SAFETY: the arguments of this call; `slf` as above.
        let ([timeout], slf) = unsafe {
            (
                arguments::sort(py, "async_wait", ["timeout"], args, nargs, kwnames)?,
                Bound::from_borrowed_ptr(py, slf).cast_into_unchecked::<Event>(),
            )
        };
        Ok(pass_async(slf, timeout.as_ref())?.into_ptr())
    })
}

/// `await event`
unsafe extern "C" fn awaited(slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a slot of Event, no arguments.
    unsafe { async_wait(slf, std::ptr::null(), 0, std::ptr::null_mut()) }
}

#[pymethods]
impl Event {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "()")]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            gate: Gate::new(false),
            condition: PyOnceLock::new(),
        }
    }

    /// Unset the event if called again; parties that wait continue to wait.
    #[pyo3(signature = ())]
    fn __init__(&self) {
        self.gate.close();
    }

    fn __await__(slf: Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        pass_async(slf, None)
    }

    /// Deprecated name of `is_set`.
    #[allow(non_snake_case)]
    fn isSet(&self, py: Python<'_>) -> PyResult<bool> {
        arguments::deprecated(py, c"isSet() is deprecated, use is_set() instead")?;
        Ok(self.gate.is_open())
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// How many parties wait.
    #[getter]
    fn waiting(&self) -> usize {
        self.gate.waiting()
    }

    /// Describe the event's state.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = PyDict::new(py);
        statistics.set_item("set", self.gate.is_open())?;
        statistics.set_item("waiting", self.waiting())?;
        Ok(statistics)
    }

    fn _at_fork_reinit(&self) {
        self.gate.reset();
    }

    /// A condition for programs that use the standard library's private attribute; unused here.
    #[getter]
    fn _cond(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let make = || -> PyResult<Py<PyAny>> {
            let lock = py.get_type::<super::permit::lock::Lock>().call0()?;
            Ok(py
                .get_type::<super::condition::state::Condition>()
                .call1((lock,))?
                .unbind())
        };
        self.condition
            .get_or_try_init(py, make)
            .map(|condition| condition.clone_ref(py))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        description::with_state(slf, if slf.get().gate.is_open() { "set" } else { "unset" })
    }
}

pub(in crate::sync) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<Event>();
    const WAIT: &std::ffi::CStr =
        c"($self, /, timeout=None)\n--\n\nWait until the event is set; False if the timeout (seconds) passed first.";
    const ASYNC_WAIT: &std::ffi::CStr =
        c"($self, /, timeout=None)\n--\n\nWait in a task until the event is set; False if the timeout (seconds) passed first.";
    fast::install(
        &class,
        &[
            (
                c"set",
                c"Set the event and release every party that waits.",
                Method::NoArgs(set),
            ),
            (c"clear", c"Unset the event.", Method::NoArgs(clear)),
            (c"is_set", c"Tell whether the event is set.", Method::NoArgs(is_set)),
            (c"wait", WAIT, Method::FastKeywords(wait)),
            (c"green_wait", WAIT, Method::FastKeywords(wait)),
            (c"async_wait", ASYNC_WAIT, Method::FastKeywords(async_wait)),
        ],
    )?;
    description::refuse_copies(&class)?;
    // SAFETY: a heap type of this module, not yet visible to any other thread; PyO3 filled
    // the slot for `__await__`, ours has the same contract.
    unsafe {
        if let Some(slots) = (*class.as_type_ptr()).tp_as_async.as_mut() {
            slots.am_await = Some(awaited);
        }
    }
    module.add("Event", class)
}
