//! One party that waits: a thread, a task of an event loop, a greenlet.
//!
//! The word is both the state and what a thread sleeps on:
//!
//! | word | meaning | written by | legal next |
//! |---|---|---|---|
//! | PENDING | enqueued, not asleep | the waiter (begin, resume) | ASLEEP, WOKEN, GRANTED, REFUSED |
//! | ASLEEP | enqueued, needs a wake-up | the waiter; from the start for parties woken by callback | PENDING (by itself), WOKEN, GRANTED, REFUSED |
//! | WOKEN | go and look again; keeps its place in line | whoever made it worth looking | PENDING or ASLEEP, GRANTED (under the mutex) |
//! | GRANTED | has what it waited for; out of the queue | the granter | none |
//! | REFUSED | will never get it (broken, shut down); out of the queue | the refuser | none |
//!
//! Invariant: WOKEN, GRANTED and REFUSED are written under the core's mutex, and
//! whoever replaces ASLEEP with one of them calls the port once, after unlocking.

use crate::shim::{Arc, AtomicBool, AtomicU32, AtomicU64, Ordering, SharedMutex, lock_shared};
use std::collections::{BTreeMap, VecDeque};

/// Enqueued, not asleep.
pub const PENDING: u32 = 0;
/// Enqueued and in need of a wake-up call.
pub const ASLEEP: u32 = 1;
/// Told to look again; keeps its place in line.
pub const WOKEN: u32 = 2;
/// Served, and out of the queue.
pub const GRANTED: u32 = 3;
/// Turned away for good, and out of the queue.
pub const REFUSED: u32 = 4;

/// How the shell reaches a waiter.
pub trait Port {
    /// Whether the party must be handed what it waits for (a task is slow to
    /// come back, so others would overtake it for ever), or may be told to try.
    fn wants_grant(&self) -> bool;
    /// Whether it sleeps on its word (a thread) rather than behind a callback.
    fn sleeps_on_word(&self) -> bool;
    /// Whether it looks soon once it was told to, whatever the caller does next: a thread, unless it is the
    /// caller's own, as in a signal handler that interrupted the wait. Never true of a party that does not sleep
    /// on its word.
    fn comes_soon(&self) -> bool {
        self.sleeps_on_word()
    }
    /// The task that waits; 0 if it is none.
    fn task(&self) -> usize {
        0
    }
    /// False once the party cannot come back: it belonged to the parent of a fork.
    fn is_alive(&self) -> bool;
    /// Another number whenever parties may have stopped being alive, which nobody says of each.
    #[must_use]
    fn generation() -> u32
    where
        Self: Sized,
    {
        0
    }
    /// Wake the party. Called without any core's mutex held, from any thread.
    fn wake(&self, word: &AtomicU32);
}

/// A party in a queue.
#[derive(Debug)]
pub struct Waiter<P> {
    word: AtomicU32,
    ticket: AtomicU64,
    urgent: AtomicBool,
    was_held_up: AtomicBool,
    chain: SharedMutex<Option<Arc<Chain<P>>>>,
    /// How to reach it.
    pub port: P,
}

/// Waiters released together, woken one after the other: each wakes the next
/// as soon as it is awake, before it asks for the GIL: so the releaser pays for one
/// wake-up, and the others are on their way while it goes on.
///
/// Nobody is forgotten: the releaser takes one waiter out, and each waiter that
/// leaves, however it learned of its release, takes out one more.
type Chain<P> = SharedMutex<VecDeque<Arc<Waiter<P>>>>;

impl<P: Port> Waiter<P> {
    /// Make a waiter that is in no queue yet.
    pub fn new(port: P) -> Arc<Self> {
        let rest = if port.sleeps_on_word() { PENDING } else { ASLEEP };
        Arc::new(Self {
            word: AtomicU32::new(rest),
            ticket: AtomicU64::new(0),
            urgent: AtomicBool::new(false),
            was_held_up: AtomicBool::new(false),
            chain: SharedMutex::new(None),
            port,
        })
    }

    /// The word a thread sleeps on.
    pub fn word(&self) -> &AtomicU32 {
        &self.word
    }

    /// The state as the table above names it.
    pub fn state(&self) -> u32 {
        // ORDERING: acquires what the granter wrote before `signal`.
        self.word.load(Ordering::Acquire)
    }

    /// Whether it was notified, granted or refused since it was enqueued or rearmed.
    #[inline]
    pub fn is_signalled(&self) -> bool {
        !matches!(self.state(), PENDING | ASLEEP)
    }

    /// Announce that this thread is about to sleep. False: something happened, do not.
    pub fn fall_asleep(&self) -> bool {
        self.word
            .compare_exchange(PENDING, ASLEEP, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
            || self.state() == ASLEEP
    }

    /// Whether the next release must be handed to this waiter.
    pub(crate) fn must_grant(&self) -> bool {
        self.port.wants_grant() || self.urgent.load(Ordering::Relaxed)
    }

    /// It came in vain once: from now on nobody overtakes it.
    pub(crate) fn rearm(&self, urgent: bool) {
        self.urgent.store(urgent, Ordering::Relaxed);
        let rest = if self.port.sleeps_on_word() { PENDING } else { ASLEEP };
        self.word.store(rest, Ordering::Release);
    }

    /// Say, before `resume`, whether the party was held up between its wake-up and now.
    pub fn note_way(&self, was_held_up: bool) {
        self.was_held_up.store(was_held_up, Ordering::Relaxed);
    }

    /// Whether it was held up on its way.
    pub(crate) fn was_held_up(&self) -> bool {
        self.was_held_up.load(Ordering::Relaxed)
    }

    pub(crate) fn ticket(&self) -> u64 {
        self.ticket.load(Ordering::Relaxed)
    }

    /// Pass the wake-up on to the next waiter that was released together with
    /// this one. Call once, when the waiter runs again; without the GIL if you like.
    pub fn relay(&self) {
        let Some(chain) = lock_shared(&self.chain).take() else {
            return;
        };
        let next = lock_shared(&chain).pop_front();
        if let Some(next) = next {
            next.port.wake(&next.word);
        }
    }
}

/// Waiters to wake once the mutex is released.
#[must_use]
#[derive(Debug)]
pub(crate) struct Wakes<P> {
    first: Option<Arc<Waiter<P>>>,
    rest: Vec<Arc<Waiter<P>>>,
}

impl<P: Port> Wakes<P> {
    pub(crate) const fn none() -> Self {
        Self {
            first: None,
            rest: Vec::new(),
        }
    }

    /// Write `state`, and remember the waiter if it sleeps. Under the mutex.
    pub(crate) fn signal(&mut self, waiter: Arc<Waiter<P>>, state: u32) {
        // ORDERING: releases the core's state to the waiter's `state`.
        if waiter.word.swap(state, Ordering::AcqRel) == ASLEEP {
            if self.first.is_none() {
                self.first = Some(waiter);
            } else {
                self.rest.push(waiter);
            }
        }
    }

    /// Write `state` to all of them; wake callbacks now, threads in a cascade of
    /// `fan_out`.
    pub(crate) fn signal_all(&mut self, waiters: impl Iterator<Item = Arc<Waiter<P>>>, state: u32, fan_out: usize) {
        let chain: Arc<Chain<P>> = Arc::new(SharedMutex::new(VecDeque::new()));
        // Held until the chain is whole. One that was about to sleep leaves as soon as its word has
        // changed: if it found the chain empty, its turn to take somebody out would be lost.
        let mut linked = lock_shared(&chain);
        let mut sleepers = VecDeque::new();
        for waiter in waiters {
            if !waiter.port.sleeps_on_word() {
                self.signal(waiter, state);
                continue;
            }
            *lock_shared(&waiter.chain) = Some(Arc::clone(&chain));
            if waiter.word.swap(state, Ordering::AcqRel) == ASLEEP {
                sleepers.push_back(waiter);
            }
        }
        let later = sleepers.split_off(fan_out.min(sleepers.len()));
        self.rest.extend(sleepers);
        *linked = later;
    }

    /// Call the ports. Not under a mutex. Those who sleep on their words come first: what wakes a task may run
    /// foreign code, for as long as that likes.
    pub(crate) fn run(self) {
        for sleeps_on_word in [true, false] {
            for waiter in self.first.iter().chain(&self.rest) {
                if waiter.port.sleeps_on_word() == sleeps_on_word {
                    waiter.port.wake(&waiter.word);
                }
            }
        }
    }
}

/// Waiters in order of arrival; any of them may leave.
#[derive(Debug)]
pub(crate) struct WaitQueue<P> {
    by_ticket: BTreeMap<u64, Arc<Waiter<P>>>,
    last_ticket: u64,
}

impl<P> Default for WaitQueue<P> {
    fn default() -> Self {
        Self {
            by_ticket: BTreeMap::new(),
            last_ticket: 0,
        }
    }
}

impl<P: Port> WaitQueue<P> {
    pub(crate) fn push(&mut self, waiter: &Arc<Waiter<P>>) {
        self.last_ticket += 1;
        waiter.ticket.store(self.last_ticket, Ordering::Relaxed);
        self.by_ticket.insert(self.last_ticket, Arc::clone(waiter));
    }

    /// Put a waiter back where it was before it was taken out.
    pub(crate) fn put_back(&mut self, waiter: &Arc<Waiter<P>>) {
        self.by_ticket.insert(waiter.ticket(), Arc::clone(waiter));
    }

    /// Take the waiter out; false if it was not in this queue.
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

    /// The first waiter that can still come back; those that cannot are dropped.
    pub(crate) fn first(&mut self) -> Option<&Arc<Waiter<P>>> {
        while let Some(entry) = self.by_ticket.first_entry() {
            if entry.get().port.is_alive() {
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
            .filter(|waiter| waiter.port.is_alive())
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
