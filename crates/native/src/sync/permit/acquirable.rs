//! Waiting for a permit of a lock or a semaphore, the same for all of them.

use crate::sync::calls::arguments::Timeout;
use crate::sync::wait::party::Party;
use crate::sync::wait::protocol::{Wait, boolean};
use crate::sync::who::identity::{self, NO_TASK};
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use unsnarl_sync::{Arc, Permits, Waiter};

/// A class whose core is [`Permits`].
pub(in crate::sync) trait Acquirable: pyo3::PyClass<Frozen = True> + Sync + Send {
    /// Whether it makes a difference which task acquires.
    const KNOWS_TASKS: bool;
    /// Whether only the task that acquired may release, in a task.
    const TASKS_OWN: bool;
    /// Whether a timeout that is too long is an error only where it has to wait.
    const LOOKS_FIRST: bool = false;
    /// The doc string of `acquire`.
    const ACQUIRE: &'static std::ffi::CStr = c"($self, /, blocking=True, timeout=-1)\n--\n\nAcquire; with blocking=False or a timeout (seconds), False if that failed.";

    /// The core.
    fn permits(&self) -> &Permits<Party>;
    /// Note that `who` has a permit now.
    fn taken(&self, who: usize);
    /// Give one permit back, whoever held it.
    fn put_back(&self);
    /// Take without waiting, for the calling thread or greenlet.
    fn try_take(&self, py: Python<'_>) -> bool;
    /// Release once for the calling thread or greenlet; false if there is nothing to release.
    fn try_release(&self, py: Python<'_>) -> bool;
    /// What to raise then.
    fn not_held() -> PyErr;
    /// What the arguments of `acquire` mean.
    fn timeout(blocking: Option<&Bound<'_, PyAny>>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<Timeout>;

    /// Take without waiting on behalf of `who`.
    fn try_take_for(&self, who: usize) -> bool {
        let taken = self.permits().try_acquire();
        if taken {
            self.taken(who);
        }
        taken
    }
    /// Release once what `who` holds; false if it holds nothing.
    fn try_release_for(&self, _who: usize) -> bool {
        false
    }
    /// Who may release it; 0 for nobody in particular.
    fn owner(&self) -> usize {
        0
    }
    /// Whether the end of a `with` is a call of `release` by its name, as in a class that the standard library
    /// writes in Python: one derived from it may have a `release` of its own.
    fn exits_by_name(_py: Python<'_>, _class: *mut pyo3::ffi::PyTypeObject) -> bool {
        false
    }
    /// Raise if waiting without end could not end.
    fn refuse_deadlock(&self, _py: Python<'_>) -> PyResult<()> {
        Ok(())
    }
    /// On whose behalf a synchronous call waits.
    fn caller(_py: Python<'_>) -> usize {
        0
    }
    /// On whose behalf an asynchronous call does; [`NO_TASK`] also if that is not known before the first step.
    fn task(py: Python<'_>) -> PyResult<usize> {
        if Self::KNOWS_TASKS {
            identity::task_if_any(py)
        } else {
            Ok(NO_TASK)
        }
    }
}

/// Waiting for one permit on behalf of `who`.
pub(in crate::sync) struct PermitWait<T> {
    pub(in crate::sync) object: Py<T>,
    pub(in crate::sync) who: usize,
    /// Answer None instead of True: `async with` binds nothing.
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
