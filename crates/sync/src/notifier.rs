//! Those who wait for a notification: the core of Condition.
//!
//! A notified waiter either moves to the lock's queue ([`Notifier::move_to`]: it wakes when
//! it can have the lock) or is granted at once ([`Notifier::notify`]). Both happen in one
//! step under this core's mutex, so a waiter that finds itself gone from here, because its
//! time is up, is in the lock's queue or granted already: never on its way in between.
//!
//! Invariant: a waiter in the queue has not been notified; the lock's mutex is taken with
//! this one held, never the other way round.

use crate::permits::Permits;
use crate::shim::{Arc, Slow};
use crate::waiter::{GRANTED, Port, WaitQueue, Waiter, Wakes};

/// A queue of parties to notify.
#[derive(Debug)]
pub struct Notifier<P> {
    slow: Slow<WaitQueue<P>>,
}

impl<P: Port> Default for Notifier<P> {
    fn default() -> Self {
        Self { slow: Slow::new() }
    }
}

impl<P: Port> Notifier<P> {
    /// Parties in the queue.
    pub fn waiting(&self) -> usize {
        self.slow.peek().map_or(0, |queue| queue.len())
    }

    /// Enqueue.
    pub fn begin(&self, waiter: &Arc<Waiter<P>>) {
        self.slow.lock().push(waiter);
    }

    /// Notify up to `count` waiters, the longest waiting first; threads are woken in a
    /// cascade of `fan_out`.
    pub fn notify(&self, count: usize, fan_out: usize) {
        self.take(count, |waiters, wakes| {
            wakes.signal_all(waiters, GRANTED, fan_out);
        });
    }

    /// The same, but they move on to the lock's queue without running.
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

    /// Withdraw. True: it had not been notified.
    pub fn cancel(&self, waiter: &Arc<Waiter<P>>) -> bool {
        self.slow.lock().remove(waiter)
    }

    /// Forget the waiters: for the child of a fork.
    pub fn reset(&self) {
        if let Some(mut queue) = self.slow.peek() {
            *queue = WaitQueue::default();
        }
    }
}
