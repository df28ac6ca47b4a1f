//! Waiting of threads for words in shared memory; and what a task sleeps on.
//!
//! A short spin, then sleep. Spinning pays between processes, unlike between threads of one
//! interpreter: the other one has a GIL of its own, and a wake-up costs more than most
//! critical sections. It is given up where it does not pay, and on one processor.
//!
//! No sleep is longer than a second: whatever a process that was killed owed to others
//! (a wake-up, a count), they see it then at the latest. The holder's death is not among
//! these: the kernel wakes a waiter for that. So does a signal, but for one that comes between
//! the last look for signals and the sleep: its handler runs at the end of the sleep.
//!
//! Invariant: who leaves without what it waited for, after a sleep, wakes another in its stead.

use super::spin::{Spin, is_parallel};
use crate::sync::arguments::Patience as Timeout;
use pyo3::prelude::*;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};
use unsnarl_ipc::{Kernel, Slept, Step};
use unsnarl_shm::{Host, Woken};

pub(super) const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// The kernel owes a process at most a tick, 4 ms, or two slices; giving way once costs it a slice, 1.4 ms and more.
const WAYS_GIVEN: u32 = 4;
/// Who tells a waiter of the death of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ipc) enum Watch {
    /// The kernel, or nobody has to: the waiter looks for a wake-up that it was owed, alone.
    Kernel,
    /// The waiter itself, by looking sooner, and then less and less often.
    Own,
}

impl Watch {
    /// Many may wait, and each look is a switch of processes: with looks after 10, 30, 70 ms …, forty
    /// processes behind a lock on one processor took five times as long to get through it.
    fn first_sleep(self) -> Duration {
        match self {
            Self::Kernel => LONGEST_SLEEP,
            Self::Own => Duration::from_millis(100),
        }
    }
}

/// What an attempt is told.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::ipc) struct WaitRound {
    /// Whether the caller has slept on a word of this operation: others may sleep there too.
    pub(in crate::ipc) slept: Slept,
    /// Nothing has happened for a while: look whether the others are alive.
    pub(in crate::ipc) is_recheck: bool,
}

impl WaitRound {
    /// That of a task, which does not know on which word it slept.
    pub(in crate::ipc) fn of_task(has_slept: bool, is_recheck: bool) -> Self {
        Self {
            slept: Slept::somewhere(has_slept),
            is_recheck,
        }
    }
}

/// Let all others that can run do so some times, on one processor, where a crowd waits (`unsnarl_ipc::Crowd`).
///
/// Not for a waiter whose time is limited: what it gives away may be more than that.
pub(in crate::ipc) fn give_way(py: Python<'_>, is_ready: &(dyn Fn() -> bool + Sync)) -> PyResult<()> {
    if is_parallel() {
        return Ok(());
    }
    py.detach(|| {
        for _ in 0..WAYS_GIVEN {
            if is_ready() {
                return;
            }
            std::thread::yield_now();
        }
    });
    // A signal that has come meanwhile would not end the sleep that follows.
    py.check_signals()
}

/// Try until it is done, or the time is up (None).
///
/// `is_ready` is a cheap guess whether `attempt` will be done.
pub(in crate::ipc) fn block<'a, T>(
    py: Python<'_>,
    timeout: Timeout,
    spin: Option<&Spin>,
    watch: Watch,
    is_ready: &dyn Fn() -> bool,
    attempt: impl FnMut(WaitRound) -> PyResult<Step<'a, T>>,
) -> PyResult<Option<T>> {
    block_behind_guard(py, timeout, spin, watch, is_ready, &|_| false, attempt)
}

/// The same behind guards: whose time is up waits for its turn there, since it has not yet seen whether there is
/// what it came for; for a second, since the one inside may be stopped.
pub(in crate::ipc) fn block_behind_guard<'a, T>(
    py: Python<'_>,
    timeout: Timeout,
    spin: Option<&Spin>,
    watch: Watch,
    is_ready: &dyn Fn() -> bool,
    is_guard: &dyn Fn(&AtomicU32) -> bool,
    mut attempt: impl FnMut(WaitRound) -> PyResult<Step<'a, T>>,
) -> PyResult<Option<T>> {
    if let Some(spin) = spin
        && !matches!(timeout, Timeout::None)
        && !is_ready()
    {
        spin.run(is_ready);
    }
    let deadline = match timeout {
        Timeout::None => Some(Instant::now()),
        timeout => timeout.deadline(),
    };
    let mut look = watch.first_sleep();
    let mut round = WaitRound::default();
    loop {
        let (word, expected) = match attempt(round)? {
            Step::Done(value) => return Ok(Some(value)),
            Step::Sleep(word, expected) => (word, expected),
        };
        let now = Instant::now();
        let end = deadline.map(|deadline| {
            if is_guard(word) {
                deadline + LONGEST_SLEEP
            } else {
                deadline
            }
        });
        if end.is_some_and(|end| end <= now) {
            return Ok(give_up(round, word, None));
        }
        let until = end.map_or(now + look, |end| end.min(now + look));
        let woken = py.detach(|| unsnarl_shm::wait(word, expected, Some(until)));
        round = WaitRound {
            slept: Slept::on(word),
            is_recheck: woken == Woken::TimedOut,
        };
        if woken != Woken::Perhaps {
            look = (look * 2).min(LONGEST_SLEEP);
            if let Err(error) = py.check_signals() {
                return Err(give_up(round, word, error));
            }
        }
    }
}

fn give_up<T>(round: WaitRound, word: &AtomicU32, outcome: T) -> T {
    if round.slept.has_slept() {
        Host.wake(word, 1);
    }
    outcome
}
