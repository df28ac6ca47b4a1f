//! The waits for room, for an item, and for all items to be done; and the calls that use them.
//!
//! When its time is up, a party checks once more, as in the standard library. There may be an item whose
//! notified waiter has not run yet; and a `_qsize` of the program's own may change without a notification, as
//! where items become due.
//!
//! Invariant: a party that is notified and finds nothing keeps its place in the queue.

use super::access::{error, is_shut_down};
use super::hooks::Change;
use super::state::Queue;
use crate::sync::calls::arguments::Timeout;
use crate::sync::wait::blocking::block;
use crate::sync::wait::gil;
use crate::sync::wait::party::Party;
use crate::sync::wait::protocol::Wait;
use pyo3::prelude::*;
use unsnarl_sync::{Arc, Waiter};

/// The wait for room for one item.
pub(in crate::sync) struct PutWait {
    pub(in crate::sync) queue: Py<Queue>,
    pub(in crate::sync) item: Py<PyAny>,
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
        if self.attempt(py)? {
            return Ok(py.None());
        }
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

/// The wait for one item, or for the first of a batch, which takes the others that are there then.
pub(in crate::sync) struct GetWait {
    queue: Py<Queue>,
    what: What,
    /// The item, or the list of items.
    taken: Option<Py<PyAny>>,
}

/// The items that a [`GetWait`] takes.
#[derive(Clone, Copy)]
enum What {
    One,
    /// The next item of an asynchronous iteration, which a shutdown ends.
    Next,
    /// Up to this many.
    Many(usize),
}

impl GetWait {
    pub(in crate::sync) fn new(queue: Py<Queue>, ends_iteration: bool) -> Self {
        let what = if ends_iteration { What::Next } else { What::One };
        Self {
            queue,
            what,
            taken: None,
        }
    }

    pub(in crate::sync) fn many(queue: Py<Queue>, count: usize) -> Self {
        Self {
            queue,
            what: What::Many(count),
            taken: None,
        }
    }

    fn take(&mut self, py: Python<'_>, waiter: Option<&Arc<Waiter<Party>>>) -> PyResult<bool> {
        let queue = self.queue.bind(py);
        let taken = match self.what {
            What::Many(count) => Queue::take_up_to(queue, count, waiter),
            What::One | What::Next => Queue::take(queue, waiter),
        };
        match taken {
            Ok(taken) => {
                self.taken = taken.map(Bound::unbind);
                Ok(self.taken.is_some())
            }
            Err(error) if matches!(self.what, What::Next) && is_shut_down(py, &error)? => {
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
        Ok(self.taken.take().unwrap_or_else(|| py.None()))
    }
    fn expired(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if self.attempt(py)? {
            return self.outcome(py);
        }
        Err(error(py, "Empty"))
    }
    fn object(&self) -> usize {
        self.queue.as_ptr() as usize
    }
    fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.queue)?;
        visit.call(&self.taken)
    }
}

/// The wait until every item was reported done.
pub(in crate::sync) struct JoinWait {
    pub(in crate::sync) queue: Py<Queue>,
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

/// How often a thread yields its processor to a partner before it waits, where there is no GIL. Each costs less than a
/// microsecond if no other thread wants the processor, and a sleep with its wake-up costs as much as all of them.
/// Pauses of the processor instead of yields, or none, left a third of the items per second (measured with 2 and 4
/// producers and consumers on two processors, also with a load of 10 beside them).
const LOOKS: usize = 20;

/// Whether the queue became ready after a thread looked a few times more. Without a GIL only: with one, no other thread can
/// put or take before this one waits.
///
/// A waiter in the queue makes every put and get notify, which takes several times as long as a plain one. So one is
/// worth avoiding where the partner is a few items behind.
fn is_ready_soon(py: Python<'_>, is_ready: impl Fn() -> bool + Send + Sync) -> bool {
    !gil::has_gil()
        && py.detach(|| {
            (0..LOOKS).any(|_| {
                std::thread::yield_now();
                is_ready()
            })
        })
}

impl Queue {
    /// The module that waits by the program's own `wait`, if the program has given one to this condition and the call may
    /// wait.
    pub(in crate::sync) fn own_wait<'py>(
        slf: &Bound<'py, Self>,
        what: Change,
        timeout: Timeout,
    ) -> PyResult<Option<Bound<'py, PyModule>>> {
        let py = slf.py();
        match slf.get().hooks() {
            Some(hooks) if !matches!(timeout, Timeout::None) && hooks.has_own_wait(py, what)? => {
                py.import("unsnarl.sync.queue_conditions").map(Some)
            }
            _ => Ok(None),
        }
    }

    pub(in crate::sync) fn put_within(
        slf: &Bound<'_, Self>,
        item: &Bound<'_, PyAny>,
        timeout: Timeout,
    ) -> PyResult<()> {
        let py = slf.py();
        if Self::give(slf, item, None)? {
            return Ok(());
        }
        if matches!(timeout, Timeout::None) {
            return Err(error(py, "Full"));
        }
        let this = slf.get();
        if is_ready_soon(py, || !this.channel.is_full()) && Self::give(slf, item, None)? {
            return Ok(());
        }
        let mut wait = PutWait {
            queue: slf.clone().unbind(),
            item: item.clone().unbind(),
        };
        if block(py, &mut wait, timeout.deadline())? {
            Ok(())
        } else {
            wait.expired(py).map(drop)
        }
    }

    pub(in crate::sync) fn get_within<'py>(slf: &Bound<'py, Self>, timeout: Timeout) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if let Some(item) = Self::take(slf, None)? {
            return Ok(item);
        }
        if matches!(timeout, Timeout::None) {
            return Err(error(py, "Empty"));
        }
        let this = slf.get();
        if is_ready_soon(py, || !this.channel.is_empty())
            && let Some(item) = Self::take(slf, None)?
        {
            return Ok(item);
        }
        let mut wait = GetWait::new(slf.clone().unbind(), false);
        let item = if block(py, &mut wait, timeout.deadline())? {
            wait.outcome(py)?
        } else {
            wait.expired(py)?
        };
        Ok(item.into_bound(py))
    }
}

/// Perform the wait, within the timeout. Returns what a task would get from it.
pub(in crate::sync) fn perform_within(py: Python<'_>, wait: &mut dyn Wait, timeout: Timeout) -> PyResult<Py<PyAny>> {
    let is_done = wait.attempt(py)? || (!matches!(timeout, Timeout::None) && block(py, wait, timeout.deadline())?);
    if is_done { wait.outcome(py) } else { wait.expired(py) }
}
