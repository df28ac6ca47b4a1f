//! A party that waits (a thread, a greenlet, a task), and how each kind is woken: the [`Unparker`] of the
//! cores.
//!
//! Must never: block in `wake`, or raise. `wake` may be called from any thread, also by `__del__` and by
//! signal handlers; [`super::interruption`] says what becomes of an exception that a callback raises.
//!
//! Invariant: a wake-up that arrives before a task of asyncio has a future is kept, and ends the next
//! suspension immediately.

use super::futex;
use super::gil;
use super::interruption;
use super::mailbox::Mailbox;
use super::nap::{self, Napping};
use super::owner::Owner;
use crate::sync::who::liveness::ThreadLiveness;
use crate::sync::who::process;
use crate::sync::who::thread;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Mutex, PoisonError};
use unsnarl_sync::{AtomicU32, Unparker};

/// A party that waits.
#[derive(Debug)]
pub(in crate::sync) struct Party {
    epoch: u32,
    /// The identity of the task; 0 for a thread or a greenlet.
    task: usize,
    how: How,
}

#[derive(Debug)]
enum How {
    /// A thread that sleeps on its waiter's word.
    Thread {
        lock: usize,
        number: usize,
        /// Whether the thread does nothing but wait. If not, it may run Python code (signal handlers, hooks)
        /// before it re-checks.
        is_idle: AtomicBool,
        napping: Napping,
    },
    /// A greenlet of the thread with this number; `unpark` wakes it.
    Greenlet {
        unpark: Py<PyAny>,
        thread: usize,
        liveness: ThreadLiveness,
    },
    /// A task of a loop that has a parker; the callable wakes it.
    Task(Py<PyAny>),
    Asyncio(Mutex<FutureCell>),
}

/// The future on which a task of asyncio is suspended, and the mailbox of its loop.
#[derive(Debug, Default)]
struct FutureCell {
    future: Option<(Py<PyAny>, Py<Mailbox>, Owner)>,
    /// Whether a wake-up arrived while there was no future.
    is_woken: bool,
}

impl Party {
    /// The calling thread, which waits for the object with this address.
    pub(in crate::sync) fn thread(lock: usize) -> Self {
        Self {
            epoch: process::epoch(),
            task: 0,
            how: How::Thread {
                lock,
                number: thread::number(),
                is_idle: AtomicBool::new(false),
                napping: Napping::default(),
            },
        }
    }

    /// Record whether the thread does nothing but wait from now on. Other parties rely on the thread only while
    /// it does.
    pub(in crate::sync) fn set_idle(&self, idle: bool) {
        if let How::Thread { is_idle, .. } = &self.how {
            is_idle.store(idle, Ordering::Relaxed);
            fence_without_gil();
        }
    }

    /// Whether this thread naps; None for a party that is no thread.
    pub(super) fn napping(&self) -> Option<&Napping> {
        match &self.how {
            How::Thread { napping, .. } => Some(napping),
            _ => None,
        }
    }

    /// The calling thread's current greenlet, which `unpark()` wakes.
    pub(in crate::sync) fn greenlet(py: Python<'_>, unpark: Py<PyAny>) -> PyResult<Self> {
        Ok(Self {
            epoch: process::epoch(),
            task: 0,
            how: How::Greenlet {
                unpark,
                thread: thread::number(),
                liveness: ThreadLiveness::of_this_thread(py)?,
            },
        })
    }

    /// A task that `unpark()` wakes.
    pub(in crate::sync) fn task(task: usize, unpark: Py<PyAny>) -> Self {
        Self {
            epoch: process::epoch(),
            task,
            how: How::Task(unpark),
        }
    }

    pub(in crate::sync) fn asyncio(task: usize) -> Self {
        Self {
            epoch: process::epoch(),
            task,
            how: How::Asyncio(Mutex::default()),
        }
    }

    /// Suspend on `future`. `owner` is closed if its loop no longer runs.
    pub(in crate::sync) fn attach(&self, py: Python<'_>, future: Py<PyAny>, mailbox: Py<Mailbox>, owner: Owner) {
        if let How::Asyncio(cell) = &self.how {
            let mut cell = cell.lock().unwrap_or_else(PoisonError::into_inner);
            if std::mem::take(&mut cell.is_woken) {
                drop(cell);
                interruption::outlast(py, || mailbox.get().deliver(py, &future, &owner));
            } else {
                let old = cell.future.replace((future, mailbox, owner));
                drop(cell);
                drop(old);
            }
        }
    }

    /// Drop the future, which has ended. A later wake-up ends the next suspension.
    pub(in crate::sync) fn detach(&self) {
        if let How::Asyncio(cell) = &self.how {
            let old = cell.lock().unwrap_or_else(PoisonError::into_inner).future.take();
            drop(old);
        }
    }

    pub(in crate::sync) fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        match &self.how {
            How::Thread { .. } => Ok(()),
            How::Greenlet { unpark, .. } | How::Task(unpark) => visit.call(unpark),
            How::Asyncio(cell) => match cell.try_lock().as_deref() {
                Ok(FutureCell {
                    future: Some((future, mailbox, owner)),
                    ..
                }) => {
                    visit.call(future)?;
                    visit.call(mailbox)?;
                    owner.traverse(visit)
                }
                _ => Ok(()),
            },
        }
    }
}

/// A full fence where there is no GIL.
///
/// ORDERING: pairs with itself, in `set_idle` and in `is_prompt`. The notifying thread writes the waiter's
/// word and then reads `is_idle`; the waiting thread writes `is_idle` and then reads its word. One of the two
/// must see the other's write. With a GIL, both do.
#[inline]
fn fence_without_gil() {
    if !gil::has_gil() {
        fence(Ordering::SeqCst);
    }
}

impl Unparker for Party {
    fn wants_grant(&self) -> bool {
        !matches!(self.how, How::Thread { .. })
    }

    fn sleeps_on_word(&self) -> bool {
        matches!(self.how, How::Thread { .. })
    }

    fn is_prompt(&self) -> bool {
        match &self.how {
            How::Thread { number, is_idle, .. } => {
                fence_without_gil();
                *number != thread::number() && is_idle.load(Ordering::Relaxed)
            }
            _ => false,
        }
    }

    fn task(&self) -> usize {
        self.task
    }

    fn is_alive(&self) -> bool {
        // One thread of a forked process lives on (a signal handler may fork while the thread waits), and its
        // greenlets with it. Loops do not: their descriptors are the parent's.
        let is_ours = self.epoch == process::epoch();
        match &self.how {
            How::Thread { number, .. } => is_ours || *number == process::survivor(),
            How::Greenlet { thread, liveness, .. } => {
                (is_ours || *thread == process::survivor()) && !liveness.has_ended()
            }
            _ => is_ours,
        }
    }

    fn generation() -> u32 {
        process::generation()
    }

    fn wake(&self, word: &AtomicU32) {
        match &self.how {
            How::Thread { lock, napping, .. } => {
                unsnarl_hook::releases_lock(*lock);
                if !nap::owe(word, napping) {
                    futex::wake(word);
                }
            }
            How::Greenlet { unpark, .. } | How::Task(unpark) => Python::attach(|py| {
                interruption::outlast(py, || unpark.call0(py).map(drop));
            }),
            How::Asyncio(cell) => {
                let taken = {
                    let mut cell = cell.lock().unwrap_or_else(PoisonError::into_inner);
                    cell.is_woken = cell.future.is_none();
                    cell.future.take()
                };
                if let Some((future, mailbox, owner)) = taken {
                    Python::attach(|py| {
                        interruption::outlast(py, || mailbox.get().deliver(py, &future, &owner));
                        drop((future, mailbox, owner));
                    });
                }
            }
        }
    }
}
