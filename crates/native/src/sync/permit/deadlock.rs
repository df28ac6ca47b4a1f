//! The refusal of a wait that could not end: a thread that waits for a task of its own loop.
//!
//! Must never: refuse in doubt. A task that has ended may still be released from outside, and a caller that is a
//! greenlet may be switched away from, since the loop may run in another greenlet.

use crate::sync::wait::party::Party;
use crate::sync::who::{backends, identity, libraries, running};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use unsnarl_sync::Permits;

/// Raise if a task of the calling thread holds the lock, or is to get it before the caller: that task cannot release
/// it while the thread waits.
pub(in crate::sync) fn refuse_deadlock(py: Python<'_>, holder: usize, permits: &Permits<Party>) -> PyResult<()> {
    let is_here = identity::task_of_this_thread;
    let holding = is_here(holder).or_else(|| permits.find_grantee(is_here));
    let (task, relation) = match holding {
        Some(task) => (task, Relation::Holds),
        None if !permits.has_seen_tasks() => return Ok(()),
        None => match permits.find_waiting(is_here) {
            // Only a thread that runs a task keeps its other tasks from running.
            Some(task) if !running::task(py)?.is_none() => (task, Relation::ComesFirst),
            _ => return Ok(()),
        },
    };
    refuse_if_stuck(py, task, relation)
}

/// How the task is in the caller's way.
#[derive(Debug, Clone, Copy)]
pub(in crate::sync) enum Relation {
    Holds,
    ComesFirst,
}

/// Raise if the task with this address cannot run while the calling thread waits.
pub(in crate::sync) fn refuse_if_stuck(py: Python<'_>, task: usize, relation: Relation) -> PyResult<()> {
    let relation = match relation {
        Relation::Holds => "held by",
        Relation::ComesFirst => "promised first to",
    };
    match stuck_task(py, task)? {
        Some(name) => Err(deadlock(&format!(
            "the lock is {relation} {name}, a task of this thread, which"
        ))),
        None => Ok(()),
    }
}

/// The name of the task with this address if it cannot run while this thread waits; None if the task has ended, or in
/// doubt.
pub(in crate::sync) fn stuck_task(py: Python<'_>, task: usize) -> PyResult<Option<String>> {
    if libraries::has_hubs(py) && !backends::function(py, "green_parker")?.call0()?.is_none() {
        return Ok(None);
    }
    let named = backends::function(py, "describe_task")?.call1((task,))?;
    named.extract()
}

/// The error for a wait that cannot end: `what` cannot run.
pub(in crate::sync) fn deadlock(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!(
        "deadlock: {what} cannot run while the thread waits; acquire it with 'async with' or \
         'await async_acquire()' instead"
    ))
}
