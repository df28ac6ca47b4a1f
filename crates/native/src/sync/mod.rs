//! The primitives as Python sees them: thin classes over the cores of `unsnarl-sync`.
//!
//! A class holds a core and answers three questions for it: how a call is
//! parsed, how a party waits (`blocking` for threads and greenlets, `operation`
//! for tasks), and what goes wrong in which words.
//!
//! Invariant: no Python code runs, and nothing is allocated by Python, while a
//! core's mutex is held; so a thread that holds one is never switched away from.

pub(crate) mod arguments;
mod barrier;
mod blocking;
mod condition;
mod description;
mod event;
mod excuse;
pub(crate) mod fast;
mod flag;
mod futex;
mod guard;
mod hooks;
pub(crate) mod identity;
mod interruption;
mod items;
mod latch;
mod limiter;
mod lock;
mod mailbox;
mod notify_wait;
mod operation;
mod party;
mod permit_calls;
mod permit_wait;
mod presence;
mod priority;
mod queue;
mod queue_access;
mod queue_batch;
mod queue_calls;
mod queue_end;
mod queue_kinds;
mod queue_wait;
mod ready;
mod rlock;
mod running;
mod rwlock;
mod semaphore;
mod slot;
mod spin;
mod stop;
mod suspension;
mod ticket;

use pyo3::prelude::*;

/// Add the classes to the extension module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    identity::watch_forks();
    identity::rely_on_gil();
    module.add_function(wrap_pyfunction!(identity::leave_greenlets_behind, module)?)?;
    operation::register(module)?;
    ready::register(module);
    lock::register(module)?;
    rlock::register(module)?;
    semaphore::register(module)?;
    event::register(module)?;
    condition::register(module)?;
    barrier::register(module)?;
    queue_calls::register(module)?;
    latch::register(module)?;
    limiter::register(module)?;
    rwlock::register(module)?;
    flag::register(module)
}
