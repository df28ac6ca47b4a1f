//! Barrier: a cyclic barrier with an action that the last party runs.
//!
//! Must never: block the thread of a task or a greenlet for the action, which may need that thread.
//!
//! Invariant: the party that arrives last decides the outcome of its cycle, once the action has ended.

use super::calls::arguments::{self, Timeout};
use super::calls::description;
use super::wait::blocking::block;
use super::wait::futex;
use super::wait::gil;
use super::wait::operation::Operation;
use super::wait::party::Party;
use super::wait::protocol::Wait;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use unsnarl_sync::{ASLEEP, Arc, Arrival, Departing, GRANTED, Ordering, PENDING, Rendezvous, Unparker, Waiter};

/// The longest single sleep of a party that gave up while the last party runs the action.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// A meeting point for a fixed number of threads, tasks and greenlets.
///
/// `wait` returns the order of arrival, from 0. The party that arrives last runs the action; if the action
/// raises, the barrier breaks. `ValueError` for less than one party.
/// Fairness: all parties of a round are released together; threads wake in a cascade.
/// Cancellation: a party that is out of time (seconds) breaks the barrier: every party gets
/// `threading.BrokenBarrierError` until `reset`. One that is cancelled or interrupted just leaves.
#[pyclass(frozen, subclass, weakref, module = "unsnarl")]
pub(in crate::sync) struct Barrier {
    /// For no parties, until `__init__` runs.
    rendezvous: Rendezvous<Party>,
    options: Mutex<Options>,
    /// The number of actions that run now.
    acting: AtomicUsize,
}

/// The arguments of `__init__`. No Python code runs while they are locked.
#[derive(Default)]
struct Options {
    action: Option<Py<PyAny>>,
    timeout: Option<Py<PyAny>>,
}

fn broken(py: Python<'_>) -> PyErr {
    let class = py
        .import("threading")
        .and_then(|threading| threading.getattr("BrokenBarrierError"));
    match class.and_then(|class| class.call0()) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// The wait for the other parties.
struct MeetWait {
    object: Py<Barrier>,
    index: usize,
    /// Whether a task has a timeout of zero: it still arrives, and passes if it is the last.
    is_hasty: bool,
}

impl MeetWait {
    fn arrive(&mut self, py: Python<'_>, waiter: impl FnOnce() -> Arc<Waiter<Party>>) -> PyResult<bool> {
        let barrier = self.object.get();
        match barrier.rendezvous.arrive(waiter) {
            Arrival::Broken => Err(broken(py)),
            Arrival::Wait(index) => {
                self.index = index;
                Ok(false)
            }
            Arrival::Last(index, departing) => {
                self.index = index;
                barrier.complete(py, departing).map(|()| true)
            }
        }
    }

    /// All parties have arrived, and the last one runs the action. Its outcome decides, as in the standard
    /// library, where the lock is held meanwhile. A thread waits for the outcome; a task or a greenlet does
    /// not, since the action may need its thread, and would never end.
    fn decided(py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        while waiter.party.sleeps_on_word() && !waiter.is_signalled() {
            py.detach(|| futex::wait(waiter.word(), waiter.state(), Some(Instant::now() + CHECK_INTERVAL)));
            if let Err(error) = py.check_signals() {
                // Say that this thread does not sleep: a releasing party must not rely on it to wake the
                // next.
                // ORDERING: pairs with the release in `signal_all`, as in `Waiter::fall_asleep`; if the
                // exchange fails, `relay` passes the wake-up on.
                let _ = waiter
                    .word()
                    .compare_exchange(ASLEEP, PENDING, Ordering::AcqRel, Ordering::Acquire);
                return Err(error);
            }
        }
        Ok(waiter.state() == GRANTED)
    }
}

impl Wait for MeetWait {
    fn attempt(&mut self, py: Python<'_>) -> PyResult<bool> {
        if !self.is_hasty {
            return Ok(false);
        }
        let waiter = Waiter::new(Party::asyncio(0));
        Ok(self.arrive(py, || Arc::clone(&waiter))? || self.cancel(py, &waiter)?)
    }
    fn begin(&mut self, py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        self.arrive(py, || Arc::clone(waiter))
    }
    fn resume(&mut self, py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        if waiter.state() == GRANTED {
            Ok(true)
        } else {
            Err(broken(py))
        }
    }
    fn cancel(&mut self, py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        let has_met = self.object.get().rendezvous.cancel(waiter, gil::fan_out());
        Ok(has_met && Self::decided(py, waiter)?)
    }
    fn withdraw(&mut self, py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        let has_met = self.object.get().rendezvous.leave(waiter);
        Ok(has_met && Self::decided(py, waiter)?)
    }
    fn outcome(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.index.into_pyobject(py)?.into_any().unbind())
    }
    fn expired(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Err(broken(py))
    }
    fn object(&self) -> usize {
        self.object.as_ptr() as usize
    }
    fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.object)
    }
}

impl Barrier {
    fn complete(&self, py: Python<'_>, departing: Departing<Party>) -> PyResult<()> {
        let action = self.options().action.as_ref().map(|action| action.clone_ref(py));
        if let Some(action) = action {
            self.acting.fetch_add(1, Ordering::Relaxed);
            let outcome = action.call0(py);
            self.acting.fetch_sub(1, Ordering::Relaxed);
            if let Err(error) = outcome {
                self.rendezvous.fail(departing, gil::fan_out());
                return Err(error);
            }
        }
        departing.release(gil::fan_out());
        Ok(())
    }

    fn options(&self) -> MutexGuard<'_, Options> {
        self.options.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The core, after `__init__`.
    fn rendezvous(&self) -> PyResult<&Rendezvous<Party>> {
        if self.rendezvous.parties() > 0 {
            return Ok(&self.rendezvous);
        }
        Err(PyRuntimeError::new_err("Barrier.__init__() was not called"))
    }

    /// The timeout of a call: the barrier's own, if none was given.
    fn timeout<'py>(&self, py: Python<'py>, given: Option<Bound<'py, PyAny>>) -> Option<Bound<'py, PyAny>> {
        given.or_else(|| self.options().timeout.as_ref().map(|timeout| timeout.bind(py).clone()))
    }
}

#[pymethods]
impl Barrier {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "(parties, action=None, timeout=None)")]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            rendezvous: Rendezvous::new(0),
            options: Mutex::default(),
            acting: AtomicUsize::new(0),
        }
    }

    #[pyo3(signature = (parties, action=None, timeout=None))]
    fn __init__(
        &self,
        #[pyo3(from_py_with = arguments::count)] parties: i64,
        action: Option<Py<PyAny>>,
        timeout: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let parties = usize::try_from(parties)
            .ok()
            .filter(|parties| *parties > 0)
            .ok_or_else(|| PyValueError::new_err("parties must be >= 1"))?;
        let old = std::mem::replace(&mut *self.options(), Options { action, timeout });
        drop(old);
        self.rendezvous.restart(parties, gil::fan_out());
        Ok(())
    }

    /// Wait for the other parties; return the order of arrival, from 0. `BrokenBarrierError` if the barrier
    /// breaks, which a timeout (seconds) does.
    #[pyo3(signature = (timeout=None))]
    fn wait(slf: &Bound<'_, Self>, timeout: Option<Bound<'_, PyAny>>) -> PyResult<usize> {
        let py = slf.py();
        let rendezvous = slf.get().rendezvous()?;
        let timeout = slf.get().timeout(py, timeout);
        let mut wait = MeetWait {
            object: slf.clone().unbind(),
            index: 0,
            is_hasty: false,
        };
        if rendezvous.parties() == 1 {
            wait.arrive(py, || Waiter::new(Party::thread(slf.as_ptr() as usize)))?;
            return Ok(wait.index);
        }
        let deadline = match arguments::wait_timeout(timeout.as_ref())? {
            Timeout::None => Some(Instant::now()),
            timeout => timeout.deadline(),
        };
        if block(py, &mut wait, deadline)? {
            Ok(wait.index)
        } else {
            Err(broken(py))
        }
    }

    /// Wait for the other parties in a task.
    #[pyo3(signature = (timeout=None))]
    fn async_wait(slf: Bound<'_, Self>, timeout: Option<Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        slf.get().rendezvous()?;
        let timeout = arguments::task_timeout(slf.get().timeout(py, timeout).as_ref())?;
        let wait = MeetWait {
            object: slf.unbind(),
            index: 0,
            is_hasty: timeout.is_some_and(|timeout| timeout <= 0.0),
        };
        Operation::of(py, wait, timeout)
    }

    fn __await__(slf: Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Self::async_wait(slf, None)
    }

    /// Release the waiting parties with `BrokenBarrierError` and start again.
    fn reset(&self) -> PyResult<()> {
        self.rendezvous()?.reset(gil::fan_out());
        Ok(())
    }

    /// Break the barrier for the parties that wait and those that arrive, until `reset`.
    fn abort(&self) -> PyResult<()> {
        self.rendezvous()?.break_up(gil::fan_out());
        Ok(())
    }

    /// How many parties must meet.
    #[getter]
    fn parties(&self) -> PyResult<usize> {
        Ok(self.rendezvous()?.parties())
    }

    /// How many parties wait now; while the action runs, all of them, as in the standard library.
    #[getter]
    fn n_waiting(&self) -> PyResult<usize> {
        let rendezvous = self.rendezvous()?;
        Ok(if self.acting.load(Ordering::Relaxed) > 0 {
            rendezvous.parties()
        } else {
            rendezvous.arrived()
        })
    }

    /// The same.
    #[getter]
    fn waiting(&self) -> PyResult<usize> {
        self.n_waiting()
    }

    /// Whether the barrier is broken.
    #[getter]
    fn broken(&self) -> PyResult<bool> {
        Ok(self.rendezvous()?.is_broken())
    }

    /// Describe the barrier's state.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = PyDict::new(py);
        statistics.set_item("parties", self.parties()?)?;
        statistics.set_item("waiting", self.n_waiting()?)?;
        statistics.set_item("broken", self.broken()?)?;
        Ok(statistics)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        if this.broken()? {
            return description::with_state(slf, "broken");
        }
        let (waiting, parties) = (this.n_waiting()?, this.parties()?);
        description::with_state(slf, format_args!("waiters={waiting}/{parties}"))
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        if let Ok(options) = self.options.try_lock() {
            visit.call(&options.action)?;
            visit.call(&options.timeout)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        let options = std::mem::take(&mut *self.options());
        drop(options);
    }
}

pub(in crate::sync) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<Barrier>();
    class.setattr("green_wait", class.getattr("wait")?)?;
    description::refuse_copies(&class)?;
    module.add("Barrier", class)
}
