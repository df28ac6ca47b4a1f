//! A model of CPython's GIL and of the mechanism's hooks, with the invariants of both.
//!
//! `drop_gil` and the end of `take_gil` of `Python/ceval_gil.c` (3.13), with the
//! calls of the policy where the replaced condition variable calls have them.

use super::actor::{After, Doing, RunState};
use super::parker::Word;
use super::world::World;
use crate::{Arrival, Class, Nanos, ThreadId};
use std::collections::VecDeque;

/// From the drop to the check of `last_holder` in `drop_gil`.
const LEAVE_NS: Nanos = 100;
/// How long the mechanism spins for a forced switch to an awake heir.
const SWITCH_SPIN_NS: Nanos = 20_000;
/// With up to this many waiters, every take is checked; else one in 1,024.
const MOST_WATCHED: u32 = 8;

#[derive(Debug)]
pub(super) struct Gil {
    pub(super) is_locked: bool,
    /// The holder has released a lock for which a thread waited.
    pub(super) has_woken: bool,
    pub(super) last_holder: Option<usize>,
    pub(super) switch_number: u64,
    pub(super) is_drop_requested: bool,
    pub(super) interval_ns: Nanos,
    /// Takes so far, as the mechanism counts them.
    pub(super) takes: u64,
    /// In the forced switch, asleep or awake.
    pub(super) switching: Vec<usize>,
    /// In the real condition variable.
    pub(super) stock_waiters: VecDeque<usize>,
    is_heir_awake: bool,
    /// Since when it is free although a thread wants it.
    free_since: Option<Nanos>,
    /// Threads between the beginning of `take_gil` and its end.
    pub(super) wanting: u64,
    /// The owner of each of the policy's entries, and entries to free.
    pub(super) owners: Vec<Option<usize>>,
    pub(super) retired: Vec<ThreadId>,
}

impl Gil {
    pub(super) fn new(interval_ns: Nanos, capacity: usize) -> Self {
        Self {
            is_locked: false,
            has_woken: false,
            last_holder: None,
            switch_number: 0,
            is_drop_requested: false,
            interval_ns,
            takes: 0,
            switching: Vec::new(),
            stock_waiters: VecDeque::new(),
            is_heir_awake: false,
            free_since: None,
            wanting: 0,
            owners: vec![None; capacity],
            retired: Vec::new(),
        }
    }
}

impl World<'_> {
    // ---- drop_gil ---------------------------------------------------------

    pub(super) fn drop_gil(&mut self, thread: usize, after: After) {
        self.release_gil(thread);
        if self.gil.is_drop_requested {
            self.actors[thread].doing = Doing::Leaving(after);
            // `interrupted_ns` keeps the rest of the step meanwhile.
            let rest_ns = std::mem::replace(&mut self.actors[thread].remaining_ns, LEAVE_NS);
            self.actors[thread].interrupted_ns = rest_ns;
            self.go_on(thread, LEAVE_NS);
        } else {
            self.proceed(thread, after);
        }
    }

    pub(super) fn release_gil(&mut self, thread: usize) {
        assert!(self.gil.is_locked, "the GIL is dropped by its holder");
        self.gil.is_locked = false;
        self.gil.has_woken = false;
        self.gil.last_holder = Some(thread);
        if self.gil.wanting > 0 {
            self.gil.free_since = Some(self.now);
        }
        if !(self.is_active && self.dropped(thread))
            && let Some(waiter) = self.gil.stock_waiters.pop_front()
        {
            self.plan_wake(waiter, self.scenario.machine.wake_ns);
        }
    }

    /// As the mechanism's function of that name.
    fn dropped(&mut self, thread: usize) -> bool {
        let id = self.actors[thread].id;
        let Some(policy) = &mut self.policy else { return false };
        if !policy.has_waiters() {
            policy.dropped_uncontended(None);
            return false;
        }
        if policy.dropped_quickly(id) {
            return true;
        }
        let Some(grant) = policy.dropped(id, self.now) else {
            return false;
        };
        let Some(heir) = self.gil.owners[grant.heir.index()] else {
            return true;
        };
        if !grant.wakes {
            self.notify_if_awake(heir, grant.not_before);
            return true;
        }
        self.gil.is_heir_awake = !self.notify(heir, grant.not_before);
        true
    }

    /// `drop_gil` with a drop request: waits until another thread has taken the GIL.
    pub(super) fn leave_gil(&mut self, thread: usize, after: After) {
        self.actors[thread].remaining_ns = std::mem::take(&mut self.actors[thread].interrupted_ns);
        if self.gil.last_holder != Some(thread) || !self.gil.is_drop_requested {
            return self.proceed(thread, after);
        }
        self.gil.is_drop_requested = false;
        self.gil.switching.push(thread);
        self.hint_kernel(thread);
        if self.is_active && self.gil.is_heir_awake && self.scenario.machine.processors > 1 {
            let deadline = self.now + SWITCH_SPIN_NS;
            let takes = self.gil.takes;
            self.actors[thread].doing = Doing::SwitchingAwake { after, takes, deadline };
            return self.plan_step(thread, deadline);
        }
        self.actors[thread].doing = Doing::Switching(after);
        self.leave_processor(thread);
    }

    /// As the mechanism's `hint_kernel`.
    pub(super) fn hint_kernel(&mut self, thread: usize) {
        if let (Some(policy), Some(id)) = (&self.policy, self.actors[thread].id) {
            self.cores.hint(thread, policy.class(id) == Class::Batch);
        }
    }

    pub(super) fn watch_switch(&mut self, thread: usize, after: After, takes: u64, deadline: Nanos) {
        if self.gil.takes != takes {
            self.switched(thread, after);
        } else if self.now >= deadline {
            self.actors[thread].doing = Doing::Switching(after);
            self.leave_processor(thread);
        } else {
            self.plan_step(thread, deadline);
        }
    }

    pub(super) fn switched(&mut self, thread: usize, after: After) {
        if self.is_active {
            let until = match (&self.policy, self.actors[thread].id) {
                (Some(policy), Some(id)) if self.scenario.machine.processors == 1 => policy.lets_pass(id, self.now),
                _ => None,
            };
            if let Some(until) = until {
                self.actors[thread].doing = Doing::Switching(after);
                self.gil.switching.push(thread);
                self.plan_timer(thread, until);
                return self.leave_processor(thread);
            }
            self.actors[thread].switched_at = Some(self.now);
        }
        self.proceed(thread, after);
    }

    // ---- the end of take_gil ----------------------------------------------

    pub(super) fn take(&mut self, thread: usize) {
        self.end_free_time();
        self.gil.is_locked = true;
        self.gil.wanting -= 1;
        self.trace.takes += 1;
        if self.gil.last_holder != Some(thread) {
            self.gil.last_holder = Some(thread);
            self.gil.switch_number += 1;
            self.trace.hand_overs += 1;
        }
        if self.is_active {
            self.taken(thread);
        }
        self.gil.takes += 1;
        self.end_switches();
        self.gil.is_drop_requested = false;
        self.actors[thread].doing = Doing::Holding;
        self.book_wait(thread);
        if self.must_end(thread) {
            self.release_gil(thread);
            return self.end(thread);
        }
        self.resume_program(thread);
    }

    /// As the mechanism's function of that name.
    fn taken(&mut self, thread: usize) {
        let id = self.register(thread);
        let arrival = self.take_arrival(thread);
        let Some(policy) = &mut self.policy else { return };
        if policy.is_uncontended() {
            // As the mechanism, which does not find out which thread it is.
            return policy.taken_uncontended(None);
        }
        if !arrival.was_on_lock && policy.taken_quickly(id) {
            return;
        }
        let is_watched = policy.waiting() <= MOST_WATCHED || self.trace.takes.is_multiple_of(1_024);
        let before = if is_watched { self.order(id) } else { Vec::new() };
        let Some(policy) = &mut self.policy else { return };
        let taken = policy.taken(id, self.now, arrival);
        if is_watched && before != self.order(id) {
            self.violate("a thread that was not taken lost its class or place");
        }
        if let Some(revoked) = taken.revoked
            && let Some(owner) = self.gil.owners[revoked.index()]
        {
            if self.scenario.machine.processors == 1 && self.actors[owner].parker.word == Word::Notified {
                self.allow_quick_returns(id);
            }
            self.actors[owner].parker.revoke(self.now);
        }
        if let Some(appointed) = taken.appoint
            && let Some(owner) = self.gil.owners[appointed.index()]
        {
            self.notify(owner, 0);
        }
        if self.trace.takes.is_multiple_of(1_024) {
            self.check_counters();
        }
    }

    fn allow_quick_returns(&mut self, holder: Option<ThreadId>) {
        if let (Some(policy), Some(holder)) = (&mut self.policy, holder) {
            policy.allow_quick_returns(holder);
        }
    }

    pub(super) fn take_arrival(&mut self, thread: usize) -> Arrival {
        let holder_has_woken = self.gil.has_woken;
        let actor = &mut self.actors[thread];
        Arrival {
            holder_has_woken,
            was_on_lock: std::mem::take(&mut actor.was_on_lock),
            switched_at: actor.switched_at.take(),
        }
    }

    fn end_switches(&mut self) {
        for thread in std::mem::take(&mut self.gil.switching) {
            match (self.actors[thread].doing, self.actors[thread].run_state) {
                (Doing::SwitchingAwake { .. }, RunState::On(_)) => {
                    self.plan_step(thread, self.now + self.scenario.machine.watch_ns);
                }
                (Doing::Switching(_), RunState::Off) => self.plan_wake(thread, self.scenario.machine.wake_ns),
                _ => {}
            }
        }
    }

    fn book_wait(&mut self, thread: usize) {
        let waited_ns = self.now - self.actors[thread].wants_since;
        let served = &mut self.trace.threads[thread];
        served.takes += 1;
        served.waited_ns += waited_ns;
        served.longest_wait_ns = served.longest_wait_ns.max(waited_ns);
    }

    pub(super) fn end_free_time(&mut self) {
        if let Some(since) = self.gil.free_since.take() {
            let free_ns = self.now - since;
            self.trace.free_ns += free_ns;
            self.trace.longest_free_ns = self.trace.longest_free_ns.max(free_ns);
        }
    }

    // ---- installation, fork, end ------------------------------------------

    pub(super) fn uninstall(&mut self) {
        self.is_active = false;
        for thread in self.waiting_in_policy() {
            if let Some(owner) = self.gil.owners[thread.index()] {
                self.notify(owner, 0);
            }
        }
    }

    pub(super) fn install(&mut self, thread: usize) {
        if self.policy.is_none() || self.is_active {
            return;
        }
        let id = self.register(thread);
        if let Some(policy) = &mut self.policy {
            policy.set_slice(self.gil.interval_ns);
            policy.resume(id);
        }
        self.is_active = true;
    }

    pub(super) fn restart_policy_in_child(&mut self, survivor: usize) {
        let id = self.actors[survivor].id;
        if let Some(policy) = &mut self.policy {
            self.trace.cancelled += u64::from(policy.waiting());
            policy.restart_in_child(id);
        }
        if let Some(id) = id {
            self.gil.owners[id.index()] = Some(survivor);
        }
    }

    /// The thread's entry, made on first use.
    pub(super) fn register(&mut self, thread: usize) -> Option<ThreadId> {
        if self.actors[thread].id.is_some() {
            return self.actors[thread].id;
        }
        let policy = self.policy.as_mut()?;
        for id in self.gil.retired.drain(..) {
            let waiting = policy.waiting();
            policy.retire(id);
            self.trace.cancelled += u64::from(waiting - policy.waiting());
        }
        let id = policy.register(thread as u64)?;
        self.gil.owners[id.index()] = Some(thread);
        self.actors[thread].id = Some(id);
        self.actors[thread].parker = super::parker::Parker::default();
        Some(id)
    }

    pub(super) fn retire(&mut self, thread: usize) {
        if let Some(id) = self.actors[thread].id.take() {
            self.gil.owners[id.index()] = None;
            self.gil.retired.push(id);
        }
    }

    // ---- what must hold ---------------------------------------------------

    pub(super) fn waiting_in_policy(&self) -> Vec<ThreadId> {
        let mut waiting = Vec::new();
        if let Some(policy) = &self.policy {
            policy.for_each_waiting(|thread| waiting.push(thread));
        }
        waiting
    }

    /// Class and order of all waiters but `taker`.
    fn order(&self, taker: Option<ThreadId>) -> Vec<(ThreadId, Class)> {
        let Some(policy) = &self.policy else { return Vec::new() };
        let others = self
            .waiting_in_policy()
            .into_iter()
            .filter(|&thread| Some(thread) != taker);
        others.map(|thread| (thread, policy.class(thread))).collect()
    }

    pub(super) fn check_counters(&mut self) {
        let Some(policy) = &self.policy else { return };
        let classes = &policy.stats().classes;
        let begun: u64 = classes.iter().map(|class| class.waits).sum();
        let served: u64 = classes.iter().map(|class| class.wait_ns.count()).sum();
        let waiting = u64::from(policy.waiting());
        let mut listed = self.waiting_in_policy();
        let is_listed = listed.len() as u64 == waiting;
        listed.sort_by_key(|thread| thread.index());
        listed.dedup();
        if !is_listed || listed.len() as u64 != waiting {
            self.violate("a thread is in two queues, or in none");
        }
        if served + self.trace.cancelled + waiting != begun {
            self.violate("served + cancelled + waiting differs from the waits begun");
        }
    }

    pub(super) fn violate(&mut self, what: &str) {
        if self.trace.violations.len() < 16 {
            self.trace.violations.push(format!("{what}, at {} ns", self.now));
        }
    }
}
