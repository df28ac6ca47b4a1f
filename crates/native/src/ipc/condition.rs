//! Condition: waiters give a lock up, wait until a process notifies them in order of arrival, and take the lock
//! again.
//!
//! The lock is an `unsnarl.ipc.Lock` or `RLock`; this class holds the queue of waiters.
//!
//! Invariant: `wait` returns or raises with the lock held, as deeply as before.

use super::locks::IpcLock;
use super::locks::IpcRLock;
use super::methods::{self, Primitive};
use super::segment::errors;
use super::segment::{Body, Inheritance};
use super::wait::{self, Watch, task_outcome, yes};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use unsnarl_ipc::{ConditionCell, ConditionWords, Kind, Step};
use unsnarl_shm::Host;

/// A condition variable between processes.
///
/// Uses a `Lock` or `RLock` of `unsnarl.ipc` (`TypeError` for any other); without one it makes an `RLock`.
/// `RuntimeError` for waiting or notifying without the lock, or if too many wait. After `OwnerDied` from `wait`
/// the lock is held.
/// Fairness: the waiters that have waited longest are notified first; a dead process is skipped. Timeouts are in
/// seconds.
/// Cancellation: a cancelled task takes the lock back first.
#[pyclass(frozen, subclass, weakref, module = "unsnarl.ipc", name = "Condition")]
pub(super) struct IpcCondition {
    body: Body,
    lock: Py<PyAny>,
}

impl Primitive for IpcCondition {
    fn body(&self) -> &Body {
        &self.body
    }
}

/// A task's position in the queue of a condition.
#[pyclass(frozen, module = "unsnarl._native", name = "IpcQueuePosition")]
pub(super) struct QueuePosition {
    condition: Py<IpcCondition>,
    number: usize,
    depth: u32,
}

/// What is read of a semaphore that counts: `multiprocessing.Condition` has three, which are private, and which
/// programs read all the same, as CPython's own tests do.
#[pyclass(frozen, module = "unsnarl._native", name = "IpcCount")]
pub(super) struct Count(usize);

#[pymethods]
impl Count {
    fn get_value(&self) -> usize {
        self.0
    }

    fn _get_value(&self) -> usize {
        self.0
    }

    #[getter]
    fn _semlock<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }
}

impl IpcCondition {
    fn words(&self) -> &ConditionWords {
        // SAFETY: atomics alone.
        unsafe { self.body.segment.mapping.state() }
    }

    fn cells(&self) -> &[ConditionCell] {
        // SAFETY: atomics alone, 16 bytes.
        unsafe { self.body.segment.mapping.table() }
    }

    fn of(py: Python<'_>, body: Body, lock: Py<PyAny>) -> PyResult<Self> {
        let bound = lock.bind(py);
        if !bound.is_instance_of::<IpcLock>() && !bound.is_instance_of::<IpcRLock>() {
            return Err(PyTypeError::new_err(
                "a condition between processes needs a lock between processes: unsnarl.ipc.Lock or RLock",
            ));
        }
        Ok(Self { body, lock })
    }

    fn is_owned(&self, py: Python<'_>) -> bool {
        let lock = self.lock.bind(py);
        if let Ok(lock) = lock.cast::<IpcRLock>() {
            return lock.get().ownership.is_mine(&lock.get().body);
        }
        // Any thread may release a Lock, so it is enough that some thread holds it.
        self.is_locked(py)
    }

    fn is_locked(&self, py: Python<'_>) -> bool {
        let lock = self.lock.bind(py);
        if let Ok(lock) = lock.cast::<IpcRLock>() {
            return lock.get().ownership.is_held(&lock.get().body);
        }
        lock.cast::<IpcLock>()
            .is_ok_and(|lock| lock.get().ownership.is_held(&lock.get().body))
    }

    /// Yields the processor while the lock is held. A notifier wakes a waiter while it still holds the lock; the
    /// waiter may have taken its processor. Yielding lets the notifier release the lock; sleeping immediately would
    /// cost a second wake-up. After a wait that ended otherwise, the yield does no harm.
    fn let_notifier_release(&self, py: Python<'_>) {
        if self.is_locked(py) {
            py.detach(std::thread::yield_now);
        }
    }

    fn need_lock(&self, py: Python<'_>, what: &str) -> PyResult<()> {
        if self.is_owned(py) {
            return Ok(());
        }
        Err(errors::not_held(py, &format!("cannot {what} on un-acquired lock")))
    }

    fn unlock(&self, py: Python<'_>) -> u32 {
        let lock = self.lock.bind(py);
        if let Ok(lock) = lock.cast::<IpcRLock>() {
            return lock.get().release_all();
        }
        if let Ok(lock) = lock.cast::<IpcLock>() {
            lock.get().ownership.release(&lock.get().body, 1);
        }
        1
    }

    fn relock(&self, py: Python<'_>, depth: u32) -> PyResult<()> {
        let lock = self.lock.bind(py);
        let outcome = lock.call_method0(pyo3::intern!(py, "acquire"));
        // A caller that gets `OwnerDied` still holds the lock, as deeply as before.
        if let Ok(lock) = lock.cast::<IpcRLock>()
            && lock.get().ownership.is_mine(&lock.get().body)
        {
            lock.get().restore(depth);
        }
        outcome.map(|_| ())
    }

    fn arrive(&self) -> PyResult<&ConditionCell> {
        self.words()
            .arrive(self.cells(), &Host)
            .ok_or_else(|| PyRuntimeError::new_err(format!("more than {} wait for this condition", self.cells().len())))
    }
}

#[pymethods]
impl IpcCondition {
    #[new]
    #[pyo3(signature = (lock=None, name=None))]
    fn new(py: Python<'_>, lock: Option<Py<PyAny>>, name: Option<&str>) -> PyResult<Self> {
        let lock = match lock {
            Some(lock) => lock,
            None => {
                let lock_name = name.map(|name| format!("{name}.lock"));
                py.get_type::<IpcRLock>().call1((lock_name,))?.unbind()
            }
        };
        Self::of(py, Body::make(py, name, Kind::Condition, 0, 0, |_| {})?, lock)
    }

    #[staticmethod]
    fn _inherit(py: Python<'_>, allocation: Inheritance, lock: Py<PyAny>) -> PyResult<Self> {
        Self::of(py, Body::inherit(py, allocation, Kind::Condition)?, lock)
    }

    /// The lock.
    #[getter]
    fn lock(&self, py: Python<'_>) -> Py<PyAny> {
        self.lock.clone_ref(py)
    }

    #[getter]
    fn _lock(&self, py: Python<'_>) -> Py<PyAny> {
        self.lock.clone_ref(py)
    }

    /// Acquire the lock.
    #[pyo3(signature = (*args, **kwargs))]
    fn acquire<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.lock.bind(py).call_method("acquire", args, kwargs)
    }

    /// Release the lock.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        self.lock.bind(py).call_method0("release").map(|_| ())
    }

    fn __enter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.lock.bind(py).call_method0("__enter__")
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.release(py)
    }

    /// Acquire the lock in a task.
    fn __aenter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.lock.bind(py).call_method0("__aenter__")
    }

    /// Release the lock in a task.
    #[pyo3(signature = (*_args))]
    fn __aexit__<'py>(&self, py: Python<'py>, _args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let none = py.None();
        self.lock.bind(py).call_method1("__aexit__", (&none, &none, &none))
    }

    /// Give the lock up, wait to be notified, take the lock again; False if the timeout (seconds) passed first.
    /// OwnerDied if a holder of the lock died meanwhile.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<Bound<'_, PyAny>>) -> PyResult<bool> {
        self.need_lock(py, "wait")?;
        let timeout = wait::timeouts::wait_timeout(timeout.as_ref())?;
        let cell = self.arrive()?;
        let depth = self.unlock(py);
        let is_ready = || matches!(cell.wait(), Step::Done(()));
        let outcome = wait::block(py, timeout, Some(&self.body.spin), Watch::Kernel, &is_ready, |_| {
            Ok(cell.wait())
        });
        let was_notified = cell.leave();
        self.let_notifier_release(py);
        let relocked = self.relock(py, depth);
        // The error that ended the wait takes precedence: a Ctrl-C is delivered once, while the next acquire reports
        // the death again.
        outcome.and_then(|_| relocked.map(|()| was_notified))
    }

    /// Wait until the predicate is true; returns its last value.
    #[pyo3(signature = (predicate, timeout=None))]
    fn wait_for<'py>(
        &self,
        py: Python<'py>,
        predicate: &Bound<'py, PyAny>,
        timeout: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let deadline = wait::timeouts::wait_timeout(timeout.as_ref())?.deadline();
        let mut outcome = predicate.call0()?;
        while !outcome.is_truthy()? {
            let left = match (&timeout, deadline) {
                (Some(timeout), None) if !timeout.is_none() => break,
                (_, Some(deadline)) => {
                    let left = deadline.saturating_duration_since(std::time::Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    Some(left.as_secs_f64().into_pyobject(py)?.into_any())
                }
                _ => None,
            };
            self.wait(py, left)?;
            outcome = predicate.call0()?;
        }
        Ok(outcome)
    }

    /// Notify the n waiters that have waited longest.
    #[pyo3(signature = (n=1))]
    fn notify(&self, py: Python<'_>, n: i64) -> PyResult<()> {
        self.need_lock(py, "notify")?;
        let count = usize::try_from(n).map_err(|_| PyValueError::new_err("n must not be negative"))?;
        self.words().notify(self.cells(), count, &Host);
        Ok(())
    }

    /// Notify all waiters.
    fn notify_all(&self, py: Python<'_>) -> PyResult<()> {
        self.notify(py, i64::MAX)
    }

    /// Joins the queue as a task, and gives the lock up.
    fn _arrive(slf: &Bound<'_, Self>) -> PyResult<QueuePosition> {
        let (py, this) = (slf.py(), slf.get());
        this.need_lock(py, "wait")?;
        let cell = this.arrive()?;
        let number = this.cells().iter().position(|other| std::ptr::eq(other, cell));
        Ok(QueuePosition {
            condition: slf.clone().unbind(),
            number: number.unwrap_or(0),
            depth: this.unlock(py),
        })
    }

    /// Tell whether the lock is held.
    fn locked(&self, py: Python<'_>) -> PyResult<bool> {
        self.lock.bind(py).call_method0("locked")?.extract()
    }

    /// The number of waiters.
    #[getter]
    fn waiting(&self) -> usize {
        self.words().waiting(self.cells())
    }

    // The counts of multiprocessing's own condition, from which programs tell how many wait. No waiter that was
    // notified counts here, so the counts of those that woke and of wake-ups on their way are always 0.
    #[getter]
    fn _sleeping_count(&self) -> Count {
        Count(self.waiting())
    }
    #[getter]
    fn _woken_count(&self) -> Count {
        Count(0)
    }
    #[getter]
    fn _wait_semaphore(&self) -> Count {
        Count(0)
    }

    /// Describe the condition's state.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = self.body.describe(py)?;
        statistics.set_item("waiting", self.waiting())?;
        Ok(statistics)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        Ok(format!(
            "<unsnarl.ipc.{}{}: waiting={}, {}>",
            slf.get_type().name()?,
            this.body.label(),
            this.waiting(),
            this.lock.bind(slf.py()).repr()?
        ))
    }

    fn _is_owned(&self, py: Python<'_>) -> bool {
        self.is_owned(py)
    }
}

#[pymethods]
impl QueuePosition {
    /// True if the task was notified, or the sleep.
    fn _attempt(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let condition = slf.get().condition.get();
        task_outcome(py, slf.as_any(), condition.cells()[slf.get().number].wait(), |()| {
            yes(py)
        })
    }

    /// Leaves the queue; True if the task was notified.
    fn _leave(&self) -> bool {
        self.condition.get().cells()[self.number].leave()
    }

    /// Restores the depth of the RLock after the task took it again.
    fn _restore(&self, py: Python<'_>) {
        if let Ok(lock) = self.condition.get().lock.bind(py).cast::<IpcRLock>() {
            lock.get().restore(self.depth);
        }
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<QueuePosition>()?;
    module.add_class::<Count>()?;
    let class = module.py().get_type::<IpcCondition>();
    methods::install::<IpcCondition>(&class, &methods::WAITING_NOTIFIED)?;
    module.add("IpcCondition", class)
}
