//! The state of one simulated thread: its position in its program, and in `take_gil` or
//! `drop_gil`.
//!
//! Invariant: `doing` is what the thread does when it next has a processor, or names what has to
//! wake it first.

use super::parker::Parker;
use super::scenario::{Program, Step};
use crate::{Nanos, ThreadId};

/// The action that follows a drop of the GIL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// Wants it again: it was asked to drop it.
    Retake,
    Block(Nanos),
    Work(Nanos),
    Lock(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Unstarted,
    /// Has the GIL.
    Holding,
    /// Computes without the GIL.
    Working,
    /// In `drop_gil`, before it checks whether it must switch.
    Leaving(After),
    /// In the forced switch, awake.
    SwitchingAwake {
        after: After,
        takes: u64,
        deadline: Nanos,
    },
    /// In the forced switch, asleep or just woken.
    Switching(After),
    /// About to enter `take_gil`.
    Wants,
    /// Parked, awake.
    Spinning {
        deadline: Nanos,
        until: Nanos,
    },
    /// Parked, asleep or just woken.
    Sleeping,
    /// In CPython's own condition variable, or waiting by polling.
    StockWaiting {
        switch_number: u64,
        is_timed_out: bool,
    },
    /// In a blocking call.
    Blocked,
    /// In the wait for a permit.
    OnLock,
    Ended,
}

/// The thread's state in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunState {
    Off,
    Queued,
    On(usize),
}

#[derive(Debug, Clone)]
pub(super) struct Actor {
    pub(super) program: Program,
    pub(super) position: usize,
    pub(super) rounds_done: u64,
    pub(super) doing: Doing,
    pub(super) run_state: RunState,
    pub(super) last_core: usize,
    /// Time that is left of its present activity, and since when it runs.
    pub(super) remaining_ns: Nanos,
    /// Time that was left of the step when a forced switch interrupted it.
    pub(super) interrupted_ns: Nanos,
    pub(super) since: Nanos,
    /// Number of its valid `Step`, and of its valid `Timer` or `Wake`.
    pub(super) step_number: u32,
    pub(super) alarm: u32,
    pub(super) id: Option<ThreadId>,
    pub(super) parker: Parker,
    pub(super) was_on_lock: bool,
    pub(super) switched_at: Option<Nanos>,
    pub(super) wants_since: Nanos,
    /// Takes of the GIL when its present wait call began, and the switch number.
    pub(super) takes: u64,
    pub(super) switch_number: u64,
    pub(super) has_slept: bool,
    /// Its timer in the park, and whether that is only the insurance.
    pub(super) until: Nanos,
    pub(super) is_insurance: bool,
    pub(super) has_timed_out: bool,
}

impl Actor {
    pub(super) fn new(program: Program) -> Self {
        Self {
            program,
            position: 0,
            rounds_done: 0,
            doing: Doing::Unstarted,
            run_state: RunState::Off,
            last_core: 0,
            remaining_ns: 0,
            interrupted_ns: 0,
            since: 0,
            step_number: 0,
            alarm: 0,
            id: None,
            parker: Parker::default(),
            was_on_lock: false,
            switched_at: None,
            wants_since: 0,
            takes: 0,
            switch_number: 0,
            has_slept: false,
            until: 0,
            is_insurance: false,
            has_timed_out: false,
        }
    }

    pub(super) fn step(&self) -> Option<Step> {
        self.program.steps.get(self.position).copied()
    }

    /// Goes to the next step; false at the end of the program.
    pub(super) fn advance(&mut self) -> bool {
        self.position += 1;
        if self.position >= self.program.steps.len() {
            self.position = 0;
            self.rounds_done += 1;
        }
        self.rounds_done < self.program.rounds
    }

    /// Whether bytecodes run, which notice a drop request.
    pub(super) fn is_interruptible(&self) -> bool {
        self.doing == Doing::Holding && !matches!(self.step(), Some(Step::Call(_)))
    }
}
