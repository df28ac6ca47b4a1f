//! The primitives between processes as Python sees them: thin classes over `unsnarl-ipc`
//! (what the words mean) and `unsnarl-shm` (where they are).
//!
//! Every class has the same three layers: an attempt that never waits, a blocking call
//! that repeats it (`waiting`), and an attempt for tasks, which python/unsnarl/ipc repeats.
//!
//! Threads of one process that use an object at once, where there is no GIL, are to its words what processes
//! are. What is theirs together are the process's account in a ledger and the entry of a robust list
//! behind a mapping (`THREADS`), and what `unsnarl_shm::alone` is taken around.
//!
//! Invariant: no Python code runs while `Kernel::begin` is in force.

mod account;
mod barrier;
mod condition;
mod countdown;
mod event;
mod item;
mod locks;
mod methods;
mod queue;
mod segment;
mod semaphore;
mod wait;

use pyo3::prelude::*;
use unsnarl_ipc::Threads;

/// Whether the GIL lets one thread at a time make an attempt.
const THREADS: Threads = if cfg!(Py_GIL_DISABLED) {
    Threads::Concurrent
} else {
    Threads::Serialised
};

/// Add the classes to the extension module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    unsnarl_shm::watch_forks();
    wait::register(module)?;
    locks::register(module)?;
    semaphore::register(module)?;
    event::register(module)?;
    countdown::register(module)?;
    barrier::register(module)?;
    condition::register(module)?;
    queue::register(module)?;
    segment::register(module)
}
