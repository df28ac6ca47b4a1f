//! Waiting for a permit of a lock or a semaphore, the same for all of them.

use super::blocking::Wait;
use super::party::Party;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use unsnarl_sync::{Arc, Permits, Waiter};

/// A class whose core is [`Permits`].
pub(super) trait Acquirable: pyo3::PyClass<Frozen = True> + Sync + Send {
    /// The core.
    fn permits(&self) -> &Permits<Party>;
    /// `who` has a permit now: note it.
    fn taken(&self, who: usize);
    /// Give one permit back, whoever held it.
    fn put_back(&self);
}

/// Waiting for one permit on behalf of `who`.
pub(super) struct PermitWait<T> {
    pub(super) object: Py<T>,
    pub(super) who: usize,
    /// Answer None instead of True: `async with` binds nothing.
    pub(super) silent: bool,
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
    fn attempt(&mut self, _py: Python<'_>) -> PyResult<bool> {
        Ok(self.note(self.object.get().permits().try_acquire()))
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
        Ok(if self.silent {
            py.None()
        } else {
            true.into_pyobject(py)?.to_owned().into_any().unbind()
        })
    }
    fn expired(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(false.into_pyobject(py)?.to_owned().into_any().unbind())
    }
    fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.object)
    }
}
