//! A waiter: the state word and queue position of one party (a thread, a task, a greenlet) that waits.
//!
//! A thread also sleeps on its state word:
//!
//! | word | meaning | written by | legal next |
//! |---|---|---|---|
//! | PENDING | enqueued, not asleep | the waiter (begin, resume) | ASLEEP, WOKEN, GRANTED, REFUSED |
//! | ASLEEP | enqueued, needs a wake-up | the waiter; the initial state of parties that are woken by a callback | PENDING (by the waiter), WOKEN, GRANTED, REFUSED |
//! | WOKEN | notified: should re-check; keeps its place in the queue | the party that made something available | PENDING or ASLEEP, GRANTED (under the mutex) |
//! | GRANTED | owns what it waited for; out of the queue | the granting party | none |
//! | REFUSED | will never be granted (broken, shut down); out of the queue | the refusing party | none |
//!
//! Invariant: WOKEN, GRANTED and REFUSED are written under the core's mutex. The thread that replaces ASLEEP
//! by one of them calls the waiter's [`Unparker`] once, after it has unlocked the mutex.

use crate::shim::{Arc, AtomicBool, AtomicU32, AtomicU64, Ordering, SharedMutex, lock_shared};
use std::collections::{BTreeMap, VecDeque};

/// Enqueued, not asleep.
pub const PENDING: u32 = 0;
/// Enqueued, and needs a wake-up.
pub const ASLEEP: u32 = 1;
/// Notified: should re-check; keeps its place in the queue.
pub const WOKEN: u32 = 2;
/// Granted, and out of the queue.
pub const GRANTED: u32 = 3;
/// Refused for good, and out of the queue.
pub const REFUSED: u32 = 4;

/// How a waiter's party is woken, and how the core may treat it.
pub trait Unparker {
    /// Whether the party must be granted what it waits for, rather than notified to try: a task takes so long
    /// to run again that others would overtake it for ever.
    fn wants_grant(&self) -> bool;
    /// Whether the party sleeps on the state word (a thread) rather than being woken by a callback.
    fn sleeps_on_word(&self) -> bool;
    /// Whether the party, once notified, re-checks promptly, independent of what the caller does next. True of a thread,
    /// unless it is the caller's own thread, whose wait a signal handler interrupted. Never true of a party
    /// that does not sleep on its word.
    fn is_prompt(&self) -> bool {
        self.sleeps_on_word()
    }
    /// The waiting task's identity; 0 for a thread or a greenlet.
    fn task(&self) -> usize {
        0
    }
    /// False once the party cannot run again, for example because it belonged to the parent of a fork.
    fn is_alive(&self) -> bool;
    /// A number that changes whenever some parties may have stopped being alive.
    #[must_use]
    fn generation() -> u32
    where
        Self: Sized,
    {
        0
    }
    /// Wake the party. Called from any thread, never with a core's mutex held.
    fn wake(&self, word: &AtomicU32);
}

/// A party's place in a queue, and its state.
#[derive(Debug)]
pub struct Waiter<P> {
    word: AtomicU32,
    ticket: AtomicU64,
    urgent: AtomicBool,
    was_held_up: AtomicBool,
    chain: SharedMutex<Option<Arc<Chain<P>>>>,
    /// The party, which is woken through its [`Unparker`].
    pub party: P,
}

/// Waiters that were released together and are woken one after the other. Each waiter wakes the next as soon
/// as it runs, before it waits for the GIL. So the releasing thread pays for one wake-up and continues.
///
/// No waiter is forgotten: the releasing thread removes one, and each released waiter, however it learned of
/// its release, removes one more.
type Chain<P> = SharedMutex<VecDeque<Arc<Waiter<P>>>>;

impl<P: Unparker> Waiter<P> {
    /// Make a waiter that is in no queue.
    pub fn new(party: P) -> Arc<Self> {
        let rest = if party.sleeps_on_word() { PENDING } else { ASLEEP };
        Arc::new(Self {
            word: AtomicU32::new(rest),
            ticket: AtomicU64::new(0),
            urgent: AtomicBool::new(false),
            was_held_up: AtomicBool::new(false),
            chain: SharedMutex::new(None),
            party,
        })
    }

    /// The state word, on which a thread sleeps.
    pub fn word(&self) -> &AtomicU32 {
        &self.word
    }

    /// The state, as in the table above.
    pub fn state(&self) -> u32 {
        // ORDERING: pairs with the release in `signal` and `signal_all`: acquires what the granting thread
        // wrote.
        self.word.load(Ordering::Acquire)
    }

    /// Whether the waiter was notified, granted or refused since it was enqueued or rearmed.
    #[inline]
    pub fn is_signalled(&self) -> bool {
        !matches!(self.state(), PENDING | ASLEEP)
    }

    /// Announce that the waiting thread is about to sleep. False: the waiter was signalled, do not sleep.
    pub fn fall_asleep(&self) -> bool {
        // ORDERING: pairs with the exchanges in `signal` and `signal_all`; a failure acquires what they released.
        self.word
            .compare_exchange(PENDING, ASLEEP, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
            || self.state() == ASLEEP
    }

    /// Whether the next release must be granted to this waiter. A thread that does not re-check promptly is only notified,
    /// however urgent it is: it runs a signal handler, and would own the lock for as long as that lasts.
    pub(crate) fn must_grant(&self) -> bool {
        self.party.wants_grant() || (self.urgent.load(Ordering::Relaxed) && self.party.is_prompt())
    }

    /// Make a notified waiter wait again. `urgent`: no party overtakes it from now on.
    pub(crate) fn rearm(&self, urgent: bool) {
        self.urgent.store(urgent, Ordering::Relaxed);
        let rest = if self.party.sleeps_on_word() { PENDING } else { ASLEEP };
        // ORDERING: pairs with the exchanges in `signal` and `signal_all`.
        self.word.store(rest, Ordering::Release);
    }

    /// Record, before `resume`, whether the party had to wait for the GIL after its wake-up.
    pub fn note_delay(&self, was_held_up: bool) {
        self.was_held_up.store(was_held_up, Ordering::Relaxed);
    }

    /// Whether the party had to wait for the GIL after its last wake-up.
    pub(crate) fn was_held_up(&self) -> bool {
        self.was_held_up.load(Ordering::Relaxed)
    }

    pub(crate) fn ticket(&self) -> u64 {
        self.ticket.load(Ordering::Relaxed)
    }

    /// Wake the next waiter of those that were released together with this one. Call it once, when the waiter
    /// runs again; the GIL is not needed.
    pub fn relay(&self) {
        let Some(chain) = lock_shared(&self.chain).take() else {
            return;
        };
        let next = lock_shared(&chain).pop_front();
        if let Some(next) = next {
            next.party.wake(&next.word);
        }
    }
}

/// The waiters to wake once the mutex is unlocked.
#[must_use]
#[derive(Debug)]
pub(crate) struct Wakes<P> {
    first: Option<Arc<Waiter<P>>>,
    rest: Vec<Arc<Waiter<P>>>,
}

impl<P: Unparker> Wakes<P> {
    pub(crate) const fn none() -> Self {
        Self {
            first: None,
            rest: Vec::new(),
        }
    }

    /// Write `state`, and record the waiter if it sleeps. Called with the mutex held.
    pub(crate) fn signal(&mut self, waiter: Arc<Waiter<P>>, state: u32) {
        // ORDERING: pairs with the acquire in `Waiter::state`: releases the core's state to the waiter.
        if waiter.word.swap(state, Ordering::AcqRel) == ASLEEP {
            if self.first.is_none() {
                self.first = Some(waiter);
            } else {
                self.rest.push(waiter);
            }
        }
    }

    /// Write `state` to all of them. Threads are woken in `fan_out` chains, other parties each directly.
    pub(crate) fn signal_all(&mut self, waiters: impl Iterator<Item = Arc<Waiter<P>>>, state: u32, fan_out: usize) {
        let chain: Arc<Chain<P>> = Arc::new(SharedMutex::new(VecDeque::new()));
        // Held until the chain is complete. A waiter that was about to sleep returns as soon as its word has
        // changed. If that waiter found the chain empty, the wake-up that it owes to the next would be lost.
        let mut linked = lock_shared(&chain);
        let mut sleepers = VecDeque::new();
        for waiter in waiters {
            if !waiter.party.sleeps_on_word() {
                self.signal(waiter, state);
                continue;
            }
            *lock_shared(&waiter.chain) = Some(Arc::clone(&chain));
            // ORDERING: pairs with the acquire in `Waiter::state`, as in `signal`.
            if waiter.word.swap(state, Ordering::AcqRel) == ASLEEP {
                sleepers.push_back(waiter);
            }
        }
        let later = sleepers.split_off(fan_out.min(sleepers.len()));
        self.rest.extend(sleepers);
        *linked = later;
    }

    /// Wake the waiters. Not called with a mutex held. Threads are woken first: waking a task may run foreign
    /// code, for an unlimited time.
    pub(crate) fn run(self) {
        for sleeps_on_word in [true, false] {
            for waiter in self.first.iter().chain(&self.rest) {
                if waiter.party.sleeps_on_word() == sleeps_on_word {
                    waiter.party.wake(&waiter.word);
                }
            }
        }
    }
}

/// Waiters in order of arrival, by ticket; any of them may be removed.
#[derive(Debug)]
pub(crate) struct WaiterList<P> {
    by_ticket: BTreeMap<u64, Arc<Waiter<P>>>,
    last_ticket: u64,
}

impl<P> Default for WaiterList<P> {
    fn default() -> Self {
        Self {
            by_ticket: BTreeMap::new(),
            last_ticket: 0,
        }
    }
}

impl<P: Unparker> WaiterList<P> {
    pub(crate) fn push(&mut self, waiter: &Arc<Waiter<P>>) {
        self.last_ticket += 1;
        waiter.ticket.store(self.last_ticket, Ordering::Relaxed);
        self.by_ticket.insert(self.last_ticket, Arc::clone(waiter));
    }

    /// Put a waiter back into the place it had before it was removed.
    pub(crate) fn put_back(&mut self, waiter: &Arc<Waiter<P>>) {
        self.by_ticket.insert(waiter.ticket(), Arc::clone(waiter));
    }

    /// Remove the waiter; false if it was not in this list.
    pub(crate) fn remove(&mut self, waiter: &Arc<Waiter<P>>) -> bool {
        let ticket = waiter.ticket();
        match self.by_ticket.get(&ticket) {
            Some(found) if Arc::ptr_eq(found, waiter) => {
                self.by_ticket.remove(&ticket);
                true
            }
            _ => false,
        }
    }

    pub(crate) fn contains(&self, waiter: &Arc<Waiter<P>>) -> bool {
        self.by_ticket
            .get(&waiter.ticket())
            .is_some_and(|found| Arc::ptr_eq(found, waiter))
    }

    /// The first waiter whose party is alive. Dead waiters before it are dropped.
    pub(crate) fn first(&mut self) -> Option<&Arc<Waiter<P>>> {
        while let Some(entry) = self.by_ticket.first_entry() {
            if entry.get().party.is_alive() {
                break;
            }
            entry.remove();
        }
        self.by_ticket.first_key_value().map(|(_, waiter)| waiter)
    }

    pub(crate) fn pop(&mut self) -> Option<Arc<Waiter<P>>> {
        self.first()?;
        self.by_ticket.pop_first().map(|(_, waiter)| waiter)
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Arc<Waiter<P>>> + use<P> {
        std::mem::take(&mut self.by_ticket)
            .into_values()
            .filter(|waiter| waiter.party.is_alive())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Waiter<P>>> {
        self.by_ticket.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_ticket.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_ticket.is_empty()
    }
}
