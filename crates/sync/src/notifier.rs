//! Those who wait for a notification: the core of Condition.
//!
//! `take` only removes waiters. The caller then hands each of them either to the
//! lock ([`crate::Permits::adopt`]: it wakes when it can have the lock) or
//! straight to its port with [`Notifier::grant`].
//!
//! Invariant: a waiter in the queue has not been notified.

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

    /// Remove up to `count` waiters, the longest waiting first.
    #[inline]
    pub fn take(&self, count: usize) -> Vec<Arc<Waiter<P>>> {
        match self.slow.peek() {
            Some(mut queue) if !queue.is_empty() => std::iter::from_fn(|| queue.pop()).take(count).collect(),
            _ => Vec::new(),
        }
    }

    /// Tell waiters that `take` removed; threads are woken in a cascade of `fan_out`.
    pub fn grant(waiters: Vec<Arc<Waiter<P>>>, fan_out: usize) {
        let mut wakes = Wakes::none();
        wakes.signal_all(waiters.into_iter(), GRANTED, fan_out);
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
