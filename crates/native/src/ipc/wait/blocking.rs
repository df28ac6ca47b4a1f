//! Blocks a thread on a word in shared memory: a short spin, then sleeps of at most a second.
//!
//! A waiter spins first if that pays at the object (`spin.rs`).
//!
//! No sleep is longer than a second. If a process was killed while it owed others a wake-up or a count, they notice
//! at the latest after that second. A lock holder's death needs no such limit: the kernel wakes a waiter. A signal
//! also ends the sleep, except a signal that arrives between the last check for signals and the sleep: its handler
//! runs at the end of the sleep.
//!
//! Invariant: a waiter that leaves after a sleep without what it waited for wakes another sleeper.

use super::spin::{Spin, is_parallel};
use crate::sync::calls::arguments::Timeout;
use pyo3::prelude::*;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};
use unsnarl_ipc::{Kernel, Slept, Step};
use unsnarl_shm::{Host, Woken};

/// Upper bound of every sleep in shared memory.
pub(super) const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// How often a waiter yields. The kernel owes a process at most a tick, 4 ms, or two slices; each yield uses up a
/// slice, 1.4 ms or more.
const YIELDS: u32 = 4;

/// How a waiter learns of another process's death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ipc) enum Watch {
    /// The kernel wakes the waiter, or no death matters: the waiter only re-checks for a lost wake-up. Where the system
    /// takes no robust list, it checks by itself.
    Kernel,
    /// The waiter checks by itself, soon at first and then less often.
    Own,
}

impl Watch {
    /// Many threads may wait, and each check is a context switch. With checks after 10, 30, 70 ms …, forty processes
    /// behind a lock on one processor took five times as long to get through it.
    fn first_sleep(self) -> Duration {
        match self {
            Self::Kernel if !unsnarl_shm::is_unmarked() => LONGEST_SLEEP,
            Self::Kernel | Self::Own => Duration::from_millis(100),
        }
    }
}

/// An attempt's knowledge of the wait so far.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::ipc) struct WaitRound {
    /// Whether the caller has slept on a word of this operation: others may sleep there too.
    pub(in crate::ipc) slept: Slept,
    /// Nothing has happened for a while: the attempt checks whether other processes are alive.
    pub(in crate::ipc) is_recheck: bool,
}

impl WaitRound {
    /// The round of a task, which does not know on which word it slept.
    pub(in crate::ipc) fn of_task(has_slept: bool, is_recheck: bool) -> Self {
        Self {
            slept: Slept::somewhere(has_slept),
            is_recheck,
        }
    }
}

/// Yields to all other runnable threads several times, on one processor, for a waiter in a crowd
/// (`unsnarl_ipc::Crowd`).
///
/// Not for a waiter with a timeout: yielding may take longer than the timeout.
pub(in crate::ipc) fn give_way(py: Python<'_>, is_ready: &(dyn Fn() -> bool + Sync)) -> PyResult<()> {
    if is_parallel() {
        return Ok(());
    }
    py.detach(|| {
        for _ in 0..YIELDS {
            if is_ready() {
                return;
            }
            std::thread::yield_now();
        }
    });
    // A signal that arrived meanwhile would not end the sleep that follows.
    py.check_signals()
}

/// Repeats the attempt until it is done; None if the time is up.
///
/// `is_ready` is a cheap guess whether `attempt` would succeed.
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

/// Does the same behind guards. A waiter whose time is up at a guard still waits to enter, since it has not yet
/// checked whether what it waits for is available. It waits at most a second longer, since the thread inside may be
/// stopped.
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
    let mut recheck_after = watch.first_sleep();
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
        let until = end.map_or(now + recheck_after, |end| end.min(now + recheck_after));
        let woken = py.detach(|| unsnarl_shm::wait(word, expected, Some(until)));
        round = WaitRound {
            slept: Slept::on(word),
            is_recheck: woken == Woken::TimedOut,
        };
        if woken != Woken::Perhaps {
            recheck_after = (recheck_after * 2).min(LONGEST_SLEEP);
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
