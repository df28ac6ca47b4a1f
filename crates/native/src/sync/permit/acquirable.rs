//! [`Acquirable`]: what a class provides whose core is [`Permits`], and the wait for one of its permits.
//!
//! Invariant: the owner is recorded (`taken`) right after the permit was acquired, whichever way.

use crate::sync::calls::arguments::Timeout;
use crate::sync::wait::party::Party;
use crate::sync::wait::protocol::{Wait, boolean};
use crate::sync::who::identity::{self, NO_TASK};
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use unsnarl_sync::{Arc, Permits, Waiter};

/// A class whose core is [`Permits`].
pub(in crate::sync) trait Acquirable: pyo3::PyClass<Frozen = True> + Sync + Send {
    /// Whether the class distinguishes tasks.
    const KNOWS_TASKS: bool;
    /// Whether an asynchronous release requires the task that acquired.
    const TASKS_OWN: bool;
    /// Whether a timeout that is too long is an error only if the call has to wait.
    const TRIES_FIRST: bool = false;
    /// The doc string of `acquire`.
    const ACQUIRE: &'static std::ffi::CStr = c"($self, /, blocking=True, timeout=-1)\n--\n\nAcquire; with blocking=False or a timeout (seconds), False if that failed.";

    /// The core.
    fn permits(&self) -> &Permits<Party>;
    /// Record that `who` has a permit now.
    fn taken(&self, who: usize);
    /// Release one permit, whichever party holds it.
    fn put_back(&self);
    /// Acquire without waiting, for the calling thread or greenlet.
    fn try_take(&self, py: Python<'_>) -> bool;
    /// Release once for the calling thread or greenlet; false if it holds nothing.
    fn try_release(&self, py: Python<'_>) -> bool;
    /// The error of a release without a permit.
    fn not_held() -> PyErr;
    /// The timeout that the arguments of `acquire` mean.
    fn timeout(blocking: Option<&Bound<'_, PyAny>>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<Timeout>;

    /// Acquire without waiting, on behalf of `who`.
    fn try_take_for(&self, who: usize) -> bool {
        let taken = self.permits().try_acquire();
        if taken {
            self.taken(who);
        }
        taken
    }
    /// Release once for `who`; false if `who` holds nothing.
    fn try_release_for(&self, _who: usize) -> bool {
        false
    }
    /// The owner, which alone may release; 0 for none.
    fn owner(&self) -> usize {
        0
    }
    /// Whether the end of a `with` calls `release` by its name, as in a class that the standard library
    /// writes in Python: a derived class may have a `release` of its own.
    fn exits_by_name(_py: Python<'_>, _class: *mut pyo3::ffi::PyTypeObject) -> bool {
        false
    }
    /// Raise if waiting without end could not end.
    fn refuse_deadlock(&self, _py: Python<'_>) -> PyResult<()> {
        Ok(())
    }
    /// The owner of a synchronous call.
    fn caller(_py: Python<'_>) -> usize {
        0
    }
    /// The owner of an asynchronous call; [`NO_TASK`] also if that is not known before the first step.
    fn task(py: Python<'_>) -> PyResult<usize> {
        if Self::KNOWS_TASKS {
            identity::task_if_any(py)
        } else {
            Ok(NO_TASK)
        }
    }
}

/// The wait for one permit on behalf of `who`.
pub(in crate::sync) struct PermitWait<T> {
    pub(in crate::sync) object: Py<T>,
    pub(in crate::sync) who: usize,
    /// Return None instead of True, for `async with`, which binds nothing.
    pub(in crate::sync) silent: bool,
}

impl<T: Acquirable> PermitWait<T> {
    fn note(&self, taken: bool) -> bool {
        if taken {
            self.object.get().taken(self.who);
        }
        taken
    }
}

impl<T: Acquirable> Wait for PermitWait<T> {
    fn attempt(&mut self, py: Python<'_>) -> PyResult<bool> {
        if T::KNOWS_TASKS && self.who == NO_TASK {
            self.who = identity::task(py)?;
        }
        Ok(self.object.get().try_take_for(self.who))
    }
    fn begin(&mut self, _py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        Ok(self.note(self.object.get().permits().begin(waiter)))
    }
    fn resume(&mut self, _py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        Ok(self.note(self.object.get().permits().resume(waiter)))
    }
    fn cancel(&mut self, _py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        Ok(self.note(self.object.get().permits().cancel(waiter)))
    }
    fn give_back(&mut self, _py: Python<'_>) {
        self.object.get().put_back();
    }
    fn outcome(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(if self.silent { py.None() } else { boolean(py, true) })
    }
    fn task(&self) -> usize {
        self.who
    }
    fn object(&self) -> usize {
        self.object.as_ptr() as usize
    }
    fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.object)
    }
}
