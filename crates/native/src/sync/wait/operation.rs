//! An asynchronous call: an awaitable that acquires if it can, and else suspends the task until it is woken.
//!
//! | stage | left by |
//! |---|---|
//! | fresh: nothing has happened | `send`: acquired → done; enqueued → waiting; `throw`, `close` → done |
//! | waiting: a waiter is in the core's queue, `inner` suspends the task | woken and acquired → done; woken spuriously → waiting; time up → done; `throw`, `close`, collected → done, and a grant in the meantime is released |
//! | done | never |
//!
//! It has `send`, `throw` and `close`, so event loops accept it as a coroutine
//! (`asyncio.create_task(lock.async_acquire())` works).
//!
//! Must never: decide by a clock of its own that the time is up. The loop does, by its own clock, which may
//! be virtual (trio's `MockClock`), and some loops' timers (uvloop's) are a little early.
//!
//! Invariant: a waiter is in a queue only while the stage is waiting.

use super::interruption;
use super::mailbox::Mailbox;
use super::owner::Suspended;
use super::protocol::Wait;
use super::suspension::{self, Backend, Waiting};
use crate::sync::calls::fast::{self, Method};
use crate::sync::calls::stop::{self, Step};
use crate::sync::who::running;
use pyo3::exceptions::{PyGeneratorExit, PyRuntimeError, PyStopIteration};
use pyo3::ffi;
use pyo3::prelude::*;

/// An asynchronous call, fresh, waiting or done.
#[pyclass(module = "unsnarl._native", weakref, freelist = 64)]
pub(in crate::sync) struct Operation {
    wait: Option<Box<dyn Wait>>,
    timeout_s: Option<f64>,
    waiting: Option<Waiting>,
    /// Whether it keeps its place and continues to wait when an exception is thrown into it.
    is_stubborn: bool,
    /// The exception that was thrown into it last.
    interruption: Option<Py<PyAny>>,
}

impl Operation {
    /// Make an operation that has not started; an owned reference.
    pub(in crate::sync) fn spawn(
        py: Python<'_>,
        wait: Box<dyn Wait>,
        timeout_s: Option<f64>,
    ) -> PyResult<*mut ffi::PyObject> {
        let operation = Py::new(
            py,
            Self {
                wait: Some(wait),
                timeout_s,
                waiting: None,
                is_stubborn: false,
                interruption: None,
            },
        )?
        .into_ptr();
        // An object from the free list is untracked (PyObject_Init, which PyO3 calls, tracks nothing): the
        // collector would see neither it nor any cycle through it.
        // SAFETY: a live object of a type with a traverse function, complete by now, that is not tracked yet.
        unsafe {
            if ffi::PyObject_GC_IsTracked(operation) == 0 {
                ffi::PyObject_GC_Track(operation.cast());
            }
        }
        Ok(operation)
    }

    /// As `spawn`, as a Python object.
    pub(in crate::sync) fn of(
        py: Python<'_>,
        wait: impl Wait + 'static,
        timeout_s: Option<f64>,
    ) -> PyResult<Py<PyAny>> {
        let operation = Self::spawn(py, Box::new(wait), timeout_s)?;
        // SAFETY: a new reference.
        Ok(unsafe { Bound::from_owned_ptr(py, operation) }.unbind())
    }

    fn step(slf: &Bound<'_, Self>, value: *mut ffi::PyObject) -> PyResult<Step> {
        let py = slf.py();
        let mut this = slf.try_borrow_mut()?;
        if this.waiting.is_some() {
            return this.drive(slf, value);
        }
        let Some(wait) = this.wait.as_mut() else {
            return Err(PyRuntimeError::new_err(
                "cannot reuse an operation that was already awaited",
            ));
        };
        match wait.attempt(py) {
            Ok(true) => return this.finish(py, true),
            Ok(false) => {}
            Err(error) => {
                this.wait = None;
                return Err(error);
            }
        }
        if this.timeout_s.is_some_and(|timeout_s| timeout_s <= 0.0) {
            return this.finish(py, false);
        }
        match this.start(slf) {
            Ok(true) => this.finish(py, true),
            Ok(false) => this.drive(slf, none()),
            Err(error) => {
                this.wait = None;
                Err(error)
            }
        }
    }

    /// Enqueue the waiter and make the suspension. True: it was granted meanwhile.
    fn start(&mut self, slf: &Bound<'_, Self>) -> PyResult<bool> {
        let py = slf.py();
        let running = running::running_loop(py)?;
        let parker = running::parker(py, running.as_ref())?;
        let Some(wait) = self.wait.as_mut() else {
            return Ok(false);
        };
        let (waiter, backend) = suspension::choose(py, wait.task(), parker, running)?;
        if wait.begin(py, &waiter)? {
            return Ok(true);
        }
        let mut waiting = Waiting {
            waiter,
            is_expired: false,
            inner: py.None(),
            backend,
        };
        let arranged = waiting.arrange(slf, self.timeout_s);
        self.waiting = Some(waiting);
        if let Err(error) = arranged {
            self.abandon(py);
            return Err(error);
        }
        Ok(false)
    }

    /// Resume the inner awaitable, and re-check when it ends. `value` is what the event loop sent.
    fn drive(&mut self, slf: &Bound<'_, Self>, mut value: *mut ffi::PyObject) -> PyResult<Step> {
        let py = slf.py();
        while let Some(waiting) = self.waiting.as_mut() {
            let sent = send_on(waiting.inner.bind(py), value);
            value = none();
            match sent {
                Ok(Step::Yield(object)) => return Ok(Step::Yield(object)),
                Ok(Step::Return(is_expired)) => waiting.is_expired |= is_expired.is_truthy(py)?,
                Err(error) => {
                    self.give_up(py, &error);
                    return Err(error);
                }
            }
            if let Some(step) = self.recheck(slf)? {
                return Ok(step);
            }
        }
        self.finish(py, false)
    }

    /// The suspension was ended from outside: re-check, and suspend again if need be.
    fn recheck_and_drive(&mut self, slf: &Bound<'_, Self>) -> PyResult<Step> {
        if let Some(waiting) = &self.waiting {
            // Before the re-check, so that a later wake-up does not find a future that has ended.
            waiting.waiter.party.detach();
        }
        match self.recheck(slf)? {
            Some(step) => Ok(step),
            None => self.drive(slf, none()),
        }
    }

    /// The task runs again: it acquires, its time is up, or the wake-up was spurious (None).
    fn recheck(&mut self, slf: &Bound<'_, Self>) -> PyResult<Option<Step>> {
        let py = slf.py();
        let (Some(waiting), Some(wait)) = (self.waiting.as_mut(), self.wait.as_mut()) else {
            return Ok(None);
        };
        if waiting.waiter.is_signalled() {
            match wait.resume(py, &waiting.waiter) {
                Ok(true) => return self.finish(py, true).map(Some),
                Ok(false) => {}
                Err(error) => {
                    self.abandon(py);
                    return Err(error);
                }
            }
        }
        if waiting.is_expired {
            let served = wait.cancel(py, &waiting.waiter)?;
            return self.finish(py, served).map(Some);
        }
        if let Err(error) = waiting.arrange(slf, self.timeout_s) {
            self.abandon(py);
            return Err(error);
        }
        Ok(None)
    }

    fn end(slf: &Bound<'_, Self>, give_back: impl FnOnce(&mut dyn Wait)) -> PyResult<()> {
        let py = slf.py();
        let inner = {
            let mut this = slf.try_borrow_mut()?;
            let inner = this.waiting.as_ref().map(|waiting| waiting.inner.clone_ref(py));
            this.withdraw(py, give_back);
            this.wait = None;
            inner
        };
        match inner {
            Some(inner) if inner.bind(py).hasattr("close")? => inner.call_method0(py, "close").map(drop),
            _ => Ok(()),
        }
    }

    fn finish(&mut self, py: Python<'_>, served: bool) -> PyResult<Step> {
        if let Some(waiting) = self.waiting.take() {
            waiting.stop_timer(py);
        }
        match self.wait.take() {
            Some(mut wait) if served => wait.outcome(py).map(Step::Return),
            Some(mut wait) => wait.expired(py).map(Step::Return),
            None => Ok(Step::Return(py.None())),
        }
    }

    /// Withdraw because of this exception.
    fn give_up(&mut self, py: Python<'_>, error: &PyErr) {
        if let Some(wait) = &self.wait {
            wait.note(py, error);
        }
        self.abandon(py);
    }

    /// Withdraw; a grant in the meantime goes to the next waiter.
    fn abandon(&mut self, py: Python<'_>) {
        self.withdraw(py, |wait| wait.give_back(py));
    }

    /// Withdraw; `give_back` releases a grant in the meantime.
    fn withdraw(&mut self, py: Python<'_>, give_back: impl FnOnce(&mut dyn Wait)) {
        if let (Some(mut wait), Some(waiting)) = (self.wait.take(), self.waiting.take()) {
            waiting.stop_timer(py);
            match wait.withdraw(py, &waiting.waiter) {
                Ok(true) => give_back(wait.as_mut()),
                Ok(false) => {}
                Err(error) => error.write_unraisable(py, None),
            }
        }
    }
}

/// None, borrowed.
fn none() -> *mut ffi::PyObject {
    // SAFETY: the singleton lives for ever.
    unsafe { ffi::Py_None() }
}

fn send_on(inner: &Bound<'_, PyAny>, value: *mut ffi::PyObject) -> PyResult<Step> {
    let py = inner.py();
    let mut result = std::ptr::null_mut();
    // SAFETY: live objects (`value` is borrowed from the caller), attached; `result` receives a new reference or null.
    let sent = unsafe { ffi::PyIter_Send(inner.as_ptr(), value, &raw mut result) };
    match sent {
        // SAFETY: PYGEN_RETURN and PYGEN_NEXT come with a new reference.
        ffi::PySendResult::PYGEN_RETURN => Ok(Step::Return(unsafe { Bound::from_owned_ptr(py, result) }.unbind())),
        // SAFETY: as above.
        ffi::PySendResult::PYGEN_NEXT => Ok(Step::Yield(unsafe { Bound::from_owned_ptr(py, result) }.unbind())),
        _ => Err(PyErr::fetch(py)),
    }
}

/// Take the next step of the operation behind `slf`.
///
/// # Safety
/// `slf` is an Operation.
unsafe fn advance(py: Python<'_>, slf: *mut ffi::PyObject, value: *mut ffi::PyObject) -> PyResult<Step> {
    // SAFETY: by contract.
    let slf = unsafe { Bound::from_borrowed_ptr(py, slf).cast_into_unchecked::<Operation>() };
    Operation::step(&slf, value)
}

unsafe extern "C" fn iternext(slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a slot of Operation.
    Python::attach(|py| unsafe { stop::through_next(py, advance(py, slf, none())) })
}

unsafe extern "C" fn send_slot(
    slf: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
    result: *mut *mut ffi::PyObject,
) -> ffi::PySendResult {
    // SAFETY: a slot of Operation, with memory for the result.
    Python::attach(|py| unsafe { stop::through_send(py, advance(py, slf, value), result) })
}

unsafe extern "C" fn send(slf: *mut ffi::PyObject, value: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of Operation.
    fast::enter(|py| stop::through_method(unsafe { advance(py, slf, value) }))
}

#[pymethods]
impl Operation {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(slf: &Bound<'_, Self>) -> PyResult<Option<Py<PyAny>>> {
        match Self::step(slf, none())? {
            Step::Yield(object) => Ok(Some(object)),
            Step::Return(value) => Err(PyStopIteration::new_err((value,))),
        }
    }

    #[pyo3(signature = (kind, value=None, traceback=None))]
    fn throw(
        slf: &Bound<'_, Self>,
        kind: Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let mut this = slf.try_borrow_mut()?;
        let Some(waiting) = this.waiting.as_ref() else {
            this.wait = None;
            return Err(stop::thrown(kind, value)?);
        };
        let inner = waiting.inner.clone_ref(py);
        let thrown = match (value, traceback) {
            (None, None) => inner.call_method1(py, "throw", (kind,)),
            (value, traceback) => inner.call_method1(py, "throw", (kind, value, traceback)),
        };
        let step = match thrown {
            Ok(object) => return Ok(object),
            Err(error) if error.is_instance_of::<PyStopIteration>(py) => {
                let is_expired = error.value(py).getattr("value")?.is_truthy()?;
                if let Some(waiting) = this.waiting.as_mut() {
                    waiting.is_expired |= is_expired;
                }
                this.recheck_and_drive(slf)?
            }
            Err(error) if this.is_stubborn && !error.is_instance_of::<PyGeneratorExit>(py) => {
                let earlier = this.interruption.replace(error.into_value(py).into_any());
                drop(earlier);
                this.recheck_and_drive(slf)?
            }
            Err(error) => {
                this.give_up(py, &error);
                return Err(error);
            }
        };
        match step {
            Step::Yield(object) => Ok(object),
            Step::Return(value) => Err(PyStopIteration::new_err((value,))),
        }
    }

    /// Keep the place in the queue from now on, even if an exception is thrown into it; `_interruption`
    /// returns the exception.
    fn _persist(&mut self) {
        self.is_stubborn = true;
    }

    /// The exception that was thrown into it last while it persisted, or None.
    fn _interruption(&mut self) -> Option<Py<PyAny>> {
        self.interruption.take()
    }

    fn close(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        Self::end(slf, |wait| wait.give_back(py))
    }

    /// Called by the loop's timer when the time is up.
    fn _expire(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let future = match slf.try_borrow_mut()?.waiting.as_mut() {
            Some(Waiting {
                is_expired,
                backend: Backend::Asyncio { future, .. },
                ..
            }) => {
                *is_expired = true;
                future.clone_ref(py)
            }
            _ => return Ok(()),
        };
        if !future.call_method0(py, "done")?.is_truthy(py)? {
            future.call_method1(py, "set_result", (py.None(),))?;
        }
        Ok(())
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        if let Some(wait) = &self.wait {
            wait.traverse(&visit)?;
        }
        visit.call(&self.interruption)?;
        let Some(waiting) = &self.waiting else {
            return Ok(());
        };
        visit.call(&waiting.inner)?;
        match &waiting.backend {
            Backend::Parker(parker) => visit.call(parker),
            Backend::Asyncio {
                event_loop,
                mailbox,
                future,
                timer,
            } => {
                visit.call(event_loop)?;
                visit.call(mailbox)?;
                visit.call(future)?;
                if let Some(timer) = timer {
                    visit.call(timer)?;
                }
                // The party's own reference to the future is counted by the future's referrers.
                waiting.waiter.party.traverse(&visit)
            }
        }
    }

    fn __clear__(&mut self) {
        Python::attach(|py| self.abandon(py));
        self.wait = None;
        self.interruption = None;
    }
}

impl Suspended for Operation {
    fn leave_behind(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        Self::end(slf, |wait| wait.leave_behind(py))
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if self.waiting.is_some() {
            Python::attach(|py| interruption::keeping_the_error(py, || self.abandon(py)));
        }
    }
}

pub(in crate::sync) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<Operation>();
    fast::install(&class, &[(c"send", c"Resume.", Method::One(send))])?;
    stop::shorten(&class, iternext, send_slot);
    module.add_class::<Operation>()?;
    module.add_class::<Mailbox>()
}
