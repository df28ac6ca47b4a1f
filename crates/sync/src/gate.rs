//! A gate that is open or closed: the core of Event, Latch, CountdownEvent.
//!
//! Invariant: a waiter is in the queue only while the gate is closed; opening
//! grants everybody who is in the queue, even if the gate closes again at once.

use crate::shim::{Arc, AtomicBool, Ordering, Slow};
use crate::waiter::{GRANTED, Port, WaitQueue, Waiter, Wakes};

/// Open or closed, and those who wait for it to open.
#[derive(Debug)]
pub struct Gate<P> {
    open: AtomicBool,
    slow: Slow<WaitQueue<P>>,
}

impl<P: Port> Gate<P> {
    /// Make a gate.
    pub fn new(open: bool) -> Self {
        Self {
            open: AtomicBool::new(open),
            slow: Slow::new(),
        }
    }

    /// Whether it is open.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Parties in the queue.
    pub fn waiting(&self) -> usize {
        self.slow.peek().map_or(0, |queue| queue.len())
    }

    /// Open it and let everybody through; threads are woken in a cascade of `fan_out`.
    #[inline]
    pub fn open(&self, fan_out: usize) {
        // ORDERING: SeqCst with `begin`: either it sees the gate open, or this sees its queue.
        if self.open.swap(true, Ordering::SeqCst) {
            return;
        }
        let mut wakes = Wakes::none();
        match self.slow.peek() {
            Some(mut queue) if !queue.is_empty() => {
                wakes.signal_all(queue.drain(), GRANTED, fan_out);
            }
            _ => return,
        }
        wakes.run();
    }

    /// Close it.
    #[inline]
    pub fn close(&self) {
        self.open.store(false, Ordering::SeqCst);
    }

    /// Enqueue the waiter unless the gate is open. True: it may pass.
    pub fn begin(&self, waiter: &Arc<Waiter<P>>) -> bool {
        let mut queue = self.slow.lock();
        queue.push(waiter);
        if self.open.load(Ordering::SeqCst) {
            queue.remove(waiter);
            return true;
        }
        false
    }

    /// Withdraw. True: the gate had been opened for it.
    pub fn cancel(&self, waiter: &Arc<Waiter<P>>) -> bool {
        let mut queue = self.slow.lock();
        !queue.remove(waiter) && waiter.state() == GRANTED
    }

    /// Forget the waiters: for the child of a fork.
    pub fn reset(&self) {
        if let Some(mut queue) = self.slow.peek() {
            *queue = WaitQueue::default();
        }
    }
}
