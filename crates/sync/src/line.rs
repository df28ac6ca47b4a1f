//! A line of waiters that are told to try, one at a time.
//!
//! The one that was told is the *heir*. While an heir is on its way nobody else
//! is woken: it wakes the next when it has looked, if there is reason to. That
//! makes a hundred `put`s cost one wake-up instead of a hundred.
//!
//! Invariant: if what the line waits for is available and the line is not empty,
//! then a live heir is on its way, or the mutex is held by whoever will name one.

use crate::shim::Arc;
use crate::waiter::{Port, WOKEN, WaitQueue, Waiter, Wakes};

#[derive(Debug)]
pub(crate) struct Line<P> {
    pub(crate) queue: WaitQueue<P>,
    heir: Option<Arc<Waiter<P>>>,
}

impl<P> Default for Line<P> {
    fn default() -> Self {
        Self {
            queue: WaitQueue::default(),
            heir: None,
        }
    }
}

impl<P: Port> Line<P> {
    /// Whether somebody who was told to try is still on its way.
    pub(crate) fn has_heir(&mut self) -> bool {
        if self.heir.as_ref().is_some_and(|heir| !heir.port.is_alive()) {
            self.heir = None;
        }
        self.heir.is_some()
    }

    /// Tell the first waiter to try, unless one is on its way already.
    pub(crate) fn call_next(&mut self, wakes: &mut Wakes<P>) {
        if self.has_heir() {
            return;
        }
        if let Some(first) = self.queue.first().cloned() {
            self.heir = Some(Arc::clone(&first));
            wakes.signal(first, WOKEN);
        }
    }

    /// Tell everybody to try.
    pub(crate) fn call_all(&mut self, wakes: &mut Wakes<P>) {
        let everybody: Vec<_> = self.queue.drain().collect();
        for waiter in everybody {
            self.queue.push(&waiter);
            wakes.signal(waiter, WOKEN);
        }
        self.heir = None;
    }

    /// The waiter has looked, or gives up: it is no longer on its way.
    pub(crate) fn arrive(&mut self, waiter: &Arc<Waiter<P>>) {
        if self.heir.as_ref().is_some_and(|heir| Arc::ptr_eq(heir, waiter)) {
            self.heir = None;
        }
    }

    pub(crate) fn leave(&mut self, waiter: &Arc<Waiter<P>>) -> bool {
        self.arrive(waiter);
        self.queue.remove(waiter)
    }
}
