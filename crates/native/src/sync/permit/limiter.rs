//! CapacityLimiter: a semaphore whose tokens belong to their borrowers.
//!
//! Invariant: a borrower is a thread, a greenlet or a task, and holds at most one token.

use super::deadlock::{deadlock, stuck_task};
use crate::sync::calls::arguments::{self, Timeout};
use crate::sync::wait::blocking::block;
use crate::sync::wait::operation::Operation;
use crate::sync::wait::party::Party;
use crate::sync::wait::protocol::{Wait, boolean};
use crate::sync::who::identity::{self, NO_TASK};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyTuple};
use unsnarl_sync::{Arc, Borrow, Borrowers, Waiter};

/// A limit on how many threads, tasks and greenlets do something at the same time.
///
/// A token belongs to its borrower; `total_tokens` can be set at any time. Borrowing twice, or returning a
/// token without having one, raises `RuntimeError`. Threads, greenlets and tasks are different borrowers; a
/// token that an ended task has left is returned by `__aexit__` and `async_release` anywhere. `acquire`
/// without a timeout (seconds) raises it too if each token is held by a task of the calling thread: that wait
/// could not end.
/// Fairness: first come, first served; tokens are handed over, no party overtakes.
/// Cancellation: a token granted to a cancelled waiter goes to the next.
#[pyclass(frozen, subclass, weakref, module = "unsnarl")]
pub(in crate::sync) struct CapacityLimiter {
    borrowers: Borrowers<Party>,
}

struct BorrowWait {
    limiter: Py<CapacityLimiter>,
    borrower: usize,
    silent: bool,
}

fn borrowed(outcome: Borrow) -> PyResult<bool> {
    match outcome {
        Borrow::Borrowed => Ok(true),
        Borrow::None => Ok(false),
        Borrow::Twice => Err(PyRuntimeError::new_err(
            "this borrower already holds one of the limiter's tokens, or waits for one",
        )),
    }
}

impl Wait for BorrowWait {
    fn attempt(&mut self, py: Python<'_>) -> PyResult<bool> {
        if self.borrower == NO_TASK {
            self.borrower = identity::task(py)?;
        }
        borrowed(self.limiter.get().borrowers.try_borrow(self.borrower))
    }
    fn begin(&mut self, _py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        borrowed(self.limiter.get().borrowers.begin(self.borrower, waiter))
    }
    fn cancel(&mut self, _py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        Ok(self.limiter.get().borrowers.cancel(waiter))
    }
    fn give_back(&mut self, _py: Python<'_>) {
        self.limiter.get().borrowers.give_back(self.borrower);
    }
    fn outcome(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(if self.silent { py.None() } else { boolean(py, true) })
    }
    fn object(&self) -> usize {
        self.limiter.as_ptr() as usize
    }
    fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.limiter)
    }
}

/// `math.inf`, as a number of tokens.
const UNLIMITED: usize = usize::MAX;

fn tokens(total: &Bound<'_, PyAny>) -> PyResult<usize> {
    if let Ok(total) = total.cast::<PyFloat>() {
        return match total.value() {
            f64::INFINITY => Ok(UNLIMITED),
            _ => Err(PyTypeError::new_err("total_tokens must be an int or math.inf")),
        };
    }
    usize::try_from(arguments::count(total)?).map_err(|_| PyValueError::new_err("total_tokens must be >= 0"))
}

fn shown<'py>(py: Python<'py>, tokens: usize) -> Bound<'py, PyAny> {
    match tokens {
        UNLIMITED => PyFloat::new(py, f64::INFINITY).into_any(),
        tokens => PyInt::new(py, tokens).into_any(),
    }
}

impl CapacityLimiter {
    fn give_back(&self, borrower: usize) -> PyResult<()> {
        if self.borrowers.give_back(borrower) {
            return Ok(());
        }
        Err(PyRuntimeError::new_err(
            "this borrower holds none of the limiter's tokens",
        ))
    }

    /// Raise if each token is held by a task of the calling thread: none can be returned while the thread
    /// waits.
    fn refuse_deadlock(&self, py: Python<'_>) -> PyResult<()> {
        let mut names = Vec::new();
        for task in self.borrowers.find_all(identity::task_of_this_thread) {
            match stuck_task(py, task)? {
                Some(name) => names.push(name),
                None => return Ok(()),
            }
        }
        if names.is_empty() {
            return Ok(());
        }
        Err(deadlock(&format!(
            "every token is held by a task of this thread ({}), which",
            names.join(", ")
        )))
    }

    fn borrow_async(slf: Bound<'_, Self>, timeout: Option<f64>, silent: bool) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let wait = BorrowWait {
            borrower: identity::task_if_any(py)?,
            limiter: slf.unbind(),
            silent,
        };
        Operation::of(py, wait, timeout)
    }
}

#[pymethods]
impl CapacityLimiter {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "(total_tokens=1)")]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            borrowers: Borrowers::new(1),
        }
    }

    #[pyo3(signature = (total_tokens=1))]
    fn __init__(&self, #[pyo3(from_py_with = tokens)] total_tokens: usize) {
        self.set_total_tokens(total_tokens);
    }

    /// Borrow a token; False if blocking is False or the timeout (seconds) passed first.
    /// RuntimeError if the caller has one already.
    #[pyo3(signature = (blocking=true, timeout=None))]
    fn acquire(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = PyAnyMethods::is_truthy)] blocking: bool,
        timeout: Option<Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let py = slf.py();
        let timeout = arguments::limiter_timeout(blocking, timeout.as_ref())?;
        let mut wait = BorrowWait {
            limiter: slf.clone().unbind(),
            borrower: identity::caller(py),
            silent: false,
        };
        if wait.attempt(py)? {
            return Ok(true);
        }
        match timeout {
            Timeout::None => return Ok(false),
            Timeout::Endless => slf.get().refuse_deadlock(py)?,
            Timeout::Until(_) => {}
        }
        block(py, &mut wait, timeout.deadline())
    }

    /// Return the caller's token; RuntimeError if it has none.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        self.give_back(identity::caller(py))
    }

    /// Borrow a token for the running task; False if the timeout (seconds) passed first.
    #[pyo3(signature = (timeout=None, blocking=None), text_signature = "($self, timeout=None, blocking=True)")]
    fn async_acquire(
        slf: Bound<'_, Self>,
        timeout: Option<Bound<'_, PyAny>>,
        blocking: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let timeout = arguments::task_timeout_if_blocking(blocking.as_ref(), timeout.as_ref())?;
        Self::borrow_async(slf, timeout, false)
    }

    /// Tell whether the calling thread or greenlet holds a token.
    fn green_borrowed(&self, py: Python<'_>) -> bool {
        self.borrowers.has_lent_to(identity::caller(py))
    }

    /// Tell whether the running task holds a token.
    fn async_borrowed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.borrowers.has_lent_to(identity::task(py)?))
    }

    /// The number of the calling thread or greenlet, as in `statistics()["borrowers"]`.
    fn _green_borrower(&self, py: Python<'_>) -> usize {
        identity::caller(py)
    }

    /// The number of the running task.
    fn _async_borrower(&self, py: Python<'_>) -> PyResult<usize> {
        identity::task(py)
    }

    /// The number of the task whose token `async_release` returns: the running task, or, if that has none,
    /// one that has ended. A coroutine that is closed outside of its task returns its task's token, and any
    /// token of an ended task will do.
    fn _async_releaser(&self, py: Python<'_>) -> PyResult<usize> {
        let task = identity::task(py);
        if task.as_ref().is_ok_and(|task| self.borrowers.has_lent_to(*task)) {
            return task;
        }
        for borrower in self.borrowers.holders() {
            if identity::has_ended(py, borrower)? {
                return Ok(borrower);
            }
        }
        task
    }

    /// Return the running task's token.
    fn async_release(&self, py: Python<'_>) -> PyResult<()> {
        self.give_back(self._async_releaser(py)?)
    }

    fn __enter__(slf: &Bound<'_, Self>) -> PyResult<bool> {
        Self::acquire(slf, true, None)
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.release(py)
    }

    fn __aenter__(slf: Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Self::borrow_async(slf, None, true)
    }

    #[pyo3(signature = (*_args))]
    fn __aexit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        self.async_release(py)?;
        // SAFETY: a new reference.
        Ok(unsafe { Bound::from_owned_ptr(py, crate::sync::calls::ready::done()) }.unbind())
    }

    /// How many tokens there are, `math.inf` for no limit; fewer than are borrowed is allowed.
    #[getter]
    fn total_tokens<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        shown(py, self.borrowers.status().0)
    }

    #[setter]
    fn set_total_tokens(&self, #[pyo3(from_py_with = tokens)] total: usize) {
        self.borrowers.resize(total);
    }

    /// How many tokens are borrowed.
    #[getter]
    fn borrowed_tokens(&self) -> usize {
        self.borrowers.status().1
    }

    /// How many tokens can be borrowed now.
    #[getter]
    fn available_tokens<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match self.borrowers.status() {
            (UNLIMITED, _, _) => shown(py, UNLIMITED),
            (total, borrowed, _) => shown(py, total.saturating_sub(borrowed)),
        }
    }

    /// How many parties wait.
    #[getter]
    fn waiting(&self) -> usize {
        self.borrowers.status().2
    }

    /// Describe the limiter's state.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (total, borrowed, waiting) = self.borrowers.status();
        let statistics = PyDict::new(py);
        statistics.set_item("total_tokens", shown(py, total))?;
        statistics.set_item("borrowed_tokens", borrowed)?;
        statistics.set_item("waiting", waiting)?;
        statistics.set_item("borrowers", self.borrowers.holders())?;
        Ok(statistics)
    }
}

pub(in crate::sync) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<CapacityLimiter>();
    class.setattr("green_acquire", class.getattr("acquire")?)?;
    class.setattr("green_release", class.getattr("release")?)?;
    module.add("CapacityLimiter", class)
}
