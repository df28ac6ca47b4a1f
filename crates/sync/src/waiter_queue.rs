//! A line of waiters that are told to try, one at a time.
//!
//! The one that was told is the *heir*. While a queue's heir is on its way nobody
//! else is woken: it wakes the next when it has looked, if there is reason to. That
//! makes a hundred `put`s cost one wake-up instead of a hundred. An heir that is slow to come
//! (a task: its loop may be busy, or stopped; the calling thread's own) is relied on for one item only. Permits have an
//! heir for each free permit: there every one of them is for somebody; and more where
//! that pays (see [`crate::wake_ahead`]).
//!
//! Whoever is told moves from one ordered set to another, and keeps its ticket for the case that it comes in vain.
//! A call so costs the logarithm of the line's length, however many wait or are on their way. Things that don't
//! work: one list for all, with a walk past those who were told: with the GIL held, it made a put for each of n
//! waiting tasks cost n².
//!
//! Invariant: if what the line waits for is available and the line is not empty,
//! then a live heir is on its way, or the mutex is held by whoever will name one. If none of
//! the heirs comes soon, there are as many as there is available, or all wait for it. Who waits is idle or an heir,
//! never both; only heirs are WOKEN.

use crate::shim::Arc;
use crate::waiter::{GRANTED, Port, WOKEN, WaitQueue, Waiter, Wakes};
use crate::wake_ahead::Eagerness;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct Line<P> {
    /// Those who were not told to try.
    idle: WaitQueue<P>,
    heirs: Heirs<P>,
    /// The task that was granted last, until it comes for it; 0 for none.
    pub(crate) grantee: usize,
    /// Whether a task ever stood in it.
    pub(crate) has_seen_tasks: bool,
    pub(crate) eagerness: Eagerness,
}

impl<P> Default for Line<P> {
    fn default() -> Self {
        Self {
            idle: WaitQueue::default(),
            heirs: Heirs::default(),
            grantee: 0,
            has_seen_tasks: false,
            eagerness: Eagerness::default(),
        }
    }
}

impl<P: Port> Line<P> {
    /// How many who were told to try are still on their way.
    pub(crate) fn heirs(&mut self) -> usize {
        self.heirs.count()
    }

    /// Whether somebody that was told to try is on its way and comes soon.
    pub(crate) fn has_one_soon(&mut self) -> bool {
        self.heirs() > 0 && self.heirs.has_one_soon()
    }

    /// How many wait, on their way or not.
    pub(crate) fn len(&self) -> usize {
        self.idle.len() + self.heirs.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.idle.is_empty() && self.heirs.len() == 0
    }

    /// All who wait: those who were not told in order, then the others.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Waiter<P>>> {
        self.idle.iter().chain(self.heirs.iter())
    }

    /// Put this waiter at the end.
    pub(crate) fn append(&mut self, waiter: &Arc<Waiter<P>>) {
        self.has_seen_tasks |= waiter.port.task() != 0;
        self.idle.push(waiter);
    }

    /// The first that was not told to try yet, and can still come back.
    pub(crate) fn first_idle(&mut self) -> Option<&Arc<Waiter<P>>> {
        self.idle.first()
    }

    /// Tell the first waiter to try, unless somebody is on its way already. A thread that is
    /// takes whatever there is; a task or a greenlet, whose loop may be busy or have stopped, and a thread that
    /// first has to end the signal handler which calls this, count for one of those `available` only.
    pub(crate) fn call_next(&mut self, available: usize, wakes: &mut Wakes<P>) {
        // Of a closed channel somebody is told although nothing is available.
        let wanted = available.max(1);
        while self.heirs() < wanted && !self.has_one_soon() && self.call_first(wakes) {}
    }

    /// Tell the first that was not told yet to try. False: there is none.
    pub(crate) fn call_first(&mut self, wakes: &mut Wakes<P>) -> bool {
        let Some(first) = self.idle.pop() else {
            return false;
        };
        self.heirs.insert(&first);
        wakes.signal(first, WOKEN);
        true
    }

    /// Hand it to the first that was not told to try yet.
    pub(crate) fn grant_first(&mut self, wakes: &mut Wakes<P>) {
        if let Some(first) = self.idle.pop() {
            self.grantee = first.port.task();
            wakes.signal(first, GRANTED);
        }
    }

    /// Tell waiters to try that have not been told yet, until `heirs` are on their way or
    /// one must be granted; each wakes the next on its way.
    pub(crate) fn call_up_to(&mut self, heirs: usize, wakes: &mut Wakes<P>) {
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

    /// Tell everybody to try.
    pub(crate) fn call_all(&mut self, wakes: &mut Wakes<P>) {
        for waiter in self.idle.drain() {
            self.heirs.insert(&waiter);
            wakes.signal(waiter, WOKEN);
        }
    }

    /// The waiter has looked in vain and waits on, in the place it had if it had one. `urgent`: nobody overtakes it
    /// from now on.
    pub(crate) fn stay(&mut self, waiter: &Arc<Waiter<P>>, urgent: bool) {
        waiter.rearm(urgent);
        if self.heirs.remove(waiter) {
            self.idle.put_back(waiter);
        } else if !self.idle.contains(waiter) {
            self.append(waiter);
        }
    }

    /// The waiter has what it wants, or gives up. False: it was not in this line.
    pub(crate) fn leave(&mut self, waiter: &Arc<Waiter<P>>) -> bool {
        self.heirs.remove(waiter) || self.idle.remove(waiter)
    }
}

/// Those who were told to try and are on their way, by their tickets.
#[derive(Debug)]
struct Heirs<P> {
    /// Of these all come soon but the caller's own.
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

impl<P: Port> Heirs<P> {
    fn len(&self) -> usize {
        self.threads.len() + self.others.len()
    }

    /// How many of them can still come.
    fn count(&mut self) -> usize {
        let generation = P::generation();
        if self.generation != generation {
            self.generation = generation;
            self.threads.retain(|_, heir| heir.port.is_alive());
            self.others.retain(|_, heir| heir.port.is_alive());
        }
        self.len()
    }

    fn has_one_soon(&self) -> bool {
        self.threads.values().any(|heir| heir.port.comes_soon())
    }

    fn iter(&self) -> impl Iterator<Item = &Arc<Waiter<P>>> {
        self.threads.values().chain(self.others.values())
    }

    fn set_of(&mut self, waiter: &Waiter<P>) -> &mut BTreeMap<u64, Arc<Waiter<P>>> {
        if waiter.port.sleeps_on_word() {
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
