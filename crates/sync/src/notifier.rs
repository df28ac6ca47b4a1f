//! A queue of parties that wait for a notification: the core of Condition.
//!
//! A notified waiter moves to the lock's queue ([`Notifier::move_to`]), where it wakes when it can have the
//! lock, or is granted immediately ([`Notifier::notify`]). Either happens in one step under this core's
//! mutex. So a waiter that times out and is no longer in this queue is in the lock's queue or granted
//! already, never in between.
//!
//! Invariant: a waiter in the queue has not been notified. The lock's mutex is taken with this core's mutex
//! held, never the other way round.

use crate::permits::Permits;
use crate::shim::{Arc, Slow};
use crate::waiter::{GRANTED, Unparker, Waiter, WaiterList, Wakes};

/// A queue of parties to notify.
#[derive(Debug)]
pub struct Notifier<P> {
    slow: Slow<WaiterList<P>>,
}

impl<P: Unparker> Default for Notifier<P> {
    fn default() -> Self {
        Self { slow: Slow::new() }
    }
}

impl<P: Unparker> Notifier<P> {
    /// The number of waiters.
    pub fn waiting(&self) -> usize {
        self.slow.peek().map_or(0, |queue| queue.len())
    }

    /// Enqueue.
    pub fn begin(&self, waiter: &Arc<Waiter<P>>) {
        self.slow.lock().push(waiter);
    }

    /// Grant up to `count` waiters, the longest waiting first; threads are woken in `fan_out` chains.
    pub fn notify(&self, count: usize, fan_out: usize) {
        self.take(count, |waiters, wakes| {
            wakes.signal_all(waiters, GRANTED, fan_out);
        });
    }

    /// As `notify`, but the waiters move to the lock's queue without running.
    #[inline]
    pub fn move_to(&self, permits: &Permits<P>, count: usize) {
        self.take(count, |waiters, wakes| {
            waiters.for_each(|waiter| permits.adopt(&waiter, wakes));
        });
    }

    #[inline]
    fn take(&self, count: usize, hand_on: impl FnOnce(&mut dyn Iterator<Item = Arc<Waiter<P>>>, &mut Wakes<P>)) {
        let Some(mut queue) = self.slow.peek().filter(|queue| !queue.is_empty()) else {
            return;
        };
        let mut wakes = Wakes::none();
        hand_on(&mut std::iter::from_fn(|| queue.pop()).take(count), &mut wakes);
        drop(queue);
        wakes.run();
    }

    /// Remove a waiter that gives up. True: it had not been notified.
    pub fn cancel(&self, waiter: &Arc<Waiter<P>>) -> bool {
        self.slow.lock().remove(waiter)
    }

    /// Forget the waiters, in the child of a fork.
    pub fn reset(&self) {
        if let Some(mut queue) = self.slow.peek() {
            *queue = WaiterList::default();
        }
    }
}
