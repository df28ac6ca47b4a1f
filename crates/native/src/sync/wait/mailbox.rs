//! A mailbox for each asyncio loop: a queue of futures that other threads want set, behind an eventfd.
//!
//! Any number of wake-ups between two iterations of the loop cost one write to the eventfd. Unlike the socket
//! write of `call_soon_threadsafe`, this write does not release the GIL. So the posting thread does not lose
//! the GIL to the loop that it has just woken: it runs until it blocks, and the loop then finds a whole
//! batch.
//!
//! Only the loop refers to the reader that the mailbox gives it, so the reader is dropped as soon as the loop
//! is closed. Grants of futures that are still in the mailbox go to the next waiters.
//!
//! Must never: run Python code of the program between a wake-up and the posting of its letter.
//!
//! Invariant: if the mailbox is not empty, the eventfd is readable, or the loop's thread is about to empty
//! the mailbox. A shut mailbox stays empty.

use super::interruption;
use super::owner::Owner;
use crate::sync::who::running;
use pyo3::prelude::*;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[pyclass(frozen, module = "unsnarl._native")]
#[derive(Debug)]
pub(in crate::sync) struct Mailbox {
    event: OwnedFd,
    event_loop: Py<PyAny>,
    posted: Mutex<Post>,
}

#[derive(Debug, Default)]
struct Post {
    /// Whether the loop is closed.
    is_shut: bool,
    letters: Vec<Letter>,
}

/// A future to be set, and the operation that waits for it.
#[derive(Debug)]
struct Letter {
    future: Py<PyAny>,
    owner: Owner,
}

/// The callback of the eventfd, which empties the mailbox.
#[pyclass(frozen, module = "unsnarl._native")]
#[derive(Debug)]
struct Reader {
    mailbox: Py<Mailbox>,
}

const ATTRIBUTE: &str = "_unsnarl_mailbox";

impl Mailbox {
    /// The loop's mailbox, which is made and registered with the loop on first use.
    pub(in crate::sync) fn of(event_loop: &Bound<'_, PyAny>) -> PyResult<Py<Self>> {
        let py = event_loop.py();
        if let Ok(found) = event_loop.getattr(pyo3::intern!(py, ATTRIBUTE))
            && let Ok(mailbox) = found.cast_into::<Self>()
        {
            return Ok(mailbox.unbind());
        }
        let weak = py.import("weakref")?.getattr("ref")?.call1((event_loop,))?.unbind();
        // SAFETY: eventfd(2) has no preconditions; the result is checked.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if descriptor < 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        // SAFETY: a descriptor just opened, with no other owner.
        let event = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let mailbox = Py::new(
            py,
            Self {
                event,
                event_loop: weak,
                posted: Mutex::default(),
            },
        )?;
        let reader = Reader {
            mailbox: mailbox.clone_ref(py),
        };
        event_loop.call_method1("add_reader", (descriptor, Py::new(py, reader)?))?;
        event_loop.setattr(pyo3::intern!(py, ATTRIBUTE), &mailbox)?;
        Ok(mailbox)
    }

    /// Set the future: now, if this is its loop's thread, else by a letter. If the loop is closed, the
    /// operation is closed too. For another thread's loop no Python code runs before the letter is posted: a
    /// signal handler could run there, and every party notified after this one would wait for it. So the loop
    /// is not asked whether it is closed; a closed loop's mailbox is shut.
    ///
    /// # Errors
    /// The exception that was raised meanwhile, perhaps by a signal handler: to be tried again.
    pub(in crate::sync) fn deliver(&self, py: Python<'_>, future: &Py<PyAny>, owner: &Owner) -> PyResult<()> {
        let event_loop = self.event_loop.bind(py).call0()?;
        if event_loop.is_none() {
            return owner.leave_behind(py);
        }
        let running = running::running_loop(py)?;
        if running.is_some_and(|running| running.is(&event_loop)) {
            set(future.bind(py))?;
            // Outside of a task, a signal handler may have interrupted the loop's sleep, which is resumed
            // afterwards (PEP 475).
            if running::asyncio_task(py)?.is_none() {
                self.ring();
            }
            return Ok(());
        }
        let letter = Letter {
            future: future.clone_ref(py),
            owner: owner.clone_ref(py),
        };
        let (is_shut, is_first) = {
            let mut post = self.post();
            if !post.is_shut {
                post.letters.push(letter);
            }
            (post.is_shut, post.letters.len() == 1)
        };
        if is_shut {
            return owner.leave_behind(py);
        }
        if is_first {
            self.ring();
        }
        Ok(())
    }

    fn post(&self) -> MutexGuard<'_, Post> {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Make the eventfd readable, so that the loop runs an iteration.
    fn ring(&self) {
        let one = 1u64;
        // SAFETY: write(2) of eight bytes from a live u64; an eventfd takes exactly that.
        unsafe { libc::write(self.event.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Set every future in the mailbox.
    fn drain(&self, py: Python<'_>) -> PyResult<()> {
        let mut count = 0u64;
        // SAFETY: read(2) of eight bytes into a live u64.
        unsafe { libc::read(self.event.as_raw_fd(), (&raw mut count).cast(), 8) };
        let letters = std::mem::take(&mut self.post().letters);
        // Every future is set, even if setting one raises: nothing else wakes the rest. One that a signal handler
        // interrupted is set again.
        let set_twice = |letter: &Letter| {
            let future = letter.future.bind(py);
            set(future).inspect_err(|_| drop(set(future)))
        };
        let outcomes: Vec<_> = letters.iter().map(set_twice).collect();
        outcomes.into_iter().collect()
    }

    /// The loop is closed: end the operations in the mailbox, which releases what their tasks had been
    /// granted.
    fn shut(&self, py: Python<'_>) {
        let letters = {
            let mut post = self.post();
            post.is_shut = true;
            std::mem::take(&mut post.letters)
        };
        for letter in &letters {
            interruption::outlast(py, || letter.owner.leave_behind(py));
        }
    }
}

fn set(future: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = future.py();
    if !future.call_method0(pyo3::intern!(py, "done"))?.is_truthy()? {
        future.call_method1(pyo3::intern!(py, "set_result"), (py.None(),))?;
    }
    Ok(())
}

#[pymethods]
impl Mailbox {
    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.event_loop)?;
        if let Ok(post) = self.posted.try_lock() {
            for letter in &post.letters {
                visit.call(&letter.future)?;
                letter.owner.traverse(&visit)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        let letters = std::mem::take(&mut self.post().letters);
        drop(letters);
    }
}

#[pymethods]
impl Reader {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        self.mailbox.get().drain(py)
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.mailbox)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        Python::attach(|py| interruption::keeping_the_error(py, || self.mailbox.get().shut(py)));
    }
}
