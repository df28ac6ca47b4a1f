//! The Python classes of the primitives between processes: thin layers over `unsnarl-ipc` (the meaning of the words)
//! and `unsnarl-shm` (their memory).
//!
//! Every class has the same three layers: an attempt that never waits; a blocking call that repeats the attempt
//! (`wait`); and an attempt for tasks, which python/unsnarl/ipc repeats.
//!
//! Without a GIL, several threads of one process may use an object at the same time. Its words treat these threads
//! like processes. They share the process's account in a ledger and the robust-list entry behind a mapping
//! ([`threads::THREADS`]), and what `unsnarl_shm::alone` guards.
//!
//! Invariant: no Python code runs between `Kernel::begin` and `Kernel::end`.

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
mod threads;
mod wait;

use pyo3::prelude::*;

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
