//! The state of a queue: the core with the items, the hooks if it has any, and its `maxsize`.
//!
//! Invariant: `hooks` is set once, and from then on the core only counts the items.

use super::hooks::Hooks;
use super::items::{Items, release_all};
use crate::sync::wait::gil;
use crate::sync::wait::party::Party;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::collections::VecDeque;
use std::sync::Mutex;
use unsnarl_sync::Channel;

/// A first-in-first-out queue for threads, tasks and greenlets.
///
/// `maxsize` bounds it, 0 does not. `Full` or `Empty` if there is no room or no item (in time, seconds);
/// `ShutDown` after `shutdown`. Subclasses may define `_init`, `_qsize`, `_put` and `_get`.
/// Fairness: items leave in order. Waiters are notified in order of arrival and keep their place; a party
/// that need not wait may overtake them, without a bound.
/// Cancellation: a cancelled get has taken nothing, a cancelled put has put nothing; a notified waiter that
/// leaves notifies the next.
#[pyclass(frozen, subclass, weakref, module = "unsnarl")]
pub(in crate::sync) struct Queue {
    pub(in crate::sync) channel: Channel<Items, Party>,
    /// Boxed, since most queues have none.
    pub(in crate::sync) hooks: PyOnceLock<Box<Hooks>>,
    /// The argument `maxsize`, if that is not the capacity as an int.
    pub(in crate::sync) maxsize: Mutex<Option<Py<PyAny>>>,
}

impl Queue {
    /// An empty first-in-first-out queue without a bound, until `__init__` runs.
    pub(in crate::sync) fn fresh() -> Self {
        Self {
            channel: Channel::new(Items::Fifo(VecDeque::new()), 0, gil::has_gil()),
            hooks: PyOnceLock::new(),
            maxsize: Mutex::default(),
        }
    }

    #[inline]
    pub(in crate::sync) fn hooks(&self) -> Option<&Hooks> {
        // SAFETY: every caller is a method of a Python object, hence attached.
        self.hooks.get(unsafe { Python::assume_attached() }).map(Box::as_ref)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        Python::attach(|py| release_all(py, self.channel.drain(false, 1)));
    }
}
