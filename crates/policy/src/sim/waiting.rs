//! `take_gil` up to the take, and the wait in the policy's queue.
//!
//! As `take_gil` of `Python/ceval_gil.c` calls it and as the mechanism's
//! `timedwait` does it: a thread that has slept passes a request on only if the
//! GIL was not taken meanwhile, else it returns and asks from a fresh call.

use super::actor::{After, Doing, RunState};
use super::parker::Word;
use super::world::{NEVER, World};
use crate::{MILLISECOND, Nanos, Verdict};

/// How long a thread beyond the table's capacity sleeps between two polls.
const POLL_NS: Nanos = MILLISECOND;

/// How a wait call ended, if it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Pending,
    Returned,
    TimedOut,
}

impl World<'_> {
    /// Enters `take_gil`.
    pub(super) fn want(&mut self, thread: usize) {
        if self.must_end(thread) {
            return self.end(thread);
        }
        self.actors[thread].wants_since = self.now;
        self.gil.wanting += 1;
        let contenders = self.gil.wanting + u64::from(self.gil.is_locked);
        self.trace.most_contenders = self.trace.most_contenders.max(contenders);
        self.actors[thread].doing = Doing::Wants;
        self.wait_for_gil(thread);
    }

    fn wait_for_gil(&mut self, thread: usize) {
        loop {
            if !self.gil.is_locked {
                return self.take(thread);
            }
            let call = self.begin_wait(thread);
            if !self.is_to_go_on(thread, call) {
                return;
            }
        }
    }

    /// The rest of `take_gil` after the wait has returned; returns whether it waits again.
    fn is_to_go_on(&mut self, thread: usize, call: Call) -> bool {
        let is_switched = self.actors[thread].switch_number != self.gil.switch_number;
        match call {
            Call::Pending => return false,
            Call::TimedOut if self.gil.is_locked && !is_switched => {
                if self.must_end(thread) {
                    self.gil.wanting -= 1;
                    self.end(thread);
                    return false;
                }
                self.request_drop();
            }
            Call::TimedOut | Call::Returned => {}
        }
        true
    }

    /// Whether the interpreter is being finalised by another thread.
    pub(super) fn must_end(&self, thread: usize) -> bool {
        self.finalizer.is_some_and(|finalizer| finalizer != thread)
    }

    fn request_drop(&mut self) {
        self.trace.requests += 1;
        self.gil.is_drop_requested = true;
        let Some(holder) = self.gil.last_holder else { return };
        let actor = &self.actors[holder];
        // A thread that is being dispatched will see the request on its processor.
        let is_running = matches!(actor.run_state, RunState::On(_)) && actor.since != NEVER;
        if actor.is_interruptible() && is_running {
            self.account(holder);
            let notice_ns = self.scenario.machine.notice_ns.max(1);
            self.go_on(holder, self.actors[holder].remaining_ns.min(notice_ns));
        }
    }

    /// One call of the condition variable's timed wait.
    fn begin_wait(&mut self, thread: usize) -> Call {
        self.actors[thread].switch_number = self.gil.switch_number;
        self.actors[thread].takes = self.gil.takes;
        self.actors[thread].has_slept = false;
        if !self.is_active {
            self.gil.stock_waiters.push_back(thread);
            return self.wait_in_stock(thread, self.gil.interval_ns);
        }
        if self.register(thread).is_none() {
            return self.wait_in_stock(thread, POLL_NS);
        }
        self.decide(thread)
    }

    fn wait_in_stock(&mut self, thread: usize, for_ns: Nanos) -> Call {
        self.actors[thread].doing = Doing::StockWaiting {
            switch_number: self.gil.switch_number,
            is_timed_out: false,
        };
        self.plan_timer(thread, self.now + for_ns);
        self.leave_processor(thread);
        Call::Pending
    }

    pub(super) fn return_from_stock(&mut self, thread: usize, switch_number: u64, is_timed_out: bool) {
        self.actors[thread].switch_number = switch_number;
        let call = if is_timed_out { Call::TimedOut } else { Call::Returned };
        if self.is_to_go_on(thread, call) {
            self.wait_for_gil(thread);
        }
    }

    /// One round of the wait in the queue.
    fn decide(&mut self, thread: usize) -> Call {
        let Some(id) = self.actors[thread].id else {
            return Call::Returned;
        };
        let has_slept = self.actors[thread].has_slept;
        let arrival = if has_slept {
            crate::Arrival::default()
        } else {
            self.take_arrival(thread)
        };
        self.actors[thread].parker.word = Word::Awake;
        let is_last_resort = self.is_last_resort(thread);
        let now = self.now;
        let Some(policy) = &mut self.policy else {
            return Call::Returned;
        };
        if !self.is_active {
            self.trace.cancelled += 1;
            policy.cancel(id);
            return Call::Returned;
        }
        let verdict = if has_slept {
            policy.look(id, now)
        } else {
            policy.wait(id, now, arrival)
        };
        self.judge_insurance(is_last_resort, verdict);
        self.obey(thread, verdict)
    }

    fn obey(&mut self, thread: usize, verdict: Verdict) -> Call {
        let actor = &self.actors[thread];
        match verdict {
            Verdict::Go => Call::Returned,
            Verdict::Ask if actor.has_slept && actor.takes != self.gil.takes => {
                if let (Some(policy), Some(id)) = (&mut self.policy, actor.id) {
                    policy.retract_ask(id);
                }
                Call::Returned
            }
            Verdict::Ask => Call::TimedOut,
            Verdict::Park { until, spin_ns } => {
                self.park(thread, until, spin_ns);
                Call::Pending
            }
        }
    }

    fn park(&mut self, thread: usize, until: Nanos, spin_ns: Nanos) {
        let insurance_ns = self.policy.as_ref().map_or(0, |policy| {
            policy.config().insurance_ns.saturating_mul(u64::from(policy.waiting()))
        });
        self.hint_kernel(thread);
        let actor = &mut self.actors[thread];
        actor.until = until;
        actor.is_insurance = until >= self.now + insurance_ns;
        if spin_ns > 0 && self.scenario.machine.processors > 1 {
            let deadline = self.now + spin_ns;
            actor.doing = Doing::Spinning { deadline, until };
            self.plan_step(thread, deadline);
        } else {
            self.sleep(thread);
        }
    }

    /// A step of a parked thread that spins.
    pub(super) fn spin(&mut self, thread: usize, deadline: Nanos) {
        let parker = self.actors[thread].parker;
        let at = if parker.word == Word::Notified {
            parker.not_before
        } else {
            deadline
        };
        if self.now < at {
            self.plan_step(thread, at);
        } else if parker.word == Word::Notified {
            self.look_again(thread, true);
        } else {
            self.sleep(thread);
        }
    }

    fn sleep(&mut self, thread: usize) {
        let actor = &mut self.actors[thread];
        actor.parker.word = Word::Asleep;
        actor.has_timed_out = false;
        actor.doing = Doing::Sleeping;
        let until = actor.until;
        self.plan_timer(thread, until);
        self.leave_processor(thread);
    }

    /// Re-checks after a park; `is_awake` is whether the thread was notified while it spun.
    pub(super) fn look_again(&mut self, thread: usize, is_awake: bool) {
        self.actors[thread].has_slept = true;
        if let (Some(policy), Some(id)) = (&mut self.policy, self.actors[thread].id) {
            policy.stayed_awake(id, is_awake);
        }
        let call = self.decide(thread);
        if self.is_to_go_on(thread, call) {
            self.wait_for_gil(thread);
        }
    }

    // ---- notifications ----------------------------------------------------

    /// Notifies a thread; whether it had to be woken from its sleep.
    pub(super) fn notify(&mut self, thread: usize, not_before: Nanos) -> bool {
        let was_asleep = self.actors[thread].parker.notify(not_before);
        let not_before = self.actors[thread].parker.not_before;
        match self.actors[thread].doing {
            Doing::Sleeping if was_asleep => self.plan_wake(thread, self.scenario.machine.wake_ns),
            Doing::Spinning { .. } => {
                let at = not_before.max(self.now + self.scenario.machine.watch_ns);
                self.plan_step(thread, at);
            }
            _ => {}
        }
        was_asleep
    }

    pub(super) fn notify_if_awake(&mut self, thread: usize, not_before: Nanos) {
        if self.actors[thread].parker.word != Word::Asleep {
            self.notify(thread, not_before);
        }
    }

    // ---- insurance --------------------------------------------------------

    /// Whether this check happens because the insurance fired.
    fn is_last_resort(&mut self, thread: usize) -> bool {
        let actor = &mut self.actors[thread];
        std::mem::take(&mut actor.has_timed_out) && actor.has_slept && actor.is_insurance
    }

    /// Counts an insurance timer. If it finds something to do while no other thread was about to
    /// re-check, it has covered a defect.
    fn judge_insurance(&mut self, is_last_resort: bool, verdict: Verdict) {
        if !is_last_resort {
            return;
        }
        let has_acted = !matches!(verdict, Verdict::Park { .. });
        if has_acted && !(0..self.actors.len()).any(|other| self.is_about_to_look(other)) {
            self.trace.insurance_needed += 1;
        } else {
            self.trace.insurance_idle += 1;
        }
    }

    fn is_about_to_look(&self, thread: usize) -> bool {
        let actor = &self.actors[thread];
        let soon = self.now + MILLISECOND + self.scenario.delays.timer_ns;
        match actor.doing {
            // A preempted thread that returns becomes the timekeeper.
            Doing::Spinning { .. }
            | Doing::Wants
            | Doing::Leaving(After::Retake)
            | Doing::Switching(After::Retake)
            | Doing::SwitchingAwake {
                after: After::Retake, ..
            } => true,
            // A thread that was woken, or whose timer fired, re-checks as soon as it has a processor.
            Doing::Sleeping => {
                actor.run_state != RunState::Off
                    || actor.parker.word != Word::Asleep
                    || (!actor.is_insurance && actor.until <= soon)
            }
            _ => false,
        }
    }

    pub(super) fn is_waiting(&self, thread: usize) -> bool {
        matches!(
            self.actors[thread].doing,
            Doing::Wants | Doing::Spinning { .. } | Doing::Sleeping | Doing::StockWaiting { .. }
        )
    }
}
