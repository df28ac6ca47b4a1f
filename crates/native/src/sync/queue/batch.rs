//! Many items in one call: put as far as there is room, got as far as there are items.
//!
//! Invariant: an item of a batch is in the queue or still to be put, never both; `put` counts those in the
//! queue. A party that waits for a batch has got nothing yet.

use super::access::{class_of_error, error, is_shut_down};
use super::items::Item;
use super::state::Queue;
use crate::sync::wait::party::Party;
use crate::sync::wait::protocol::Wait;
use pyo3::prelude::*;
use pyo3::types::PyList;
use unsnarl_sync::{Arc, Take, Waiter};

/// Record in the error that ends a batch how many items were put. The queue's own errors, which have no
/// message, have the number in their arguments; all others in an attribute `put`.
fn after(py: Python<'_>, error: &PyErr, put: usize) {
    let exception = error.value(py);
    let is_ours = ["Full", "ShutDown"]
        .iter()
        .any(|name| class_of_error(py, name).is_ok_and(|class| exception.is_instance(&class).unwrap_or(false)));
    // An exception whose class accepts no attributes is left as it is.
    let _ = if is_ours {
        exception.setattr("args", (put,))
    } else {
        exception.setattr("put", put)
    };
}

/// The wait for room, for one item after the other.
pub(in crate::sync) struct PutManyWait {
    queue: Py<Queue>,
    items: Vec<Py<PyAny>>,
    put: usize,
}

impl PutManyWait {
    pub(in crate::sync) fn new(queue: &Bound<'_, Queue>, items: &Bound<'_, PyAny>) -> PyResult<Self> {
        let items = items.try_iter()?.map(|item| item.map(Bound::unbind));
        Ok(Self {
            items: items.collect::<PyResult<_>>()?,
            queue: queue.clone().unbind(),
            put: 0,
        })
    }

    /// Put as many items as there is room for. False: some are left, and the waiter is enqueued, at the end.
    fn put(&mut self, py: Python<'_>, waiter: Option<&Arc<Waiter<Party>>>) -> PyResult<bool> {
        let queue = self.queue.bind(py);
        while self.put < self.items.len() {
            let has_hooks = queue.get().hooks().is_some();
            let count = if has_hooks {
                usize::from(Queue::give(queue, self.items[self.put].bind(py), waiter)?)
            } else {
                // SAFETY: attached, alive.
                let of = |item: &Py<PyAny>| unsafe { Item::of(item.as_ptr()) };
                let mut rest = self.items[self.put..].iter().map(of);
                let given = queue.get().channel.give_many(&mut rest, waiter);
                given.map_err(|_| error(py, "ShutDown"))?
            };
            self.put += count;
            // The queue was opened up meanwhile: once more, through the hooks.
            if count == 0 && has_hooks == queue.get().hooks().is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Wait for PutManyWait {
    fn attempt(&mut self, py: Python<'_>) -> PyResult<bool> {
        let put = self.put(py, None);
        put.inspect_err(|error| self.note(py, error))
    }
    fn begin(&mut self, py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        let put = self.put(py, Some(waiter));
        put.inspect_err(|error| {
            // The waiter is enqueued if the queue was opened up during the check and the hooks then raised.
            self.queue.get().channel.cancel(waiter);
            self.note(py, error);
        })
    }
    fn resume(&mut self, py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        self.begin(py, waiter)
    }
    fn cancel(&mut self, _py: Python<'_>, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
        self.queue.get().channel.cancel(waiter);
        Ok(false)
    }
    fn note(&self, py: Python<'_>, error: &PyErr) {
        after(py, error, self.put);
    }
    fn outcome(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(py.None())
    }
    fn expired(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if self.attempt(py)? {
            return Ok(py.None());
        }
        let error = error(py, "Full");
        self.note(py, &error);
        Err(error)
    }
    fn object(&self) -> usize {
        self.queue.as_ptr() as usize
    }
    fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.queue)?;
        self.items.iter().try_for_each(|item| visit.call(item))
    }
}

impl Queue {
    /// Get a list of as many items as are there, up to `count`; None if there is none, with the waiter
    /// enqueued.
    pub(in crate::sync) fn take_up_to<'py>(
        slf: &Bound<'py, Self>,
        count: usize,
        waiter: Option<&Arc<Waiter<Party>>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let objects = Self::take_objects(slf, count, waiter)?;
        let list = objects.map(|objects| PyList::new(slf.py(), objects)).transpose()?;
        Ok(list.map(Bound::into_any))
    }

    fn take_objects<'py>(
        slf: &Bound<'py, Self>,
        count: usize,
        waiter: Option<&Arc<Waiter<Party>>>,
    ) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let (py, this) = (slf.py(), slf.get());
        if count == 0 {
            return Ok(Some(Vec::new()));
        }
        if this.hooks().is_none() {
            let mut taken = Vec::new();
            match this.channel.take_many(count, &mut taken, waiter) {
                Take::Taken(_) => {
                    // SAFETY: owned references out of the store.
                    let object = |item: Item| unsafe { Bound::from_owned_ptr(py, item.into_ptr()) };
                    return Ok(Some(taken.into_iter().map(object).collect()));
                }
                Take::Empty => return Ok(None),
                Take::Closed => return Err(error(py, "ShutDown")),
                // The queue was opened up meanwhile: there are hooks now.
                Take::Elsewhere => {}
            }
        }
        let Some(first) = Self::take(slf, waiter)? else {
            return Ok(None);
        };
        let mut objects = vec![first];
        while objects.len() < count {
            match Self::take(slf, None) {
                Ok(Some(object)) => objects.push(object),
                Ok(None) => break,
                Err(error) if is_shut_down(py, &error)? => break,
                Err(error) => {
                    // Otherwise the items would be lost with the call.
                    error.value(py).setattr(pyo3::intern!(py, "got"), objects)?;
                    return Err(error);
                }
            }
        }
        Ok(Some(objects))
    }
}
