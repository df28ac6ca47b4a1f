//! `unsnarl_cluster._native`: the thin Python side.
//!
//! Never waits with the GIL held. Invariant: a class here holds what its methods need, and decides nothing.

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::client::Client;
use crate::doorbell::Doorbell;
use crate::engine::{Arrival, Command, Request};
use crate::failure::{Failure, Outcome};
use crate::hold::{Hold, Loss};
use crate::name::escape;
use crate::operation::{Answer, Operation};
use crate::port::{Kind, Row};
use crate::target::Target;

/// A failure as Python sees it: the word by which it picks the exception, and the message.
fn failed(failure: &Failure) -> PyErr {
    if failure.kind == crate::failure::Kind::Invalid {
        return PyValueError::new_err(failure.message.clone());
    }
    PyErr::new::<NativeError, _>((failure.kind.word(), failure.message.clone()))
}

pyo3::create_exception!(
    unsnarl_cluster,
    NativeError,
    pyo3::exceptions::PyException,
    "Carry a failure to Python."
);

fn checked<T>(outcome: Outcome<T>) -> PyResult<T> {
    outcome.map_err(|failure| failed(&failure))
}

fn duration(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let Some(seconds) = seconds else { return Ok(None) };
    let bad = || PyValueError::new_err("timeout is a number of seconds that is not negative");
    if seconds.is_nan() {
        return Err(bad()); // which `min` would make a century
    }
    // A century is as good as for ever, and does not overflow.
    Duration::try_from_secs_f64(seconds.min(3.2e9))
        .map(Some)
        .map_err(|_| bad())
}

/// Milliseconds of a ttl; the rules of leases say which they allow.
fn milliseconds(ttl: f64) -> PyResult<u64> {
    let milliseconds = (ttl * 1000.0).round();
    if !(100.0..=86_400_000.0).contains(&milliseconds) {
        return Err(PyValueError::new_err(format!(
            "a lease's ttl is 0.1 to 86400 seconds, not {ttl}"
        )));
    }
    // In range, and whole.
    Ok(milliseconds as u64)
}

fn cell(kind: char, name: &str) -> PyResult<String> {
    Ok(format!("{kind}:{}", checked(escape(name))?))
}

/// One connection to a store.
#[pyclass(name = "Client", frozen, module = "unsnarl_cluster._native")]
struct PyClient(std::mem::ManuallyDrop<Client>);

#[pymethods]
impl PyClient {
    #[new]
    fn new(url: &str, options: Vec<(String, String)>) -> PyResult<Self> {
        let target = checked(Target::parse(url, &options))?;
        checked(Client::start(target))
            .map(std::mem::ManuallyDrop::new)
            .map(Self)
    }

    #[getter]
    fn identity(&self) -> &str {
        &self.0.identity.client
    }

    #[getter]
    fn is_forked(&self) -> bool {
        self.0.is_forked()
    }

    fn connect(&self) -> PyOperation {
        PyOperation(self.0.send(Command::Connect))
    }

    fn close(&self) -> PyOperation {
        PyOperation(self.0.send(Command::Close))
    }

    #[pyo3(signature = (kind, name, ttl, *, is_shared=false, limit=1, progress=None, is_waiting=true, timeout=None))]
    #[allow(clippy::too_many_arguments)] // Python's keyword arguments
    fn acquire(
        &self,
        kind: &str,
        name: &str,
        ttl: f64,
        is_shared: bool,
        limit: u32,
        progress: Option<f64>,
        is_waiting: bool,
        timeout: Option<f64>,
    ) -> PyResult<PyOperation> {
        let kind = Kind::of(kind).ok_or_else(|| PyValueError::new_err("no such kind"))?;
        let progress_ns =
            duration(progress)?.map_or(0, |limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX >> 2));
        let request = Request {
            kind,
            name: checked(escape(name))?,
            is_shared,
            limit,
            ttl_ms: milliseconds(ttl)?,
            progress_ns,
            is_waiting,
            timeout: duration(timeout)?,
        };
        Ok(PyOperation(
            self.0.send(|completer| Command::Acquire(request, completer)),
        ))
    }

    /// Give a hold back that was released.
    fn release(&self, hold: &PyHold) -> PyOperation {
        let hold = Arc::clone(&hold.0);
        PyOperation(self.0.send(|completer| Command::Release(hold, completer)))
    }

    /// Return an operation that is done when a hold is lost, with True, or cannot be any more.
    #[pyo3(signature = (hold, timeout=None))]
    fn watch(&self, hold: &PyHold, timeout: Option<f64>) -> PyResult<PyOperation> {
        let (hold, limit) = (Arc::clone(&hold.0), duration(timeout)?);
        Ok(PyOperation(
            self.0.send(|completer| Command::Watch(hold, limit, completer)),
        ))
    }

    fn is_set(&self, name: &str) -> PyResult<PyOperation> {
        let cell = cell('e', name)?;
        Ok(PyOperation(self.0.send(|completer| Command::IsSet(cell, completer))))
    }

    fn set(&self, name: &str, is_set: bool) -> PyResult<PyOperation> {
        let cell = cell('e', name)?;
        Ok(PyOperation(
            self.0.send(|completer| Command::Set(cell, is_set, completer)),
        ))
    }

    #[pyo3(signature = (name, timeout=None))]
    fn wait(&self, name: &str, timeout: Option<f64>) -> PyResult<PyOperation> {
        let (cell, limit) = (cell('e', name)?, duration(timeout)?);
        Ok(PyOperation(
            self.0.send(|completer| Command::Wait(cell, limit, completer)),
        ))
    }

    #[pyo3(signature = (name, parties, ttl, timeout=None))]
    fn arrive(&self, name: &str, parties: usize, ttl: f64, timeout: Option<f64>) -> PyResult<PyOperation> {
        let (cell, ttl_ms, timeout) = (cell('b', name)?, milliseconds(ttl)?, duration(timeout)?);
        let arrival = Arrival {
            cell,
            parties,
            ttl_ms,
            timeout,
        };
        Ok(PyOperation(
            self.0.send(|completer| Command::Arrive(arrival, completer)),
        ))
    }

    fn break_barrier(&self, name: &str, is_reset: bool) -> PyResult<PyOperation> {
        let cell = cell('b', name)?;
        Ok(PyOperation(
            self.0.send(|completer| Command::Break(cell, is_reset, completer)),
        ))
    }

    fn waiting(&self, name: &str) -> PyResult<PyOperation> {
        let cell = cell('b', name)?;
        Ok(PyOperation(self.0.send(|completer| Command::Waiting(cell, completer))))
    }

    fn list(&self) -> PyOperation {
        PyOperation(self.0.send(Command::List))
    }

    fn remove(&self, kind: &str, name: &str) -> PyResult<PyOperation> {
        let kind = Kind::of(kind).ok_or_else(|| PyValueError::new_err("no such kind"))?;
        let name = checked(escape(name))?;
        Ok(PyOperation(
            self.0.send(|completer| Command::Remove(kind, name, completer)),
        ))
    }

    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = PyDict::new(py);
        for (name, value) in self.0.counts.read() {
            counts.set_item(name, value)?;
        }
        Ok(counts)
    }
}

impl Drop for PyClient {
    fn drop(&mut self) {
        if !self.0.is_forked() {
            // SAFETY: dropped here, once, and not used after that. In a fork it is leaked: the channel's memory is
            // as another thread left it.
            unsafe { std::mem::ManuallyDrop::drop(&mut self.0) };
        }
    }
}

/// A request to the native thread.
#[pyclass(name = "Operation", frozen, module = "unsnarl_cluster._native")]
struct PyOperation(Operation);

#[pymethods]
impl PyOperation {
    /// Wait without the GIL until it is done; signal handlers run meanwhile, and may raise.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        while !py.detach(|| self.0.wait()) {
            py.check_signals()?;
        }
        Ok(())
    }

    #[getter]
    fn is_done(&self) -> bool {
        self.0.is_done()
    }

    /// Return what it has brought; None while it is pending.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.0.outcome() {
            None => Ok(None),
            Some(outcome) => to_python(py, checked(outcome)?),
        }
    }

    /// Give it up, and return the hold that it has brought already.
    fn abandon(&self) -> Option<PyHold> {
        match self.0.abandon() {
            Some(Ok(Answer::Hold(hold))) => Some(PyHold(hold)),
            _ => None,
        }
    }

    /// Have a number rung when it is done; False if it is.
    fn subscribe(&self, bell: &PyDoorbell, number: u64) -> bool {
        self.0.subscribe(Arc::clone(&bell.0), number)
    }
}

fn to_python<'py>(py: Python<'py>, answer: Answer) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(match answer {
        Answer::Nothing => None,
        Answer::Flag(flag) => Some(flag.into_pyobject(py)?.to_owned().into_any()),
        Answer::Number(number) => Some(number.into_pyobject(py)?.into_any()),
        Answer::Hold(hold) => Some(Bound::new(py, PyHold(hold))?.into_any()),
        Answer::Rows(rows) => {
            let rows = rows
                .into_iter()
                .map(|row| row_tuple(py, row))
                .collect::<PyResult<Vec<_>>>()?;
            Some(PyList::new(py, rows)?.into_any())
        }
    })
}

fn row_tuple(py: Python<'_>, row: Row) -> PyResult<Bound<'_, PyTuple>> {
    let Row {
        kind,
        name,
        is_shared,
        fence,
        since_ms,
        host,
        pid,
        ticket,
    } = row;
    (kind, name, is_shared, fence, since_ms, host, pid, ticket).into_pyobject(py)
}

/// One hold, as Python sees it.
#[pyclass(name = "Hold", frozen, module = "unsnarl_cluster._native")]
struct PyHold(Arc<Hold>);

#[pymethods]
impl PyHold {
    #[getter]
    fn fence(&self) -> u64 {
        self.0.fence
    }

    #[getter]
    fn ticket(&self) -> &str {
        &self.0.ticket.id
    }

    /// Return why it is lost, in words; None if it is not.
    fn loss(&self) -> Option<&'static str> {
        self.0.loss().map(Loss::words)
    }

    #[getter]
    fn is_released(&self) -> bool {
        self.0.is_released()
    }

    /// Return how many seconds it is good for without another renewal.
    fn remaining(&self) -> f64 {
        Duration::from_nanos(self.0.remaining_ns()).as_secs_f64()
    }

    fn progress(&self) {
        self.0.progress();
    }

    /// Mark it released; return why it cannot be, in words.
    fn release(&self) -> Option<&'static str> {
        match self.0.release() {
            Ok(()) => None,
            Err(Some(loss)) => Some(loss.words()),
            Err(None) => Some("it was released before"),
        }
    }
}

/// The wake-up of an event loop.
#[pyclass(name = "Doorbell", frozen, module = "unsnarl_cluster._native")]
struct PyDoorbell(Arc<Doorbell>);

#[pymethods]
impl PyDoorbell {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Self(Arc::new(Doorbell::new()?)))
    }

    fn fileno(&self) -> i32 {
        self.0.raw_fd()
    }

    /// Return the numbers that were rung.
    fn drain(&self) -> Vec<u64> {
        self.0.drain()
    }
}

/// Raise `ValueError` for a ttl that no lease can have.
#[pyfunction]
fn check_ttl(ttl: f64) -> PyResult<()> {
    milliseconds(ttl).map(drop)
}

/// Wait until all connections that nothing refers to any more have given back what they had, for up to `limit` seconds.
#[pyfunction]
fn wait_for_the_end(py: Python<'_>, limit: f64) -> PyResult<()> {
    let limit = duration(Some(limit))?.unwrap_or_default();
    py.detach(|| crate::client::wait_for_the_end(limit));
    Ok(())
}

/// Primitives between machines: the native part of unsnarl_cluster.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("NativeError", module.py().get_type::<NativeError>())?;
    module.add_function(wrap_pyfunction!(check_ttl, module)?)?;
    module.add_function(wrap_pyfunction!(wait_for_the_end, module)?)?;
    module.add_class::<PyClient>()?;
    module.add_class::<PyOperation>()?;
    module.add_class::<PyHold>()?;
    module.add_class::<PyDoorbell>()
}
