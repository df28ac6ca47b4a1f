//! Rendezvous of a fixed number of parties: the core of Barrier.
//!
//! Each cycle's waiters are released at once and leave on their own, so the next
//! cycle may fill while the last one drains.
//!
//! Invariant: `arrived` counts the waiters of the current cycle, the one that
//! runs the action included; a broken barrier has none.

use crate::shim::{Arc, Mutex, lock};
use crate::waiter::{GRANTED, Port, REFUSED, WaitQueue, Waiter, Wakes};

/// What an arriving party has to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Wait; it arrived as number `.0`.
    Wait(usize),
    /// It is the last: run the action, then call `release` (or `break_up`).
    Last(usize),
    /// The barrier is broken.
    Broken,
}

/// A barrier for a fixed number of parties.
#[derive(Debug)]
pub struct Rendezvous<P> {
    parties: usize,
    state: Mutex<State<P>>,
}

#[derive(Debug)]
struct State<P> {
    arrived: usize,
    broken: bool,
    queue: WaitQueue<P>,
}

impl<P: Port> Rendezvous<P> {
    /// Make a barrier for `parties`.
    pub fn new(parties: usize) -> Self {
        let state = State {
            arrived: 0,
            broken: false,
            queue: WaitQueue::default(),
        };
        Self {
            parties,
            state: Mutex::new(state),
        }
    }

    /// The number of parties.
    pub fn parties(&self) -> usize {
        self.parties
    }

    /// How many wait in the current cycle.
    pub fn arrived(&self) -> usize {
        lock(&self.state).queue.len()
    }

    /// Whether it is broken.
    pub fn is_broken(&self) -> bool {
        lock(&self.state).broken
    }

    /// Arrive; the waiter is made only if there is something to wait for.
    pub fn arrive(&self, waiter: impl FnOnce() -> Arc<Waiter<P>>) -> Arrival {
        let mut state = lock(&self.state);
        if state.broken {
            return Arrival::Broken;
        }
        let index = state.arrived;
        state.arrived += 1;
        if state.arrived == self.parties {
            return Arrival::Last(index);
        }
        let waiter = waiter();
        state.queue.push(&waiter);
        Arrival::Wait(index)
    }

    /// Let this cycle's waiters go, and start the next one.
    pub fn release(&self, fan_out: usize) {
        self.finish(GRANTED, None, fan_out);
    }

    /// Turn this cycle's waiters away; the barrier stays broken until `reset`.
    pub fn break_up(&self, fan_out: usize) {
        self.finish(REFUSED, Some(true), fan_out);
    }

    /// Turn this cycle's waiters away, and start anew.
    pub fn reset(&self, fan_out: usize) {
        self.finish(REFUSED, Some(false), fan_out);
    }

    fn finish(&self, verdict: u32, broken: Option<bool>, fan_out: usize) {
        let mut wakes = Wakes::none();
        {
            let mut state = lock(&self.state);
            state.arrived = 0;
            state.broken = broken.unwrap_or(state.broken);
            let waiters = state.queue.drain();
            wakes.signal_all(waiters, verdict, fan_out);
        }
        wakes.run();
    }

    /// Give up waiting. True: the cycle was over already, its verdict stands;
    /// false: the barrier is broken now, for everybody.
    pub fn cancel(&self, waiter: &Arc<Waiter<P>>, fan_out: usize) -> bool {
        let waited = lock(&self.state).queue.remove(waiter);
        if waited {
            self.break_up(fan_out);
        }
        !waited
    }
}
