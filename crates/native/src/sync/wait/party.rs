//! The port: how a waiter of each kind is woken.
//!
//! Invariant: `wake` may be called from any thread, also by `__del__` and by
//! signal handlers; it does not block and raises nothing (`interruption` says what
//! becomes of what a callback raises).

use super::futex;
use super::gil;
use super::interruption;
use super::mailbox::Mailbox;
use super::owner::Owner;
use crate::sync::who::liveness::Presence;
use crate::sync::who::process;
use crate::sync::who::thread;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Mutex, PoisonError};
use unsnarl_sync::{AtomicU32, Port};

/// Who waits.
#[derive(Debug)]
pub(in crate::sync) struct Party {
    epoch: u32,
    /// The identity of the task, 0 for anybody else.
    task: usize,
    how: How,
}

#[derive(Debug)]
enum How {
    /// What it waits for, as the recorder calls it.
    Thread {
        lock: usize,
        number: usize,
        /// It does nothing but wait. Else it may run Python code before it looks: signal handlers, hooks.
        is_idle: AtomicBool,
    },
    /// A greenlet of this thread: what wakes it.
    Greenlet {
        unpark: Py<PyAny>,
        thread: usize,
        presence: Presence,
    },
    /// A task of a loop that has a parker: what wakes it.
    Task(Py<PyAny>),
    Asyncio(Mutex<Slot>),
}

/// The future a task of asyncio is suspended on, and the way to its loop.
#[derive(Debug, Default)]
struct Slot {
    future: Option<(Py<PyAny>, Py<Mailbox>, Owner)>,
    /// Woken before there was a future.
    is_woken: bool,
}

impl Party {
    /// A thread that waits for the object with this address.
    pub(in crate::sync) fn thread(lock: usize) -> Self {
        Self {
            epoch: process::epoch(),
            task: 0,
            how: How::Thread {
                lock,
                number: thread::number(),
                is_idle: AtomicBool::new(false),
            },
        }
    }

    /// Say whether the thread does nothing but wait from now on. Whoever calls it while it does more does not rely on it.
    pub(in crate::sync) fn set_idle(&self, idle: bool) {
        if let How::Thread { is_idle, .. } = &self.how {
            is_idle.store(idle, Ordering::Relaxed);
            fence_without_gil();
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
                presence: Presence::of_this_thread(py)?,
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

    /// Suspend on `future`; `owner` is a weak reference to the operation, which
    /// is closed if the loop no longer runs.
    pub(in crate::sync) fn attach(&self, py: Python<'_>, future: Py<PyAny>, mailbox: Py<Mailbox>, owner: Owner) {
        if let How::Asyncio(slot) = &self.how {
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            if std::mem::take(&mut slot.is_woken) {
                drop(slot);
                interruption::outlast(py, || mailbox.get().deliver(py, &future, &owner));
            } else {
                let old = slot.future.replace((future, mailbox, owner));
                drop(slot);
                drop(old);
            }
        }
    }

    /// Forget the future: it is over. Who wakes from now on wakes the next one.
    pub(in crate::sync) fn detach(&self) {
        if let How::Asyncio(slot) = &self.how {
            let old = slot.lock().unwrap_or_else(PoisonError::into_inner).future.take();
            drop(old);
        }
    }

    pub(in crate::sync) fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        match &self.how {
            How::Thread { .. } => Ok(()),
            How::Greenlet { unpark, .. } | How::Task(unpark) => visit.call(unpark),
            How::Asyncio(slot) => match slot.try_lock().as_deref() {
                Ok(Slot {
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

/// ORDERING: whoever tells a party to look asks then whether it is idle; it says so, and then looks whether it was told.
/// Without a GIL one of the two must see the other; with one, both have it.
#[inline]
fn fence_without_gil() {
    if !gil::has_gil() {
        fence(Ordering::SeqCst);
    }
}

impl Port for Party {
    fn wants_grant(&self) -> bool {
        !matches!(self.how, How::Thread { .. })
    }

    fn sleeps_on_word(&self) -> bool {
        matches!(self.how, How::Thread { .. })
    }

    fn comes_soon(&self) -> bool {
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
        // Of a forked process one thread lives on (a signal handler may fork while it waits), and with it its
        // greenlets. Loops do not: their descriptors are the parent's.
        let is_ours = self.epoch == process::epoch();
        match &self.how {
            How::Thread { number, .. } => is_ours || *number == process::survivor(),
            How::Greenlet { thread, presence, .. } => {
                (is_ours || *thread == process::survivor()) && !presence.is_over()
            }
            _ => is_ours,
        }
    }

    fn generation() -> u32 {
        process::generation()
    }

    fn wake(&self, word: &AtomicU32) {
        match &self.how {
            How::Thread { lock, .. } => {
                unsnarl_hook::releases_lock(*lock);
                futex::wake(word);
            }
            How::Greenlet { unpark, .. } | How::Task(unpark) => Python::attach(|py| {
                interruption::outlast(py, || unpark.call0(py).map(drop));
            }),
            How::Asyncio(slot) => {
                let taken = {
                    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
                    slot.is_woken = slot.future.is_none();
                    slot.future.take()
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
