//! CountdownEvent and Latch: gates that are open while a count is zero.
//!
//! Must never: wake a waiter with the count's mutex held.
//!
//! Invariant: the gate is open exactly while the count is zero: it is opened and closed with the count's
//! mutex held.

use super::calls::arguments;
use super::calls::description;
use super::event::{GateWait, Gated, pass, pass_async};
use super::wait::gil;
use super::wait::operation::Operation;
use super::wait::party::Party;
use super::wait::protocol::Wait;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::{Mutex, MutexGuard, PoisonError};
use unsnarl_sync::{Arc, Gate, Waiter};

/// An event that is set while its count is zero; up() raises the count, down() lowers it.
///
/// `ValueError` for a count below zero.
/// Fairness and cancellation: as `Event`. Timeouts are in seconds.
#[pyclass(frozen, subclass, weakref, module = "unsnarl")]
pub(in crate::sync) struct CountdownEvent {
    gate: Gate<Party>,
    count: Mutex<usize>,
}

impl Gated for CountdownEvent {
    fn gate(&self) -> &Gate<Party> {
        &self.gate
    }
}

impl CountdownEvent {
    fn count(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn starting_at(value: usize) -> Self {
        Self {
            gate: Gate::new(value == 0),
            count: Mutex::new(value),
        }
    }

    /// Restart from this count.
    fn start(&self, value: usize) {
        let opening = {
            let mut count = self.count();
            *count = value;
            if value > 0 {
                self.gate.close();
            }
            (value == 0).then(|| self.gate.unlock(gil::fan_out()))
        };
        if let Some(opening) = opening {
            opening.finish();
        }
    }

    fn lower(&self, number: usize) -> PyResult<()> {
        let opening = {
            let mut count = self.count();
            *count = count
                .checked_sub(number)
                .ok_or_else(|| PyValueError::new_err("down() called too many times: the count would be negative"))?;
            (*count == 0).then(|| self.gate.unlock(gil::fan_out()))
        };
        if let Some(opening) = opening {
            opening.finish();
        }
        Ok(())
    }
}

/// A task's arrival at a latch, and its wait for the others.
struct ArriveWait {
    has_arrived: bool,
    gate: GateWait<CountdownEvent>,
}

impl Wait for ArriveWait {
    fn attempt(&mut self, py: Python<'_>) -> PyResult<bool> {
        if !std::mem::replace(&mut self.has_arrived, true) {
            self.gate.object.get().lower(1)?;
        }
        self.gate.attempt(py)
    }
    fn begin(&mut self, py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        self.gate.begin(py, waiter)
    }
    fn cancel(&mut self, py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        self.gate.cancel(py, waiter)
    }
    fn object(&self) -> usize {
        self.gate.object()
    }
    fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        self.gate.traverse(visit)
    }
}

fn positive(number: i64) -> PyResult<usize> {
    usize::try_from(number)
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| PyValueError::new_err("count must be >= 1"))
}

#[pymethods]
impl CountdownEvent {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "(value=0)")]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self::starting_at(0)
    }

    #[pyo3(signature = (value=0))]
    fn __init__(&self, value: i64) -> PyResult<()> {
        let value = usize::try_from(value).map_err(|_| PyValueError::new_err("initial value must be >= 0"))?;
        self.start(value);
        Ok(())
    }

    /// Raise the count: a party that waits from now on waits until it is zero again.
    #[pyo3(signature = (count=1))]
    fn up(&self, count: i64) -> PyResult<()> {
        let number = positive(count)?;
        let mut count = self.count();
        *count += number;
        self.gate.close();
        Ok(())
    }

    /// Lower the count; at zero, every waiting party is released. ValueError below zero.
    #[pyo3(signature = (count=1))]
    fn down(&self, count: i64) -> PyResult<()> {
        self.lower(positive(count)?)
    }

    /// Set the count to zero.
    fn clear(&self) {
        self.start(0);
    }

    /// The count.
    #[getter]
    fn value(&self) -> usize {
        *self.count()
    }

    /// Tell whether the count is zero.
    fn is_set(&self) -> bool {
        self.gate.is_open()
    }

    /// Wait until the count is zero; False if the timeout (seconds) passed first.
    #[pyo3(signature = (timeout=None))]
    fn wait(slf: &Bound<'_, Self>, timeout: Option<Bound<'_, PyAny>>) -> PyResult<bool> {
        pass(slf, arguments::wait_timeout(timeout.as_ref())?)
    }

    /// Wait in a task until the count is zero; False if the timeout (seconds) passed first.
    #[pyo3(signature = (timeout=None))]
    fn async_wait(slf: Bound<'_, Self>, timeout: Option<Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        pass_async(slf, timeout.as_ref())
    }

    fn __await__(slf: Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        pass_async(slf, None)
    }

    /// How many parties wait.
    #[getter]
    fn waiting(&self) -> usize {
        self.gate.waiting()
    }

    /// Describe the state.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = PyDict::new(py);
        statistics.set_item("value", self.value())?;
        statistics.set_item("waiting", self.waiting())?;
        Ok(statistics)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        description::with_state(slf, format_args!("value={}", slf.get().value()))
    }
}

/// A gate that opens for good when count_down() was called often enough.
///
/// The count does not go up again: `up` raises `TypeError`; a count below zero is a `ValueError`. Fairness
/// and cancellation: as `Event`. Timeouts are in seconds.
#[pyclass(frozen, subclass, weakref, extends = CountdownEvent, module = "unsnarl")]
pub(in crate::sync) struct Latch;

#[pymethods]
impl Latch {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "(count=1)")]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyClassInitializer<Self> {
        PyClassInitializer::from(CountdownEvent::starting_at(1)).add_subclass(Self)
    }

    #[pyo3(signature = (count=1))]
    fn __init__(slf: &Bound<'_, Self>, count: i64) -> PyResult<()> {
        slf.as_super().get().start(positive(count)?);
        Ok(())
    }

    /// Lower the count without waiting; ValueError below zero.
    #[pyo3(signature = (count=1))]
    fn count_down(slf: &Bound<'_, Self>, count: i64) -> PyResult<()> {
        slf.as_super().get().lower(positive(count)?)
    }

    /// Lower the count and wait for the other parties; False if the timeout (seconds) passed first.
    #[pyo3(signature = (timeout=None))]
    fn arrive_and_wait(slf: &Bound<'_, Self>, timeout: Option<Bound<'_, PyAny>>) -> PyResult<bool> {
        slf.as_super().get().lower(1)?;
        pass(slf.as_super(), arguments::wait_timeout(timeout.as_ref())?)
    }

    /// Lower the count when this is awaited, and wait in a task for the others; False if the timeout
    /// (seconds) passed first. A cancelled party has arrived all the same.
    #[pyo3(signature = (timeout=None))]
    fn async_arrive_and_wait(slf: Bound<'_, Self>, timeout: Option<Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        let timeout = arguments::task_timeout(timeout.as_ref())?;
        let py = slf.py();
        let wait = ArriveWait {
            has_arrived: false,
            gate: GateWait {
                object: slf.into_super().unbind(),
            },
        };
        Operation::of(py, wait, timeout)
    }

    /// A latch does not go up again.
    #[pyo3(signature = (count=1))]
    fn up(&self, count: i64) -> PyResult<()> {
        let _ = count;
        Err(pyo3::exceptions::PyTypeError::new_err(
            "a Latch only counts down; use CountdownEvent",
        ))
    }
}

pub(in crate::sync) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<CountdownEvent>();
    class.setattr("green_wait", class.getattr("wait")?)?;
    module.add("CountdownEvent", class)?;
    module.add_class::<Latch>()
}
