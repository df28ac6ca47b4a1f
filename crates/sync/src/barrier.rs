//! A cyclic barrier for a fixed number of parties: the core of Barrier.
//!
//! Each cycle's waiters are released together and leave on their own, so the next cycle may fill while the
//! last one drains.
//!
//! Invariant: `arrived` counts the waiters of the cycle that fills. The waiters of a full cycle belong to the
//! party that arrived last, until it has run the action and reported the outcome. Only that outcome decides
//! for them, neither a timeout nor a reset in the meantime.

use crate::shim::{Arc, Mutex, lock};
use crate::waiter::{GRANTED, REFUSED, Unparker, Waiter, WaiterList, Wakes};

/// The next step of an arriving party.
#[derive(Debug)]
pub enum Arrival<P> {
    /// Wait; `.0` parties arrived before it.
    Wait(usize),
    /// It is the last, `.0` parties arrived before it: run the action, then call `release` or `fail`.
    Last(usize, Departing<P>),
    /// The barrier is broken.
    Broken,
}

/// The waiters of a full cycle.
#[must_use]
#[derive(Debug)]
pub struct Departing<P>(WaiterList<P>);

impl<P: Unparker> Departing<P> {
    /// Release the waiters.
    pub fn release(self, fan_out: usize) {
        self.finish(GRANTED, fan_out);
    }

    fn finish(mut self, verdict: u32, fan_out: usize) {
        let mut wakes = Wakes::none();
        wakes.signal_all(self.0.drain(), verdict, fan_out);
        wakes.run();
    }
}

/// A barrier for a fixed number of parties.
#[derive(Debug)]
pub struct Rendezvous<P> {
    state: Mutex<State<P>>,
}

#[derive(Debug)]
struct State<P> {
    parties: usize,
    arrived: usize,
    broken: bool,
    queue: WaiterList<P>,
}

impl<P: Unparker> Rendezvous<P> {
    /// Make a barrier for `parties`.
    pub fn new(parties: usize) -> Self {
        let state = State {
            parties,
            arrived: 0,
            broken: false,
            queue: WaiterList::default(),
        };
        Self {
            state: Mutex::new(state),
        }
    }

    /// The number of parties.
    pub fn parties(&self) -> usize {
        lock(&self.state).parties
    }

    /// The number of waiters in the cycle that fills.
    pub fn arrived(&self) -> usize {
        lock(&self.state).queue.len()
    }

    /// Whether it is broken.
    pub fn is_broken(&self) -> bool {
        lock(&self.state).broken
    }

    /// Arrive; the waiter is made only if the party has to wait.
    pub fn arrive(&self, waiter: impl FnOnce() -> Arc<Waiter<P>>) -> Arrival<P> {
        let mut state = lock(&self.state);
        if state.broken {
            return Arrival::Broken;
        }
        let index = state.arrived;
        state.arrived += 1;
        if state.arrived == state.parties {
            state.arrived = 0;
            return Arrival::Last(index, Departing(std::mem::take(&mut state.queue)));
        }
        let waiter = waiter();
        state.queue.push(&waiter);
        Arrival::Wait(index)
    }

    /// The action failed: break the barrier, then refuse the cycle's waiters and those that wait by now. The
    /// barrier is broken first, because the refused parties must find it broken.
    pub fn fail(&self, departing: Departing<P>, fan_out: usize) {
        self.break_up(fan_out);
        departing.finish(REFUSED, fan_out);
    }

    /// Refuse the waiters; the barrier stays broken until `reset`.
    pub fn break_up(&self, fan_out: usize) {
        self.turn_away(true, fan_out);
    }

    /// Refuse the waiters and restart.
    pub fn reset(&self, fan_out: usize) {
        self.turn_away(false, fan_out);
    }

    /// Restart with another number of parties; waiters are refused.
    pub fn restart(&self, parties: usize, fan_out: usize) {
        let mut wakes = Wakes::none();
        {
            let mut state = lock(&self.state);
            state.parties = parties;
            state.turn_away(false, fan_out, &mut wakes);
        }
        wakes.run();
    }

    fn turn_away(&self, broken: bool, fan_out: usize) {
        let mut wakes = Wakes::none();
        lock(&self.state).turn_away(broken, fan_out, &mut wakes);
        wakes.run();
    }

    /// Leave without breaking the barrier: the others wait on, for one party more. True: as
    /// [`Rendezvous::cancel`].
    pub fn leave(&self, waiter: &Arc<Waiter<P>>) -> bool {
        let mut state = lock(&self.state);
        let waited = state.queue.remove(waiter);
        if waited {
            state.arrived -= 1;
        }
        !waited
    }

    /// Give up waiting. True: the waiter's cycle was full already, and its outcome is written to the waiter,
    /// now or soon. False: the barrier is broken now, for every party.
    pub fn cancel(&self, waiter: &Arc<Waiter<P>>, fan_out: usize) -> bool {
        let mut wakes = Wakes::none();
        let waited = {
            let mut state = lock(&self.state);
            let waited = state.queue.remove(waiter);
            // In the same step: a party that arrives in between must not count the one that left.
            if waited {
                state.turn_away(true, fan_out, &mut wakes);
            }
            waited
        };
        wakes.run();
        !waited
    }
}

impl<P: Unparker> State<P> {
    fn turn_away(&mut self, broken: bool, fan_out: usize, wakes: &mut Wakes<P>) {
        self.arrived = 0;
        self.broken = broken;
        let waiters = self.queue.drain();
        wakes.signal_all(waiters, REFUSED, fan_out);
    }
}
