//! Event: a flag that threads and tasks of any processes wait for.

use super::methods::{self, Primitive};
use super::segment::{Body, Inheritance};
use super::wait::{self, Watch, task_outcome, yes};
use crate::sync::calls::arguments::Timeout;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use unsnarl_ipc::{EventWords, Kind};
use unsnarl_shm::Host;

/// A flag between processes.
///
/// Fairness: `set` lets all current waiters continue, even if `clear` follows immediately.
/// Cancellation: nothing is taken, so nothing can be lost. Timeouts are in seconds.
#[pyclass(frozen, subclass, weakref, module = "unsnarl.ipc", name = "Event")]
pub(super) struct IpcEvent {
    body: Body,
}

impl Primitive for IpcEvent {
    fn body(&self) -> &Body {
        &self.body
    }
}

impl IpcEvent {
    fn words(&self) -> &EventWords {
        // SAFETY: atomics alone.
        unsafe { self.body.segment.mapping.state() }
    }
}

#[pymethods]
impl IpcEvent {
    #[new]
    #[pyo3(signature = (name=None))]
    fn new(py: Python<'_>, name: Option<&str>) -> PyResult<Self> {
        let body = Body::make(py, name, Kind::Event, 0, 0, |_| {})?;
        Ok(Self { body })
    }

    #[staticmethod]
    fn _inherit(py: Python<'_>, allocation: Inheritance) -> PyResult<Self> {
        let body = Body::inherit(py, allocation, Kind::Event)?;
        Ok(Self { body })
    }

    /// Set the event; all waiters continue.
    fn set(&self) {
        self.words().set(&Host);
    }

    /// Clear the event.
    fn clear(&self) {
        self.words().clear();
    }

    /// Tell whether the event is set.
    fn is_set(&self) -> bool {
        self.words().is_set()
    }

    fn __bool__(&self) -> bool {
        self.is_set()
    }

    /// Wait until the event is set; False if the timeout (seconds) passed first.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<Bound<'_, PyAny>>) -> PyResult<bool> {
        let words = self.words();
        if words.is_set() {
            return Ok(true);
        }
        let timeout = wait::timeouts::wait_timeout(timeout.as_ref())?;
        if matches!(timeout, Timeout::None) {
            return Ok(false);
        }
        let arrival = words.arrive();
        let is_ready = || words.is_set();
        let outcome = wait::block(py, timeout, Some(&self.body.spin), Watch::Kernel, &is_ready, |_| {
            Ok(words.wait(arrival))
        });
        outcome.map(|done| done.is_some())
    }

    fn _arrive(&self) -> u32 {
        self.words().arrive()
    }

    fn _attempt(slf: &Bound<'_, Self>, arrival: u32) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        task_outcome(py, slf.as_any(), slf.get().words().wait(arrival), |()| yes(py))
    }

    /// Describe the event's state.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = self.body.describe(py)?;
        statistics.set_item("set", self.is_set())?;
        statistics.set_item("waiting", self.words().has_sleepers())?;
        Ok(statistics)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        let state = if this.is_set() { "set" } else { "unset" };
        let class = slf.get_type();
        // Without a name as multiprocessing prints its own, which says as much.
        Ok(match this.body.segment.name() {
            Some(name) => format!("<unsnarl.ipc.{} {name:?}: {state}>", class.name()?),
            None => format!("<{} at {:#x} {state}>", class.qualname()?, slf.as_ptr() as usize),
        })
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<IpcEvent>();
    methods::install::<IpcEvent>(&class, &methods::waiting(methods::wait_event))?;
    module.add("IpcEvent", class)
}
