//! The method with which a loop of asyncio makes one round, the rounds that took long, and samples of what its tasks wait
//! for before some rounds.
//!
//! The method is native, so no frame of the recorder stands in the tracebacks of the program. Must never: take more than
//! a hundredth of a loop's time; swallow an exception that a signal's handler raises during a sample, except while an
//! object of the program's own class is asked, which may raise as well. Invariant: between two samples lies the longer of [`LEAST_PAUSE`] and a hundred times what the last one took.

use crate::trace::bound;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict, PyTuple};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// No loop is sampled more often.
const LEAST_PAUSE: Duration = Duration::from_millis(5);
/// The pause after a sample, in times of what it took.
const PAUSE_SHARE: u32 = 100;

/// A round of this length is told: a callback in it may have kept all others waiting for so long.
const LONG: Duration = Duration::from_millis(50);

/// Make a round of a loop. Before some rounds for which nothing is ready, `before(loop)` returns what its tasks wait for,
/// or None; `after(waits, nanoseconds)` then gets the length of the round. `long(nanoseconds)` gets that of each round of
/// 50 ms or more, with or without a sample.
#[pyclass(frozen, module = "unsnarl._native")]
pub(crate) struct SampledRounds {
    original: Py<PyAny>,
    before: Py<PyAny>,
    after: Py<PyAny>,
    long: Py<PyAny>,
    due: Mutex<Option<Instant>>,
}

#[pymethods]
impl SampledRounds {
    #[new]
    fn new(original: Py<PyAny>, before: Py<PyAny>, after: Py<PyAny>, long: Py<PyAny>) -> Self {
        Self {
            original,
            before,
            after,
            long,
            due: Mutex::new(None),
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
        let began = Instant::now();
        let result = self.round(py, args, kwargs, began)?;
        let length = began.elapsed();
        if length >= LONG {
            self.long.bind(py).call1((nanoseconds(length),))?;
        }
        Ok(result)
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
        began: Instant,
    ) -> PyResult<Bound<'py, PyAny>> {
        let original = self.original.bind(py);
        let Some(owner) = args.get_item(0).ok().filter(has_nothing_to_run) else {
            return original.call(args, kwargs);
        };
        if !self.is_due(began) {
            return original.call(args, kwargs);
        }
        let waits = self.before.bind(py).call1((owner,))?;
        let sampled = Instant::now();
        let pause = (sampled - began) * PAUSE_SHARE;
        if waits.is_none() {
            self.pause(sampled + pause);
            return original.call(args, kwargs);
        }
        self.pause(sampled + pause.max(LEAST_PAUSE));
        let result = original.call(args, kwargs)?;
        self.after.bind(py).call1((waits, nanoseconds(sampled.elapsed())))?;
        Ok(result)
    }

    /// Whether a sample is due; a loop of another thread that is about to be sampled is not waited for.
    fn is_due(&self, now: Instant) -> bool {
        self.due
            .try_lock()
            .is_ok_and(|due| due.is_none_or(|moment| moment <= now))
    }

    fn pause(&self, until: Instant) {
        if let Ok(mut due) = self.due.try_lock() {
            *due = Some(until);
        }
    }
}

fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
