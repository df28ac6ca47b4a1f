//! The owner a call acts for: a number for each thread, greenlet and task.
//!
//! | caller | number |
//! |---|---|
//! | thread | its address (pthread_self), even |
//! | greenlet other than the thread's main one | its address, even |
//! | task | its address without the aligned bits, and an odd mark of its thread |
//! | no task | [`NO_TASK`] |
//!
//! Invariant: two parties that live at the same time never share a number.

use super::{backends, libraries, running, thread};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The number of no party.
pub(in crate::sync) const NO_TASK: usize = 0;

/// Low bits of a task's number, which mark its thread and make the number odd.
const THREAD_BITS: u32 = 20;
/// Python objects are aligned to this many bits.
const ALIGNMENT_BITS: u32 = 4;

/// The owner of a synchronous call: the thread, or the greenlet if that is not the thread's main one.
#[inline]
pub(in crate::sync) fn caller(py: Python<'_>) -> usize {
    if libraries::has_greenlets(py) {
        greenlet(py).unwrap_or_else(|_| thread::ident())
    } else {
        thread::ident()
    }
}

#[cold]
fn greenlet(py: Python<'_>) -> PyResult<usize> {
    static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let current = CURRENT
        .get_or_try_init(py, || {
            Ok::<_, PyErr>(py.import("greenlet")?.getattr("getcurrent")?.unbind())
        })?
        .bind(py)
        .call0()?;
    let is_main = current.getattr(pyo3::intern!(py, "parent"))?.is_none();
    Ok(if is_main {
        thread::ident()
    } else {
        current.as_ptr() as usize
    })
}

/// The owner of an asynchronous call: the running task.
///
/// # Errors
/// `RuntimeError` outside of a task.
pub(in crate::sync) fn task(py: Python<'_>) -> PyResult<usize> {
    match task_if_any(py)? {
        NO_TASK => Err(pyo3::exceptions::PyRuntimeError::new_err(
            "the asynchronous methods work in a task of asyncio, trio, anyio or curio; there is none here",
        )),
        task => Ok(task),
    }
}

/// The running task, or [`NO_TASK`]. In `asyncio.run(lock.async_acquire())` no task runs yet; the task that takes the
/// first step becomes the owner.
#[inline]
pub(in crate::sync) fn task_if_any(py: Python<'_>) -> PyResult<usize> {
    let task = running::task(py)?;
    if task.is_none() {
        return Ok(NO_TASK);
    }
    Ok((task.as_ptr() as usize >> ALIGNMENT_BITS) << THREAD_BITS | thread_mark())
}

/// Whether this number is a task's.
pub(in crate::sync) fn is_task(identity: usize) -> bool {
    identity & 1 == 1
}

/// Whether this number is a task's that will not run again, other than to be closed. Calls Python and walks all
/// tasks: not for a path that is called often.
pub(in crate::sync) fn has_ended(py: Python<'_>, identity: usize) -> PyResult<bool> {
    if !is_task(identity) {
        return Ok(false);
    }
    backends::function(py, "is_over")?
        .call1((address_of(identity),))?
        .is_truthy()
}

fn address_of(task: usize) -> usize {
    (task >> THREAD_BITS) << ALIGNMENT_BITS
}

/// The address of the task with this number, if it runs in the calling thread.
pub(in crate::sync) fn task_of_this_thread(identity: usize) -> Option<usize> {
    let is_here = identity & ((1 << THREAD_BITS) - 1) == thread_mark();
    is_here.then_some(address_of(identity))
}

/// An odd number that two threads share only if half a million threads were started between them.
fn thread_mark() -> usize {
    (thread::number() << 1 | 1) & ((1 << THREAD_BITS) - 1)
}
