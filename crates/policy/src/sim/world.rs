//! The simulation's main loop: virtual time, threads and processors.
//!
//! Invariant: `now` never goes back; a thread acts only while it is on a processor
//! (`RunState::On`), in `act`.

use super::actor::{Actor, Doing, RunState};
use super::cores::Cores;
use super::events::{Event, Events};
use super::gil::Gil;
use super::parker::Word;
use super::random::Random;
use super::scenario::{Scenario, Scheduler};
use super::trace::{Served, Trace};
use crate::{Nanos, Policy};
use std::collections::VecDeque;

/// A time at which nothing has begun.
pub(super) const NEVER: Nanos = Nanos::MAX;

#[derive(Debug, Default)]
pub(super) struct Semaphore {
    pub(super) permits: u32,
    pub(super) waiters: VecDeque<usize>,
}

pub(super) struct World<'s> {
    pub(super) scenario: &'s Scenario,
    pub(super) now: Nanos,
    pub(super) events: Events,
    pub(super) random: Random,
    pub(super) cores: Cores,
    pub(super) actors: Vec<Actor>,
    pub(super) semaphores: Vec<Semaphore>,
    pub(super) gil: Gil,
    pub(super) policy: Option<Policy>,
    pub(super) is_active: bool,
    pub(super) finalizer: Option<usize>,
    pub(super) is_over: bool,
    pub(super) trace: Trace,
}

impl<'s> World<'s> {
    pub(super) fn new(scenario: &'s Scenario) -> Self {
        let policy = match scenario.scheduler {
            Scheduler::Stock => None,
            Scheduler::Policy(config) => {
                let mut policy = Policy::new(config, scenario.capacity);
                policy.set_alone(scenario.machine.processors == 1);
                Some(policy)
            }
        };
        let semaphore = |&permits: &u32| Semaphore {
            permits,
            waiters: VecDeque::new(),
        };
        let interval_ns = policy.as_ref().map_or(5_000_000, |policy| policy.config().slice_ns);
        Self {
            scenario,
            now: 0,
            events: Events::default(),
            random: Random::new(scenario.seed),
            cores: Cores::new(&scenario.machine, scenario.programs.len()),
            actors: scenario.programs.iter().cloned().map(Actor::new).collect(),
            semaphores: scenario.permits.iter().map(semaphore).collect(),
            gil: Gil::new(interval_ns, scenario.capacity),
            is_active: policy.is_some(),
            policy,
            finalizer: None,
            is_over: false,
            trace: Trace {
                threads: vec![Served::default(); scenario.programs.len()],
                ..Trace::default()
            },
        }
    }

    pub(super) fn run(mut self) -> Trace {
        for thread in 0..self.actors.len() {
            if self.actors[thread].program.is_started {
                self.start(thread);
            }
        }
        self.plan_spurious();
        while !self.is_over
            && let Some((at, event)) = self.events.next()
        {
            if at > self.scenario.until {
                self.now = self.scenario.until;
                break;
            }
            self.now = at;
            self.handle(event);
        }
        self.finish()
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Step { thread, number } => {
                if self.actors[thread].step_number == number && matches!(self.actors[thread].run_state, RunState::On(_))
                {
                    self.act(thread);
                }
            }
            Event::Timer { thread, number } if self.actors[thread].alarm == number => self.time_out(thread),
            Event::Wake { thread, number } if self.actors[thread].alarm == number => self.make_runnable(thread),
            Event::Slice { core, number } if self.cores.all[core].number == number => self.rotate(core),
            Event::Spurious => {
                self.look_without_reason();
                self.plan_spurious();
            }
            Event::Timer { .. } | Event::Wake { .. } | Event::Slice { .. } => {}
        }
    }

    fn act(&mut self, thread: usize) {
        let elapsed_ns = self.account(thread);
        match self.actors[thread].doing {
            Doing::Holding => self.hold(thread, elapsed_ns),
            Doing::Working | Doing::Leaving(_) if self.actors[thread].remaining_ns > 0 => {
                self.go_on(thread, self.actors[thread].remaining_ns);
            }
            Doing::Working | Doing::Wants | Doing::Blocked => self.want(thread),
            Doing::OnLock => {
                self.actors[thread].was_on_lock = true;
                self.want(thread);
            }
            Doing::Leaving(after) => self.leave_gil(thread, after),
            Doing::SwitchingAwake { after, takes, deadline } => self.watch_switch(thread, after, takes, deadline),
            Doing::Switching(after) => self.switched(thread, after),
            Doing::Spinning { deadline, .. } => self.spin(thread, deadline),
            Doing::Sleeping => {
                self.look_again(thread, false);
            }
            Doing::StockWaiting {
                switch_number,
                is_timed_out,
            } => self.return_from_stock(thread, switch_number, is_timed_out),
            Doing::Unstarted | Doing::Ended => {}
        }
    }

    // ---- time on a processor ----------------------------------------------

    /// Accounts for the time since the thread continued; returns it.
    pub(super) fn account(&mut self, thread: usize) -> Nanos {
        let actor = &mut self.actors[thread];
        let elapsed_ns = self.now.saturating_sub(actor.since);
        actor.since = NEVER;
        if matches!(actor.doing, Doing::Holding | Doing::Working | Doing::Leaving(_)) {
            actor.remaining_ns = actor.remaining_ns.saturating_sub(elapsed_ns);
        }
        if actor.doing == Doing::Holding {
            self.trace.threads[thread].work_ns += elapsed_ns;
        }
        elapsed_ns
    }

    /// Lets the thread continue; its next step comes after `for_ns`.
    pub(super) fn go_on(&mut self, thread: usize, for_ns: Nanos) {
        self.actors[thread].since = self.now;
        self.plan_step(thread, self.now + for_ns);
    }

    pub(super) fn plan_step(&mut self, thread: usize, at: Nanos) {
        let actor = &mut self.actors[thread];
        actor.step_number += 1;
        let number = actor.step_number;
        if matches!(actor.run_state, RunState::On(_)) {
            self.events.plan(at, Event::Step { thread, number });
        }
    }

    // ---- the kernel -------------------------------------------------------

    pub(super) fn start(&mut self, thread: usize) {
        let actor = &mut self.actors[thread];
        if actor.doing == Doing::Unstarted {
            actor.doing = Doing::Wants;
            actor.last_core = thread % self.scenario.machine.processors;
            self.plan_wake(thread, self.scenario.machine.wake_ns);
        }
    }

    /// Wakes a sleeping thread, after `after_ns` and the machine's delay.
    pub(super) fn plan_wake(&mut self, thread: usize, after_ns: Nanos) {
        let late_ns = self.random.up_to(self.scenario.delays.wake_ns);
        let number = self.next_alarm(thread);
        self.events
            .plan(self.now + after_ns + late_ns, Event::Wake { thread, number });
    }

    pub(super) fn plan_timer(&mut self, thread: usize, at: Nanos) {
        let late_ns = self.random.up_to(self.scenario.delays.timer_ns);
        let number = self.next_alarm(thread);
        self.events
            .plan(at.max(self.now) + late_ns, Event::Timer { thread, number });
    }

    fn next_alarm(&mut self, thread: usize) -> u32 {
        self.actors[thread].alarm += 1;
        self.actors[thread].alarm
    }

    fn make_runnable(&mut self, thread: usize) {
        if self.actors[thread].run_state != RunState::Off {
            return;
        }
        let core = self.cores.place(self.actors[thread].last_core);
        if self.cores.all[core].running.is_none() {
            let look_at = self.cores.begin_new(core, thread, self.now);
            return self.dispatch(core, thread, look_at);
        }
        self.actors[thread].run_state = RunState::Queued;
        let at = self.cores.enqueue(core, thread, self.now);
        let number = self.cores.all[core].number;
        self.events.plan(at, Event::Slice { core, number });
    }

    /// Lets the thread run; `look_at` is when the kernel checks it again.
    fn dispatch(&mut self, core: usize, thread: usize, look_at: Option<Nanos>) {
        if let Some(at) = look_at {
            let number = self.cores.all[core].number;
            self.events.plan(at, Event::Slice { core, number });
        }
        self.actors[thread].run_state = RunState::On(core);
        self.actors[thread].last_core = core;
        self.actors[thread].since = NEVER;
        self.plan_step(thread, self.now + self.scenario.machine.context_switch_ns);
    }

    /// Ends the slice of the thread that runs on `core`, if another thread is next.
    fn rotate(&mut self, core: usize) {
        let Some(running) = self.cores.all[core].running else {
            return;
        };
        let next = self.cores.rotate(core, self.now);
        let look_at = self.cores.begin(core, next.unwrap_or(running), self.now);
        if let Some(next) = next {
            self.account(running);
            self.actors[running].step_number += 1;
            self.actors[running].run_state = RunState::Queued;
            self.dispatch(core, next, look_at);
        } else if let Some(at) = look_at {
            let number = self.cores.all[core].number;
            self.events.plan(at, Event::Slice { core, number });
        }
    }

    /// Takes the thread off its processor, which runs another thread.
    pub(super) fn leave_processor(&mut self, thread: usize) {
        let RunState::On(core) = std::mem::replace(&mut self.actors[thread].run_state, RunState::Off) else {
            return;
        };
        self.actors[thread].step_number += 1;
        if let Some(next) = self.cores.leave(core, self.now) {
            let look_at = self.cores.begin(core, next, self.now);
            self.dispatch(core, next, look_at);
        }
    }

    /// A timer fires: of a parked thread, or of one in the stock wait.
    fn time_out(&mut self, thread: usize) {
        let actor = &mut self.actors[thread];
        match &mut actor.doing {
            Doing::Sleeping if actor.parker.word == Word::Asleep => {
                actor.parker.word = Word::Awake;
                actor.has_timed_out = true;
            }
            Doing::StockWaiting { is_timed_out, .. } => *is_timed_out = true,
            Doing::Switching(_) => self.gil.switching.retain(|&other| other != thread),
            _ => return,
        }
        self.gil.stock_waiters.retain(|&waiter| waiter != thread);
        self.make_runnable(thread);
    }

    // ---- what goes wrong, and the end -------------------------------------

    fn plan_spurious(&mut self) {
        let about_ns = self.scenario.delays.spurious_every_ns;
        if about_ns > 0 {
            let after_ns = 1 + self.random.up_to(2 * about_ns);
            self.events.plan(self.now + after_ns, Event::Spurious);
        }
    }

    fn look_without_reason(&mut self) {
        let thread = self.random.up_to(self.actors.len() as u64 - 1) as usize;
        if matches!(self.actors[thread].doing, Doing::Sleeping | Doing::Spinning { .. }) {
            self.notify(thread, 0);
        }
    }

    fn finish(mut self) -> Trace {
        for thread in 0..self.actors.len() {
            self.account(thread);
            if self.is_waiting(thread) {
                let waited_ns = self.now - self.actors[thread].wants_since;
                let served = &mut self.trace.threads[thread];
                served.longest_wait_ns = served.longest_wait_ns.max(waited_ns);
            }
        }
        self.end_free_time();
        self.check_counters();
        self.trace.ended_at = self.now;
        if let Some(policy) = &self.policy {
            self.trace.waiting = u64::from(policy.waiting());
            self.trace.stats = policy.stats().clone();
        }
        self.trace
    }
}
