//! CountdownEvent: an event that is set while its count is zero.

use super::methods::{self, Primitive};
use super::segment::{Body, Inheritance};
use super::wait::{self, Watch, task_outcome, yes};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use unsnarl_ipc::{CountdownWords, Kind};
use unsnarl_shm::{Host, Mapping};

/// An event between processes that is set while its count is zero.
///
/// `up` raises the count, `down` lowers it. `ValueError` for a count below zero or beyond 32 bits.
/// Fairness: at zero all waiters continue.
/// Cancellation: nothing is taken. Timeouts are in seconds.
#[pyclass(frozen, subclass, weakref, module = "unsnarl.ipc", name = "CountdownEvent")]
pub(super) struct IpcCountdownEvent {
    body: Body,
}

impl Primitive for IpcCountdownEvent {
    fn body(&self) -> &Body {
        &self.body
    }
}

fn words(mapping: &Mapping) -> &CountdownWords {
    // SAFETY: atomics alone.
    unsafe { mapping.state() }
}

fn positive(count: i64) -> PyResult<u32> {
    u32::try_from(count)
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| PyValueError::new_err("count must be one or more"))
}

impl IpcCountdownEvent {
    fn words(&self) -> &CountdownWords {
        words(&self.body.segment.mapping)
    }
}

#[pymethods]
impl IpcCountdownEvent {
    #[new]
    #[pyo3(signature = (value=0, name=None))]
    fn new(py: Python<'_>, value: i64, name: Option<&str>) -> PyResult<Self> {
        let value =
            u32::try_from(value).map_err(|_| PyValueError::new_err("value must be >= 0 and fit into 32 bits"))?;
        let start = |mapping: &Mapping| words(mapping).start(value);
        let body = Body::make(py, name, Kind::CountdownEvent, u64::from(value), 0, start)?;
        Ok(Self { body })
    }

    #[staticmethod]
    fn _inherit(py: Python<'_>, allocation: Inheritance) -> PyResult<Self> {
        let body = Body::inherit(py, allocation, Kind::CountdownEvent)?;
        Ok(Self { body })
    }

    /// Raise the count.
    #[pyo3(signature = (count=1))]
    fn up(&self, count: i64) -> PyResult<()> {
        if self.words().up(positive(count)?) {
            return Ok(());
        }
        Err(PyValueError::new_err("the count does not fit into 32 bits"))
    }

    /// Lower the count; ValueError if the count is smaller.
    #[pyo3(signature = (count=1))]
    fn down(&self, count: i64) -> PyResult<()> {
        if self.words().down(positive(count)?, &Host) {
            return Ok(());
        }
        Err(PyValueError::new_err("the count cannot go below zero"))
    }

    /// Make the count zero.
    fn clear(&self) {
        self.words().clear(&Host);
    }

    /// The count.
    #[getter]
    fn value(&self) -> u32 {
        self.words().value()
    }

    /// Tell whether the count is zero.
    fn is_set(&self) -> bool {
        self.value() == 0
    }

    /// Wait until the count is zero; False if the timeout (seconds) passed first.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<Bound<'_, PyAny>>) -> PyResult<bool> {
        let words = self.words();
        let timeout = wait::timeouts::wait_timeout(timeout.as_ref())?;
        let is_ready = || words.value() == 0;
        let outcome = wait::block(py, timeout, Some(&self.body.spin), Watch::Kernel, &is_ready, |_| {
            Ok(words.wait())
        });
        outcome.map(|done| done.is_some())
    }

    fn _attempt(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        task_outcome(py, slf.as_any(), slf.get().words().wait(), |()| yes(py))
    }

    /// Describe the event's state.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = self.body.describe(py)?;
        statistics.set_item("value", self.value())?;
        Ok(statistics)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        Ok(format!(
            "<unsnarl.ipc.{}{}: value={}>",
            slf.get_type().name()?,
            this.body.label(),
            this.value()
        ))
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<IpcCountdownEvent>();
    methods::install::<IpcCountdownEvent>(&class, &methods::waiting(methods::wait_countdown))?;
    module.add("IpcCountdownEvent", class)
}
