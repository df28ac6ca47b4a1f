//! The method with which a loop of asyncio makes one round, the rounds that took long, and samples before some rounds:
//! of what its tasks wait for, and of which are ready.
//!
//! The method is native, so no frame of the recorder stands in the tracebacks of the program. Must never: take more than
//! a hundredth of a loop's time for each kind of sample; swallow an exception that a signal's handler raises during a
//! sample, except while an object of the program's own class is asked, which may raise as well. Invariant: between two
//! samples of a kind lies the longer of [`LEAST_PAUSE_NS`] and a hundred times what the last one took.

use crate::sampler::{monotonic_ns, own_wait_ns};
use crate::trace::bound;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict, PyTuple};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// No loop is sampled more often.
const LEAST_PAUSE_NS: u64 = 5_000_000;
/// The pause after a sample, in times of what it took.
const PAUSE_SHARE: u64 = 100;

/// A round of this length is told: a callback in it may have kept all others waiting for so long.
const LONG_NS: u64 = 50_000_000;

/// How old what is known of a thread's waits for a processor may be when a round begins.
const CLOCK_NS: u64 = 5_000_000;

/// Make a round of a loop. Before some rounds for which nothing is ready, `before(loop)` returns what its tasks wait for,
/// or None; `after(waits, nanoseconds)` then gets the length of the round. `ready(loop)` is called before some rounds for
/// which something is ready. `long(thread, begin, end, ran)` gets each round of 50 ms or more, also one that ends with an
/// exception, and for how many nanoseconds its thread did not wait for a processor in it: it ran, or blocked. Where it
/// waited shortly before as well, that is some milliseconds too little. Moments are nanoseconds of the monotonic clock.
#[pyclass(frozen, module = "unsnarl._native")]
pub(crate) struct SampledRounds {
    original: Py<PyAny>,
    before: Py<PyAny>,
    after: Py<PyAny>,
    ready: Py<PyAny>,
    long: Py<PyAny>,
    due: Due,
    ready_due: Due,
    threads: Mutex<HashMap<i32, Rounds>>,
}

/// The moment from which on the next sample of a kind is taken, in nanoseconds of the monotonic clock.
#[derive(Default)]
struct Due(AtomicU64);

impl Due {
    fn is_at(&self, now_ns: u64) -> bool {
        self.0.load(Ordering::Relaxed) <= now_ns
    }

    fn set(&self, began_ns: u64, ended_ns: u64, least_ns: u64) {
        let pause_ns = ended_ns.saturating_sub(began_ns).saturating_mul(PAUSE_SHARE);
        self.0
            .store(ended_ns.saturating_add(pause_ns.max(least_ns)), Ordering::Relaxed);
    }
}

/// Of the loops of one thread: when the first watched round began, and the one that goes on, if one does; when the
/// thread's waits for a processor were last read, before that one, and their sum.
#[derive(Clone, Copy)]
struct Rounds {
    first_ns: u64,
    current_ns: Option<u64>,
    clock_ns: u64,
    lacked_ns: u64,
}

/// Threads of which rounds are watched; those of more are not.
const MOST_THREADS: usize = 1024;

#[pymethods]
impl SampledRounds {
    #[new]
    fn new(original: Py<PyAny>, before: Py<PyAny>, after: Py<PyAny>, ready: Py<PyAny>, long: Py<PyAny>) -> Self {
        Self {
            original,
            before,
            after,
            ready,
            long,
            due: Due::default(),
            ready_due: Due::default(),
            threads: Mutex::new(HashMap::new()),
        }
    }

    /// Bind to a loop, as a function does.
    fn __get__<'py>(
        this: Bound<'py, Self>,
        owner: &Bound<'py, PyAny>,
        _class: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        bound(this.into_any(), owner)
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (thread, began_ns) = (gettid(), monotonic_ns());
        self.begin(thread, began_ns);
        let result = self.round(py, args, kwargs, began_ns);
        let ended_ns = monotonic_ns();
        let before_ns = self.end(thread);
        let length_ns = ended_ns.saturating_sub(began_ns);
        if length_ns >= LONG_NS {
            let lacked_ns = before_ns.map_or(0, |before_ns| own_wait_ns().saturating_sub(before_ns));
            let ran_ns = length_ns.saturating_sub(lacked_ns);
            let told = self.long.bind(py).call1((thread, began_ns, ended_ns, ran_ns));
            if result.is_ok() {
                told?; // an exception of the round itself is the one that goes on
            }
        }
        result
    }

    /// The moment, and of each thread whose rounds are watched its number, when its first round began, and the one that
    /// goes on, if one does.
    fn watched(&self) -> (u64, Vec<(i32, u64, Option<u64>)>) {
        let threads = self.threads();
        let every = threads
            .iter()
            .map(|(&thread, rounds)| (thread, rounds.first_ns, rounds.current_ns));
        (monotonic_ns(), every.collect())
    }

    /// Forget all threads: in a forked child they are gone, or have another number.
    fn forget(&self) {
        self.threads().clear();
    }
}

/// Whether a loop is about to wait: asyncio's loops keep what is ready in a deque.
fn has_nothing_to_run(owner: &Bound<'_, PyAny>) -> bool {
    owner
        .getattr(intern!(owner.py(), "_ready"))
        .and_then(|ready| ready.len())
        .is_ok_and(|count| count == 0)
}

impl SampledRounds {
    fn round<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        began_ns: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let original = self.original.bind(py);
        let Ok(owner) = args.get_item(0) else {
            return original.call(args, kwargs);
        };
        if !has_nothing_to_run(&owner) {
            self.sample_ready(&owner, began_ns)?;
            return original.call(args, kwargs);
        }
        if !self.due.is_at(began_ns) {
            return original.call(args, kwargs);
        }
        let waits = self.before.bind(py).call1((owner,))?;
        let sampled_ns = monotonic_ns();
        if waits.is_none() {
            self.due.set(began_ns, sampled_ns, 0);
            return original.call(args, kwargs);
        }
        self.due.set(began_ns, sampled_ns, LEAST_PAUSE_NS);
        let result = original.call(args, kwargs)?;
        let waited_ns = monotonic_ns().saturating_sub(sampled_ns);
        self.after.bind(py).call1((waits, waited_ns))?;
        Ok(result)
    }

    fn sample_ready(&self, owner: &Bound<'_, PyAny>, now_ns: u64) -> PyResult<()> {
        if self.ready_due.is_at(now_ns) {
            self.ready.bind(owner.py()).call1((owner,))?;
            self.ready_due.set(now_ns, monotonic_ns(), LEAST_PAUSE_NS);
        }
        Ok(())
    }

    fn begin(&self, thread: i32, now_ns: u64) {
        let mut threads = self.threads();
        if let Some(rounds) = threads.get_mut(&thread) {
            rounds.current_ns = Some(now_ns);
            if now_ns.saturating_sub(rounds.clock_ns) >= CLOCK_NS {
                (rounds.clock_ns, rounds.lacked_ns) = (now_ns, own_wait_ns());
            }
        } else if threads.len() < MOST_THREADS {
            let (first_ns, current_ns) = (now_ns, Some(now_ns));
            let (clock_ns, lacked_ns) = (now_ns, own_wait_ns());
            threads.insert(
                thread,
                Rounds {
                    first_ns,
                    current_ns,
                    clock_ns,
                    lacked_ns,
                },
            );
        }
    }

    /// Note the end of a round, and return how long its thread had waited for a processor some time before it.
    fn end(&self, thread: i32) -> Option<u64> {
        let mut threads = self.threads();
        let rounds = threads.get_mut(&thread)?;
        rounds.current_ns = None;
        Some(rounds.lacked_ns)
    }

    fn threads(&self) -> MutexGuard<'_, HashMap<i32, Rounds>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The kernel's number of this thread.
fn gettid() -> i32 {
    // SAFETY: gettid(2) always succeeds.
    let number = unsafe { libc::syscall(libc::SYS_gettid) };
    i32::try_from(number).unwrap_or(0)
}
