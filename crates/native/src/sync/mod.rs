//! The primitives as Python classes: thin shells over the cores of `unsnarl-sync`.
//!
//! A class holds a core and adds what the core does not know: how a call's arguments are parsed, how a party
//! waits, and which exception is raised.
//!
//! | room | holds | may use |
//! |---|---|---|
//! | `calls` | how CPython calls a method, how its arguments are parsed and its result returned | – |
//! | `who` | the calling thread, greenlet or task, its process, and whether it still lives | – |
//! | `wait` | how a thread, a greenlet or a task waits and is woken; the trait `Wait` | `calls`, `who` |
//! | `permit` | Lock, RLock, the semaphores, CapacityLimiter, RWLock | `calls`, `who`, `wait` |
//! | `condition` | Condition | the above |
//! | `queue` | Queue and its kinds | the above |
//! | this folder | Barrier, Event, CountdownEvent, Latch, Flag, ResourceGuard | the above but `queue` |
//!
//! `calls` is also the way in of the primitives between processes (`crate::ipc`). No two files use each other, and
//! no room uses one below it in this table.
//!
//! Invariant: no Python code runs, and Python allocates nothing, while a core's mutex is held; so a thread that
//! holds one is never switched away from.

mod barrier;
pub(crate) mod calls;
mod condition;
mod event;
mod flag;
mod latch;
mod object_cell;
mod permit;
mod queue;
mod wait;
mod who;

use pyo3::prelude::*;

/// Add the classes to the extension module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    who::process::watch_forks(wait::spin::forget);
    wait::gil::rely_on_gil();
    module.add_function(wrap_pyfunction!(who::process::leave_greenlets_behind, module)?)?;
    wait::operation::register(module)?;
    calls::ready::register(module);
    permit::lock::register(module)?;
    permit::rlock::register(module)?;
    permit::semaphore::register(module)?;
    event::register(module)?;
    condition::methods::register(module)?;
    barrier::register(module)?;
    queue::calls::register(module)?;
    latch::register(module)?;
    permit::limiter::register(module)?;
    permit::rwlock::register(module)?;
    flag::register(module)
}
