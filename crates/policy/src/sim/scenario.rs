//! The input of a simulation: programs, a machine, and its delays.
//!
//! Invariant: plain data; all times are nanoseconds of virtual time.

use crate::{Config, Hint, MICROSECOND, MILLISECOND, Nanos};

/// One step of a thread, with the GIL unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Runs bytecodes for this time; they notice a drop request.
    Compute(Nanos),
    /// One C call that keeps the GIL for this time, even if a drop is requested.
    Call(Nanos),
    /// Releases the GIL and blocks for this time: I/O, a sleep.
    Block(Nanos),
    /// Releases the GIL and computes in C for this time.
    Work(Nanos),
    /// Takes a permit of this semaphore; releases the GIL and blocks if it has none.
    Acquire(usize),
    /// Releases a permit, to the longest waiter if there is one.
    Release(usize),
    /// Starts this thread.
    Start(usize),
    /// Counts one unit of work as done: a request answered.
    Mark,
    /// Continues as the child of a fork, in which no other thread exists.
    Fork,
    /// Uninstalls the scheduler.
    Uninstall,
    /// Installs it again.
    Install,
    /// Sets the thread's hint.
    Hint(Hint),
    /// Changes the switch interval.
    SetInterval(Nanos),
    /// Begins the interpreter's finalisation: every other thread ends where it
    /// next meets the GIL.
    Finalize,
}

/// The steps of a thread, and how often it runs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub(super) steps: Vec<Step>,
    pub(super) rounds: u64,
    pub(super) is_started: bool,
}

impl Program {
    /// These steps, once.
    #[must_use]
    pub fn once(steps: impl Into<Vec<Step>>) -> Self {
        Self::times(1, steps)
    }

    /// These steps, `rounds` times.
    #[must_use]
    pub fn times(rounds: u64, steps: impl Into<Vec<Step>>) -> Self {
        Self {
            steps: steps.into(),
            rounds,
            is_started: true,
        }
    }

    /// These steps, until the end.
    #[must_use]
    pub fn forever(steps: impl Into<Vec<Step>>) -> Self {
        Self::times(u64::MAX, steps)
    }

    /// The same, but only once another thread starts it.
    #[must_use]
    pub fn unstarted(mut self) -> Self {
        self.is_started = false;
        self
    }
}

/// The processors and the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Number of processors.
    pub processors: usize,
    /// From a wake-up call to the moment the thread is runnable.
    pub wake_ns: Nanos,
    /// From the kernel's choice of a thread to its first instruction.
    pub context_switch_ns: Nanos,
    /// How long a thread runs while others wait for its processor.
    pub slice_ns: Nanos,
    /// Whether the kernel uses the hint that a thread is CPU-bound (Linux ≥ 6.12): any other
    /// thread that wakes up on its processor may run immediately.
    pub has_kernel_hints: bool,
    /// Whether a thread always wakes up on the processor it ran on, even if
    /// another is idle.
    pub is_sticky: bool,
    /// From a drop request to the bytecode that notices it.
    pub notice_ns: Nanos,
    /// GIL time of every step that has no duration of its own.
    pub step_ns: Nanos,
    /// From a change of a word to the reaction of a thread that watches it.
    pub watch_ns: Nanos,
}

impl Machine {
    /// A machine with this number of processors, otherwise like a small cloud instance.
    #[must_use]
    pub const fn with(processors: usize) -> Self {
        Self {
            processors,
            wake_ns: 5 * MICROSECOND,
            context_switch_ns: MICROSECOND,
            slice_ns: 3 * MILLISECOND,
            has_kernel_hints: true,
            is_sticky: false,
            notice_ns: 500,
            step_ns: 500,
            watch_ns: 200,
        }
    }
}

/// Delays: each event is late by a random time up to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delays {
    /// How late a wake-up may come.
    pub wake_ns: Nanos,
    /// How late a timer may fire.
    pub timer_ns: Nanos,
    /// Some waiting thread re-checks spuriously, about this often (0: never).
    pub spurious_every_ns: Nanos,
}

/// The scheduler of the GIL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduler {
    /// CPython's condition variable.
    Stock,
    /// The policy, with these constants.
    Policy(Config),
}

/// Everything that a run depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// The machine.
    pub machine: Machine,
    /// The delays on it.
    pub delays: Delays,
    /// The scheduler of the GIL.
    pub scheduler: Scheduler,
    /// The threads.
    pub programs: Vec<Program>,
    /// Permits that each semaphore starts with.
    pub permits: Vec<u32>,
    /// Threads that the policy's table holds; those beyond it wait by polling.
    pub capacity: usize,
    /// When it ends, if not before.
    pub until: Nanos,
    /// It also ends when this thread does.
    pub ends_with: Option<usize>,
    /// Seed of everything random.
    pub seed: u64,
}

impl Scenario {
    /// These programs under the default policy on this number of processors, for one second.
    #[must_use]
    pub fn new(processors: usize, programs: Vec<Program>) -> Self {
        Self {
            machine: Machine::with(processors),
            delays: Delays::default(),
            scheduler: Scheduler::Policy(Config::default()),
            capacity: programs.len(),
            programs,
            permits: Vec::new(),
            until: 1_000 * MILLISECOND,
            ends_with: None,
            seed: 1,
        }
    }

    /// The same under CPython's own condition variable.
    #[must_use]
    pub fn stock(&self) -> Self {
        Self {
            scheduler: Scheduler::Stock,
            ..self.clone()
        }
    }
}
