//! Waiting to put, to get, and for all tasks to be done.
//!
//! Invariant: a party that is called and finds nothing keeps its place in line.

use super::blocking::Wait;
use super::party::Party;
use super::queue::Queue;
use super::queue_access::{error, is_shut_down};
use pyo3::prelude::*;
use unsnarl_sync::{Arc, Waiter};

/// Waiting for room.
pub(super) struct PutWait {
    pub(super) queue: Py<Queue>,
    pub(super) item: Py<PyAny>,
}

impl Wait for PutWait {
    fn attempt(&mut self, py: Python<'_>) -> PyResult<bool> {
        Queue::give(self.queue.bind(py), self.item.bind(py), None)
    }
    fn begin(&mut self, py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        Queue::give(self.queue.bind(py), self.item.bind(py), Some(waiter))
    }
    fn resume(&mut self, py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        Queue::give(self.queue.bind(py), self.item.bind(py), Some(waiter))
    }
    fn cancel(&mut self, _py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        self.queue.get().channel.cancel(waiter);
        Ok(false)
    }
    fn outcome(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(py.None())
    }
    fn expired(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Err(error(py, "Full"))
    }
    fn object(&self) -> usize {
        self.queue.as_ptr() as usize
    }
    fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.queue)?;
        visit.call(&self.item)
    }
}

/// Waiting for an item.
pub(super) struct GetWait {
    pub(super) queue: Py<Queue>,
    pub(super) item: Option<Py<PyAny>>,
    ends_iteration: bool,
}

impl GetWait {
    pub(super) fn new(queue: Py<Queue>, ends_iteration: bool) -> Self {
        Self {
            queue,
            item: None,
            ends_iteration,
        }
    }

    fn take(&mut self, py: Python<'_>, waiter: Option<&Arc<Waiter<Party>>>) -> PyResult<bool> {
        let taken = Queue::take(self.queue.bind(py), waiter);
        match taken {
            Ok(item) => {
                self.item = item.map(Bound::unbind);
                Ok(self.item.is_some())
            }
            Err(error) if self.ends_iteration && is_shut_down(py, &error)? => {
                Err(pyo3::exceptions::PyStopAsyncIteration::new_err(()))
            }
            Err(error) => Err(error),
        }
    }
}

impl Wait for GetWait {
    fn attempt(&mut self, py: Python<'_>) -> PyResult<bool> {
        self.take(py, None)
    }
    fn begin(&mut self, py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        self.take(py, Some(waiter))
    }
    fn resume(&mut self, py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        self.take(py, Some(waiter))
    }
    fn cancel(&mut self, _py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        self.queue.get().channel.cancel(waiter);
        Ok(false)
    }
    fn outcome(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.item.take().unwrap_or_else(|| py.None()))
    }
    fn expired(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Err(error(py, "Empty"))
    }
    fn object(&self) -> usize {
        self.queue.as_ptr() as usize
    }
    fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.queue)?;
        visit.call(&self.item)
    }
}

/// Waiting until every item was reported done.
pub(super) struct JoinWait {
    pub(super) queue: Py<Queue>,
}

impl Wait for JoinWait {
    fn attempt(&mut self, _py: Python<'_>) -> PyResult<bool> {
        Ok(self.queue.get().channel.unfinished() == 0)
    }
    fn begin(&mut self, _py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        Ok(self.queue.get().channel.begin_join(waiter))
    }
    fn cancel(&mut self, _py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        Ok(self.queue.get().channel.cancel_join(waiter))
    }
    fn object(&self) -> usize {
        self.queue.as_ptr() as usize
    }
    fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.queue)
    }
}
