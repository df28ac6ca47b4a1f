//! Barrier: a meeting point for a fixed number of parties in any processes.
//!
//! Invariant: a party that leaves early breaks the barrier.

use super::methods::{self, Primitive};
use super::segment::errors;
use super::segment::{Body, Inheritance};
use super::wait::{self, WaitRound, Watch, task_outcome, yes};
use crate::sync::calls::arguments::Timeout;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use unsnarl_ipc::{Account, Arrival, BarrierWords, Kind, Step};
use unsnarl_shm::Host;

/// A meeting point between processes.
///
/// `wait` returns the order of arrival, from 0. The last party runs the action; if the action raises, the barrier
/// breaks. `ValueError` for fewer than one party.
/// Fairness: all parties of a round continue together.
/// Cancellation: a party that is cancelled, interrupted, out of time (seconds) or dead breaks the barrier: all
/// parties get `threading.BrokenBarrierError` until `reset`; `statistics` names a dead process.
#[pyclass(frozen, subclass, weakref, module = "unsnarl.ipc", name = "Barrier")]
pub(super) struct IpcBarrier {
    body: Body,
    parties: u32,
    action: Option<Py<PyAny>>,
    timeout: Option<Py<PyAny>>,
}

impl Primitive for IpcBarrier {
    fn body(&self) -> &Body {
        &self.body
    }
}

impl IpcBarrier {
    fn of(body: Body, action: Option<Py<PyAny>>, timeout: Option<Py<PyAny>>) -> Self {
        Self {
            parties: body.segment.header.parameter as u32,
            body,
            action,
            timeout,
        }
    }

    fn words(&self) -> &BarrierWords {
        // SAFETY: atomics alone.
        unsafe { self.body.segment.mapping.state() }
    }

    fn accounts(&self) -> &[Account] {
        // SAFETY: atomics alone, 16 bytes.
        unsafe { self.body.segment.mapping.table() }
    }

    fn numbered(&self, account: Option<usize>) -> Option<&Account> {
        account.and_then(|number| self.accounts().get(number))
    }

    /// Runs the action as the last party, then lets all parties through.
    fn complete(&self, py: Python<'_>, round: u32) -> PyResult<()> {
        if let Some(action) = &self.action
            && let Err(error) = action.call0(py)
        {
            self.words().abort(Some(round), &Host);
            return Err(error);
        }
        if self.words().trip(round, &Host) {
            return Ok(());
        }
        Err(errors::broken_barrier(py))
    }

    fn attempt(&self, round: u32, account: Option<&Account>, is_recheck: bool) -> Step<'_, bool> {
        if is_recheck && BarrierWords::casualty(self.accounts(), account, &Host).is_some() {
            self.words().abort(Some(round), &Host);
        }
        self.words().wait(round)
    }

    /// Arrives, if necessary after the previous, complete round has ended.
    fn arrive(&self, py: Python<'_>, timeout: Timeout, account: Option<&Account>) -> PyResult<Arrival> {
        loop {
            match self.words().arrive(self.parties) {
                Arrival::Full => {}
                arrival => return Ok(arrival),
            }
            let ended = wait::block(py, timeout, None, Watch::Own, &|| true, |round| {
                if round.is_recheck && BarrierWords::casualty(self.accounts(), account, &Host).is_some() {
                    self.words().abort(None, &Host);
                }
                Ok(self.words().wait_until_idle(self.parties))
            })?;
            if ended.is_none() {
                self.words().abort(None, &Host);
            }
        }
    }

    fn meet(&self, py: Python<'_>, timeout: Timeout, account: Option<&Account>) -> PyResult<u32> {
        let (round, place) = match self.arrive(py, timeout, account)? {
            Arrival::Last(round, place) => return self.complete(py, round).map(|()| place),
            Arrival::Waiting(round, place) => (round, place),
            Arrival::Full | Arrival::Broken => return Err(errors::broken_barrier(py)),
        };
        let words = self.words();
        let is_ready = || !words.is_pending(round);
        let attempt = |wait_round: WaitRound| Ok(self.attempt(round, account, wait_round.is_recheck));
        let outcome = wait::block(py, timeout, Some(&self.body.spin), Watch::Own, &is_ready, attempt);
        match outcome {
            Ok(Some(true)) => Ok(place),
            Ok(Some(false)) => Err(errors::broken_barrier(py)),
            Ok(None) => {
                self.words().abort(Some(round), &Host);
                match self.words().wait(round) {
                    Step::Done(true) => Ok(place),
                    _ => Err(errors::broken_barrier(py)),
                }
            }
            Err(error) => {
                self.words().abort(Some(round), &Host);
                Err(error)
            }
        }
    }
}

#[pymethods]
impl IpcBarrier {
    #[new]
    #[pyo3(signature = (parties, action=None, timeout=None, name=None))]
    fn new(
        py: Python<'_>,
        parties: i64,
        action: Option<Py<PyAny>>,
        timeout: Option<Py<PyAny>>,
        name: Option<&str>,
    ) -> PyResult<Self> {
        let parties = u32::try_from(parties)
            .ok()
            .filter(|parties| (1..1 << 30).contains(parties))
            .ok_or_else(|| PyValueError::new_err("parties must be >= 1"))?;
        let body = Body::make(py, name, Kind::Barrier, u64::from(parties), 0, |_| {})?;
        Ok(Self::of(body, action, timeout))
    }

    #[staticmethod]
    fn _inherit(
        py: Python<'_>,
        allocation: Inheritance,
        action: Option<Py<PyAny>>,
        timeout: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let body = Body::inherit(py, allocation, Kind::Barrier)?;
        Ok(Self::of(body, action, timeout))
    }

    #[getter]
    fn _action(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.action.as_ref().map(|action| action.clone_ref(py))
    }

    #[getter]
    fn _timeout(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.timeout.as_ref().map(|timeout| timeout.clone_ref(py))
    }

    /// Wait for the other parties; returns the order of arrival. BrokenBarrierError if a party gives up or dies
    /// inside.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<Bound<'_, PyAny>>) -> PyResult<u32> {
        let timeout = match timeout {
            Some(timeout) if !timeout.is_none() => Some(timeout),
            _ => self.timeout.as_ref().map(|timeout| timeout.bind(py).clone()),
        };
        let timeout = wait::timeouts::wait_timeout(timeout.as_ref())?;
        let account = BarrierWords::enter(self.accounts(), &Host);
        let outcome = self.meet(py, timeout, account);
        BarrierWords::leave(account, &Host);
        outcome
    }

    /// Arrives as a task: (round, order of arrival, whether the round is complete); None while the previous round is
    /// ending.
    fn _arrive(&self, py: Python<'_>) -> PyResult<Option<(u32, u32, bool)>> {
        match self.words().arrive(self.parties) {
            Arrival::Full => Ok(None),
            Arrival::Broken => Err(errors::broken_barrier(py)),
            Arrival::Last(round, place) => self.complete(py, round).map(|()| Some((round, place, true))),
            Arrival::Waiting(round, place) => Ok(Some((round, place, false))),
        }
    }

    /// Marks a task of this process as inside: the number of its account, None if none is free.
    fn _enter(&self) -> Option<usize> {
        let account = BarrierWords::enter(self.accounts(), &Host)?;
        self.accounts().iter().position(|other| std::ptr::eq(other, account))
    }

    /// Marks the task as outside again.
    fn _leave(&self, account: Option<usize>) {
        BarrierWords::leave(self.numbered(account), &Host);
    }

    /// Attempts for a task to wait until no complete round is about to end: True, or the sleep.
    fn _attempt_idle(slf: &Bound<'_, Self>, account: Option<usize>, is_recheck: bool) -> PyResult<Py<PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        if is_recheck && BarrierWords::casualty(this.accounts(), this.numbered(account), &Host).is_some() {
            this.words().abort(None, &Host);
        }
        task_outcome(py, slf.as_any(), this.words().wait_until_idle(this.parties), |()| {
            yes(py)
        })
    }

    /// Attempts for a task to wait for the end of the round: True, or the sleep.
    fn _attempt(slf: &Bound<'_, Self>, round: u32, account: Option<usize>, is_recheck: bool) -> PyResult<Py<PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let is_recheck = is_recheck && this.words().is_pending(round);
        let step = this.attempt(round, this.numbered(account), is_recheck);
        task_outcome(py, slf.as_any(), step, |is_through| {
            if is_through {
                yes(py)
            } else {
                Err(errors::broken_barrier(py))
            }
        })
    }

    fn _give_up(&self, round: u32) {
        self.words().abort(Some(round), &Host);
    }

    /// Start a new round; waiting parties get BrokenBarrierError.
    fn reset(&self) {
        self.words().reset(self.accounts(), &Host);
    }

    /// Break the barrier.
    fn abort(&self) {
        self.words().abort(None, &Host);
    }

    /// The number of parties.
    #[getter]
    fn parties(&self) -> u32 {
        self.parties
    }

    /// The number of waiting parties.
    #[getter]
    fn n_waiting(&self) -> u32 {
        self.words().waiting()
    }

    /// Whether the barrier is broken.
    #[getter]
    fn broken(&self) -> bool {
        self.words().is_broken()
    }

    /// Describe the barrier's state.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = self.body.describe(py)?;
        let dead = BarrierWords::casualty(self.accounts(), None, &Host);
        statistics.set_item("parties", self.parties)?;
        statistics.set_item("waiting", self.n_waiting())?;
        statistics.set_item("broken", self.broken())?;
        statistics.set_item("dead", dead.map(|process| (process >> 32) as u32))?;
        Ok(statistics)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        let state = if this.broken() {
            "broken".to_owned()
        } else {
            format!("waiting={}/{}", this.n_waiting(), this.parties)
        };
        Ok(format!(
            "<unsnarl.ipc.{}{}: {state}>",
            slf.get_type().name()?,
            this.body.label()
        ))
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<IpcBarrier>();
    methods::install::<IpcBarrier>(&class, &methods::waiting(methods::wait_barrier))?;
    module.add("IpcBarrier", class)
}
