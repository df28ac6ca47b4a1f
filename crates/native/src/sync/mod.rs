//! The primitives as Python sees them: thin classes over the cores of `unsnarl-sync`.
//!
//! A class holds a core and answers three questions for it: how a call is
//! parsed, how a party waits (`blocking` for threads and greenlets, `operation`
//! for tasks), and what goes wrong in which words.
//!
//! Invariant: no Python code runs, and nothing is allocated by Python, while a
//! core's mutex is held; so a thread that holds one is never switched away from.

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
