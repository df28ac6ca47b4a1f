//! The word that a task sleeps on, and the call by which one thread of unsnarl sleeps for many tasks.
//!
//! Invariant: a sleep keeps the object alive in whose mapping its word is.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use unsnarl_ipc::{Kernel, Step};
use unsnarl_shm::{Host, Woken};

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
    /// Wakes another sleeper: this task leaves without what it waited for.
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

/// True, as an attempt for a task returns it.
pub(in crate::ipc) fn yes(py: Python<'_>) -> PyResult<Py<PyAny>> {
    Ok(true.into_pyobject(py)?.to_owned().into_any().unbind())
}

/// Converts the outcome of an attempt for a task: the value, or a `Sleep`.
pub(in crate::ipc) fn task_outcome<T>(
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

/// Sleep until one of the words changes or is woken, or `timeout` seconds have passed; at most 128 words. Returns the
/// numbers of the sleeps that ended, None if the time was up.
#[pyfunction]
fn ipc_wait_any(py: Python<'_>, sleeps: Vec<Py<Sleep>>, timeout: f64) -> Option<Vec<usize>> {
    let words: Vec<(&AtomicU32, u32)> = sleeps
        .iter()
        .map(|sleep| (sleep.get().word(), sleep.get().expected))
        .collect();
    let left = Duration::try_from_secs_f64(timeout).unwrap_or(super::blocking::LONGEST_SLEEP);
    let (woken, number) = py.detach(|| unsnarl_shm::wait_any(&words, left));
    let has_ended = |at: usize| {
        let (word, expected) = words[at];
        // A woken sleep has ended even if its word has the old value: the word may have changed and changed back.
        // ORDERING: pairs with the writes of the word by other processes, whichever order they use.
        number == Some(at) || word.load(Ordering::SeqCst) != expected
    };
    (woken != Woken::TimedOut).then(|| (0..words.len()).filter(|at| has_ended(*at)).collect())
}

pub(in crate::ipc) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Sleep>()?;
    module.add_function(wrap_pyfunction!(ipc_wait_any, module)?)
}
