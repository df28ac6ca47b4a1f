//! Executes the steps of a program.
//!
//! Invariant: a step takes effect at the end of its time with the GIL, while the thread still holds
//! the GIL.

use super::actor::{After, Doing, RunState};
use super::cores::Cores;
use super::gil::Gil;
use super::scenario::Step;
use super::world::{NEVER, World};
use crate::Nanos;

impl World<'_> {
    /// The GIL time of the present step.
    fn cost_ns(&self, thread: usize) -> Nanos {
        let step_ns = self.scenario.machine.step_ns.max(1);
        match self.actors[thread].step() {
            Some(Step::Compute(ns) | Step::Call(ns)) => ns.max(1),
            _ => step_ns,
        }
    }

    /// Begins the present step; the thread has the GIL.
    pub(super) fn begin_step(&mut self, thread: usize) {
        if self.actors[thread].step().is_none() {
            return self.end_thread(thread);
        }
        self.actors[thread].remaining_ns = self.cost_ns(thread);
        self.actors[thread].since = NEVER;
        self.hold(thread, 0);
    }

    fn next_step(&mut self, thread: usize) {
        if self.actors[thread].advance() {
            self.begin_step(thread);
        } else {
            self.end_thread(thread);
        }
    }

    /// Continues with the GIL after having run for `elapsed_ns`.
    pub(super) fn hold(&mut self, thread: usize, elapsed_ns: Nanos) {
        let remaining_ns = self.actors[thread].remaining_ns;
        if remaining_ns == 0 {
            return self.take_effect(thread);
        }
        let is_asked = self.gil.is_drop_requested && self.actors[thread].is_interruptible();
        if is_asked && elapsed_ns > 0 {
            return self.drop_gil(thread, After::Retake);
        }
        let notice_ns = self.scenario.machine.notice_ns.max(1);
        self.go_on(
            thread,
            if is_asked {
                remaining_ns.min(notice_ns)
            } else {
                remaining_ns
            },
        );
    }

    fn take_effect(&mut self, thread: usize) {
        let Some(step) = self.actors[thread].step() else { return };
        match step {
            Step::Block(ns) => return self.drop_gil(thread, After::Block(ns)),
            Step::Work(ns) => return self.drop_gil(thread, After::Work(ns)),
            Step::Acquire(lock) if self.semaphores[lock].permits == 0 => {
                return self.drop_gil(thread, After::Lock(lock));
            }
            Step::Acquire(lock) => self.semaphores[lock].permits -= 1,
            Step::Release(lock) => self.release(lock),
            Step::Start(other) => self.start(other),
            Step::Mark => self.trace.threads[thread].marks += 1,
            Step::Fork => return self.fork(thread),
            Step::Uninstall => self.uninstall(),
            Step::Install => self.install(thread),
            Step::Hint(hint) => {
                let id = self.register(thread);
                if let (Some(policy), Some(id)) = (&mut self.policy, id) {
                    policy.set_hint(id, hint);
                }
            }
            Step::SetInterval(ns) => {
                self.gil.interval_ns = ns;
                if let Some(policy) = &mut self.policy {
                    policy.set_slice(ns);
                }
            }
            Step::Finalize => self.finalizer = Some(thread),
            Step::Compute(_) | Step::Call(_) => {}
        }
        self.next_step(thread);
    }

    /// Continues after the step that released the GIL: with the next step, if there is one.
    pub(super) fn resume_program(&mut self, thread: usize) {
        let is_step_left = self.actors[thread].remaining_ns > 0;
        let is_fresh = self.trace.threads[thread].takes == 1;
        if is_step_left {
            self.hold(thread, 0);
        } else if is_fresh {
            self.begin_step(thread);
        } else {
            self.next_step(thread);
        }
    }

    /// After the drop: does what the thread dropped the GIL for.
    pub(super) fn proceed(&mut self, thread: usize, after: After) {
        match after {
            After::Retake => self.want(thread),
            After::Block(ns) => {
                self.actors[thread].doing = Doing::Blocked;
                self.plan_wake(thread, ns);
                self.leave_processor(thread);
            }
            After::Work(ns) => {
                self.actors[thread].doing = Doing::Working;
                self.actors[thread].remaining_ns = ns.max(1);
                self.go_on(thread, ns.max(1));
            }
            After::Lock(lock) if self.semaphores[lock].permits > 0 => {
                self.semaphores[lock].permits -= 1;
                self.want(thread);
            }
            After::Lock(lock) => {
                self.semaphores[lock].waiters.push_back(thread);
                self.actors[thread].doing = Doing::OnLock;
                self.leave_processor(thread);
            }
        }
    }

    fn release(&mut self, lock: usize) {
        match self.semaphores[lock].waiters.pop_front() {
            Some(waiter) => {
                self.gil.has_woken = true;
                self.plan_wake(waiter, self.scenario.machine.wake_ns);
            }
            None => self.semaphores[lock].permits += 1,
        }
    }

    fn end_thread(&mut self, thread: usize) {
        self.actors[thread].doing = Doing::Ended;
        self.release_gil(thread);
        self.end(thread);
    }

    /// Ends the thread.
    pub(super) fn end(&mut self, thread: usize) {
        self.actors[thread].doing = Doing::Ended;
        self.trace.threads[thread].has_ended = true;
        self.retire(thread);
        self.leave_processor(thread);
        self.is_over |= self.scenario.ends_with == Some(thread);
    }

    /// Continues as the child of a fork.
    fn fork(&mut self, survivor: usize) {
        for thread in (0..self.actors.len()).filter(|&thread| thread != survivor) {
            let actor = &mut self.actors[thread];
            if actor.doing != Doing::Unstarted {
                actor.doing = Doing::Ended;
            }
            (actor.run_state, actor.id) = (RunState::Off, None);
            actor.step_number += 1;
            actor.alarm += 1;
        }
        for semaphore in &mut self.semaphores {
            semaphore.waiters.clear();
        }
        self.cores = Cores::new(&self.scenario.machine, self.actors.len());
        self.actors[survivor].run_state = RunState::On(0);
        self.cores.begin_new(0, survivor, self.now);
        self.gil = Gil::new(self.gil.interval_ns, self.scenario.capacity);
        self.restart_policy_in_child(survivor);
        self.want(survivor);
    }
}
