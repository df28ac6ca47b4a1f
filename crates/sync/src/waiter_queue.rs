//! A fair wait queue in which one waiter at a time is notified to try.
//!
//! A waiter that was notified and has not re-checked yet is an *heir*. While a queue has an heir, no other
//! waiter is woken; when the heir has re-checked, it notifies the next waiter if something is left. So a
//! hundred `put`s cost one wake-up, not a hundred. A slow heir counts for one item only: a task, whose loop
//! may be busy or stopped, or the caller's own thread. Permits have one heir for each free permit, and more
//! where that pays (see [`crate::wake_ahead`]).
//!
//! A notified waiter moves from one ordered map to another and keeps its ticket, so it can return to its
//! place if it acquires nothing. A notification therefore costs the logarithm of the queue's length, however
//! many waiters or heirs there are.
//!
//! Things that don't work: one list for both, with a walk past the heirs. With the GIL held, that walk made a
//! put for each of n waiting tasks cost n².
//!
//! Invariant: if something is available and the queue is not empty, there is a live heir, or the mutex is
//! held by a thread that will notify one. If no heir is prompt, there are as many heirs as there is
//! available, threads that run a signal handler not counted, or every waiter is an heir. A waiter is idle or an heir, never both, and only heirs are WOKEN.

use crate::shim::Arc;
use crate::waiter::{GRANTED, Unparker, WOKEN, Waiter, WaiterList, Wakes};
use crate::wake_ahead::WakeAhead;
use std::collections::BTreeMap;

/// So many of the oldest heirs are looked at, to find threads that do not re-check promptly. One thread of a process
/// runs Python's signal handlers, so there are few; and to look at all heirs for each of n permits would cost n².
const LOOKS: usize = 8;

#[derive(Debug)]
pub(crate) struct WaiterQueue<P> {
    /// Waiters that were not notified.
    idle: WaiterList<P>,
    heirs: Heirs<P>,
    /// The task that was granted last and has not run since; 0 for none.
    pub(crate) grantee: usize,
    /// Whether a task ever waited in it.
    pub(crate) has_seen_tasks: bool,
    pub(crate) wake_ahead: WakeAhead,
}

impl<P> Default for WaiterQueue<P> {
    fn default() -> Self {
        Self {
            idle: WaiterList::default(),
            heirs: Heirs::default(),
            grantee: 0,
            has_seen_tasks: false,
            wake_ahead: WakeAhead::default(),
        }
    }
}

impl<P: Unparker> WaiterQueue<P> {
    /// The number of live heirs.
    pub(crate) fn heirs(&mut self) -> usize {
        self.heirs.count()
    }

    /// Whether so many live heirs each take care of one thing at least. A thread that does not re-check promptly
    /// is not counted: it runs a signal handler, which may last, and may wait for what another waiter does.
    pub(crate) fn has_dependable_heirs(&mut self, wanted: usize) -> bool {
        self.heirs() >= wanted && self.heirs.are_dependable(wanted)
    }

    /// Whether there is a live heir that re-checks promptly.
    pub(crate) fn has_prompt_heir(&mut self) -> bool {
        self.heirs() > 0 && self.heirs.has_prompt_heir()
    }

    /// The number of waiters, heirs included.
    pub(crate) fn len(&self) -> usize {
        self.idle.len() + self.heirs.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.idle.is_empty() && self.heirs.len() == 0
    }

    /// Whether [`WaiterQueue::notify_next`] would notify no waiter: there is none, or a prompt heir takes care of all
    /// that is available.
    #[inline]
    pub(crate) fn needs_no_notice(&mut self) -> bool {
        self.is_empty() || self.has_prompt_heir()
    }

    /// All waiters: idle ones in order of arrival, then heirs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Waiter<P>>> {
        self.idle.iter().chain(self.heirs.iter())
    }

    /// Enqueue the waiter at the end.
    pub(crate) fn append(&mut self, waiter: &Arc<Waiter<P>>) {
        self.has_seen_tasks |= waiter.party.task() != 0;
        self.idle.push(waiter);
    }

    /// The first waiter that is not an heir and whose party is alive.
    pub(crate) fn first_idle(&mut self) -> Option<&Arc<Waiter<P>>> {
        self.idle.first()
    }

    /// Notify the first waiter, unless an heir takes care of what is available. A prompt heir takes
    /// care of all that is available, any other heir of one only. Not prompt are tasks and greenlets, whose loop
    /// may be busy or stopped, and a thread that first has to end the signal handler which calls this.
    pub(crate) fn notify_next(&mut self, available: usize, wakes: &mut Wakes<P>) {
        // At a closed channel a waiter is notified although nothing is available.
        let wanted = available.max(1);
        while !self.has_dependable_heirs(wanted) && !self.has_prompt_heir() && self.notify_first(wakes) {}
    }

    /// Make the first idle waiter an heir. False: there is none.
    pub(crate) fn notify_first(&mut self, wakes: &mut Wakes<P>) -> bool {
        let Some(first) = self.idle.pop() else {
            return false;
        };
        self.heirs.insert(&first);
        wakes.signal(first, WOKEN);
        true
    }

    /// Grant the first idle waiter what was released.
    pub(crate) fn grant_first(&mut self, wakes: &mut Wakes<P>) {
        if let Some(first) = self.idle.pop() {
            self.grantee = first.party.task();
            wakes.signal(first, GRANTED);
        }
    }

    /// Notify idle waiters until there are `heirs` heirs, or until the next waiter must be granted. Each of
    /// those notified wakes the next.
    pub(crate) fn notify_up_to(&mut self, heirs: usize, wakes: &mut Wakes<P>) {
        let wanted = heirs.saturating_sub(self.heirs());
        let may_call = |first: &Arc<Waiter<P>>| !first.must_grant();
        let mut called = Vec::new();
        while called.len() < wanted && self.idle.first().is_some_and(may_call) {
            called.extend(self.idle.pop());
        }
        if !called.is_empty() {
            called.iter().for_each(|waiter| self.heirs.insert(waiter));
            wakes.signal_all(called.into_iter(), WOKEN, 1);
        }
    }

    /// Notify every waiter.
    pub(crate) fn notify_all(&mut self, wakes: &mut Wakes<P>) {
        for waiter in self.idle.drain() {
            self.heirs.insert(&waiter);
            wakes.signal(waiter, WOKEN);
        }
    }

    /// The waiter re-checked, acquired nothing and waits again, in the place it had if it had one. `urgent`:
    /// no party overtakes it from now on.
    pub(crate) fn requeue(&mut self, waiter: &Arc<Waiter<P>>, urgent: bool) {
        waiter.rearm(urgent);
        if self.heirs.remove(waiter) {
            self.idle.put_back(waiter);
        } else if !self.idle.contains(waiter) {
            self.append(waiter);
        }
    }

    /// The waiter has acquired, or gives up. False: it was not in this queue.
    pub(crate) fn leave(&mut self, waiter: &Arc<Waiter<P>>) -> bool {
        self.heirs.remove(waiter) || self.idle.remove(waiter)
    }
}

/// The heirs, by ticket.
#[derive(Debug)]
struct Heirs<P> {
    /// All of these are prompt, except the caller's own thread.
    threads: BTreeMap<u64, Arc<Waiter<P>>>,
    others: BTreeMap<u64, Arc<Waiter<P>>>,
    /// The generation in which all of them were alive.
    generation: u32,
}

impl<P> Default for Heirs<P> {
    fn default() -> Self {
        Self {
            threads: BTreeMap::new(),
            others: BTreeMap::new(),
            generation: 0,
        }
    }
}

impl<P: Unparker> Heirs<P> {
    fn len(&self) -> usize {
        self.threads.len() + self.others.len()
    }

    /// The number of heirs that are alive.
    fn count(&mut self) -> usize {
        let generation = P::generation();
        if self.generation != generation {
            self.generation = generation;
            self.threads.retain(|_, heir| heir.party.is_alive());
            self.others.retain(|_, heir| heir.party.is_alive());
        }
        self.len()
    }

    fn are_dependable(&self, wanted: usize) -> bool {
        let first = self.threads.values().take(LOOKS);
        let late = first.filter(|heir| !heir.party.is_prompt()).count();
        self.len() - late >= wanted
    }

    fn has_prompt_heir(&self) -> bool {
        self.threads.values().any(|heir| heir.party.is_prompt())
    }

    fn iter(&self) -> impl Iterator<Item = &Arc<Waiter<P>>> {
        self.threads.values().chain(self.others.values())
    }

    fn set_of(&mut self, waiter: &Waiter<P>) -> &mut BTreeMap<u64, Arc<Waiter<P>>> {
        if waiter.party.sleeps_on_word() {
            &mut self.threads
        } else {
            &mut self.others
        }
    }

    fn insert(&mut self, waiter: &Arc<Waiter<P>>) {
        self.set_of(waiter).insert(waiter.ticket(), Arc::clone(waiter));
    }

    fn remove(&mut self, waiter: &Arc<Waiter<P>>) -> bool {
        let (ticket, set) = (waiter.ticket(), self.set_of(waiter));
        let is_in = set.get(&ticket).is_some_and(|found| Arc::ptr_eq(found, waiter));
        if is_in {
            set.remove(&ticket);
        }
        is_in
    }
}
