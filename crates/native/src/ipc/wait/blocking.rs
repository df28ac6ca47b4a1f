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

use crate::sync::arguments::Patience;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use unsnarl_ipc::{Kernel, Slept, Step};
use unsnarl_shm::{Host, Woken};

const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// Looks at the word before sleeping: some 10 to 30 microseconds, two to four wake-ups.
const SPINS: u32 = 600;
/// The kernel owes a process at most a tick, 4 ms, or two slices; giving way once costs it a slice, 1.4 ms and more.
const WAYS_GIVEN: u32 = 4;
/// Failures in a row after which spinning is tried only now and then.
const CREDIT: i32 = 8;
/// How often it then is.
const RETRY: i32 = -64;

/// Whether spinning has paid at this object, in this process.
#[derive(Debug)]
pub(in crate::ipc) struct Spin(AtomicI32);

impl Default for Spin {
    fn default() -> Self {
        Self(AtomicI32::new(if is_parallel() { CREDIT } else { i32::MIN }))
    }
}

fn is_parallel() -> bool {
    static PROCESSORS: AtomicU32 = AtomicU32::new(0);
    let mut known = PROCESSORS.load(Ordering::Relaxed);
    if known == 0 {
        known = unsnarl_shm::processors().max(1) as u32;
        PROCESSORS.store(known, Ordering::Relaxed);
    }
    known > 1
}

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

impl Spin {
    fn run(&self, is_ready: &dyn Fn() -> bool) -> bool {
        let credit = self.0.load(Ordering::Relaxed);
        if credit == i32::MIN {
            return false;
        }
        if credit <= 0 {
            self.0
                .store(if credit <= RETRY { 1 } else { credit - 1 }, Ordering::Relaxed);
            return false;
        }
        for _ in 0..SPINS {
            if is_ready() {
                self.0.store((credit + 1).min(CREDIT), Ordering::Relaxed);
                return true;
            }
            std::hint::spin_loop();
        }
        self.0.store(credit - 1, Ordering::Relaxed);
        false
    }
}

/// What an attempt is told.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::ipc) struct Turn {
    /// Whether the caller has slept on a word of this operation: others may sleep there too.
    pub(in crate::ipc) slept: Slept,
    /// Nothing has happened for a while: look whether the others are alive.
    pub(in crate::ipc) is_look: bool,
}

impl Turn {
    /// That of a task, which does not know on which word it slept.
    pub(in crate::ipc) fn of_task(has_slept: bool, is_look: bool) -> Self {
        Self {
            slept: Slept::somewhere(has_slept),
            is_look,
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
    patience: Patience,
    spin: Option<&Spin>,
    watch: Watch,
    is_ready: &dyn Fn() -> bool,
    attempt: impl FnMut(Turn) -> PyResult<Step<'a, T>>,
) -> PyResult<Option<T>> {
    block_behind(py, patience, spin, watch, is_ready, &|_| false, attempt)
}

/// The same behind guards: whose time is up waits for its turn there, since it has not yet seen whether there is
/// what it came for; for a second, since the one inside may be stopped.
pub(in crate::ipc) fn block_behind<'a, T>(
    py: Python<'_>,
    patience: Patience,
    spin: Option<&Spin>,
    watch: Watch,
    is_ready: &dyn Fn() -> bool,
    is_guard: &dyn Fn(&AtomicU32) -> bool,
    mut attempt: impl FnMut(Turn) -> PyResult<Step<'a, T>>,
) -> PyResult<Option<T>> {
    if let Some(spin) = spin
        && !matches!(patience, Patience::None)
        && !is_ready()
    {
        spin.run(is_ready);
    }
    let deadline = match patience {
        Patience::None => Some(Instant::now()),
        patience => patience.deadline(),
    };
    let mut look = watch.first_sleep();
    let mut turn = Turn::default();
    loop {
        let (word, expected) = match attempt(turn)? {
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
            return Ok(give_up(turn, word, None));
        }
        let until = end.map_or(now + look, |end| end.min(now + look));
        let woken = py.detach(|| unsnarl_shm::wait(word, expected, Some(until)));
        turn = Turn {
            slept: Slept::on(word),
            is_look: woken == Woken::TimedOut,
        };
        if woken != Woken::Perhaps {
            look = (look * 2).min(LONGEST_SLEEP);
            if let Err(error) = py.check_signals() {
                return Err(give_up(turn, word, error));
            }
        }
    }
}

fn give_up<T>(turn: Turn, word: &AtomicU32, outcome: T) -> T {
    if turn.slept.has_slept() {
        Host.wake(word, 1);
    }
    outcome
}

/// A word that a task sleeps on while a thread of unsnarl watches it.
#[pyclass(frozen, module = "unsnarl._native", name = "IpcSleep")]
pub(in crate::ipc) struct Sleep {
    _owner: Py<PyAny>,
    word: *const AtomicU32,
    expected: u32,
}

// SAFETY: the word is an atomic, in a mapping that `_owner` keeps.
unsafe impl Send for Sleep {}
// SAFETY: as above.
unsafe impl Sync for Sleep {}

#[pymethods]
impl Sleep {
    /// Wake another sleeper: this one leaves without what it waited for.
    fn pass_on(&self) {
        Host.wake(self.word(), 1);
    }
}

impl Sleep {
    fn word(&self) -> &AtomicU32 {
        // SAFETY: in a mapping that the owner keeps; owners never change their mapping.
        unsafe { &*self.word }
    }
}

/// The outcome of an attempt for a task: the value, or a `Sleep`.
pub(in crate::ipc) fn told<T>(
    py: Python<'_>,
    owner: &Bound<'_, PyAny>,
    step: Step<'_, T>,
    value: impl FnOnce(T) -> PyResult<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    match step {
        Step::Done(done) => value(done),
        Step::Sleep(word, expected) => {
            let sleep = Sleep {
                _owner: owner.clone().unbind(),
                word,
                expected,
            };
            Ok(Py::new(py, sleep)?.into_any())
        }
    }
}

/// Sleep until one of the words changes or is woken, or `timeout` seconds have passed; at most
/// 128 words. Returns the numbers of those sleeps that are over, None if the time was up.
#[pyfunction]
fn ipc_wait_any(py: Python<'_>, sleeps: Vec<Py<Sleep>>, timeout: f64) -> Option<Vec<usize>> {
    let words: Vec<(&AtomicU32, u32)> = sleeps
        .iter()
        .map(|sleep| (sleep.get().word(), sleep.get().expected))
        .collect();
    let left = Duration::try_from_secs_f64(timeout).unwrap_or(LONGEST_SLEEP);
    let (woken, number) = py.detach(|| unsnarl_shm::wait_any(&words, left));
    let is_over = |at: usize| {
        let (word, expected) = words[at];
        // One that was woken is over even if its word is what it was: it may have been there and back.
        number == Some(at) || word.load(Ordering::SeqCst) != expected
    };
    (woken != Woken::TimedOut).then(|| (0..words.len()).filter(|at| is_over(*at)).collect())
}

pub(in crate::ipc) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Sleep>()?;
    module.add_function(wrap_pyfunction!(ipc_wait_any, module)?)
}
