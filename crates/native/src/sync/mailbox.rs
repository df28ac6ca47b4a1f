//! One mailbox per asyncio loop: futures to be set, posted from other threads.
//!
//! Any number of wake-ups between two turns of the loop cost one write to an
//! eventfd, which (unlike `call_soon_threadsafe`, whose socket write releases the
//! GIL) does not make the poster lose the GIL to the loop it has just woken: the
//! poster goes on until it blocks, and the loop then finds a whole batch.
//!
//! Invariant: if `posted` is not empty, the eventfd is readable or the loop's
//! thread is about to empty it.

use pyo3::prelude::*;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

#[pyclass(frozen, module = "unsnarl._native")]
#[derive(Debug)]
pub(super) struct Mailbox {
    event: Option<OwnedFd>,
    event_loop: Py<PyAny>,
    posted: Mutex<Vec<Py<PyAny>>>,
}

const ATTRIBUTE: &str = "_unsnarl_mailbox";

impl Mailbox {
    /// The loop's mailbox; made, and registered with the loop, on first use.
    pub(super) fn of(event_loop: &Bound<'_, PyAny>) -> PyResult<Py<Self>> {
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
        // SAFETY: a descriptor just opened, owned by nobody else.
        let event = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let mailbox = Py::new(
            py,
            Self {
                event: Some(event),
                event_loop: weak,
                posted: Mutex::default(),
            },
        )?;
        let drain = mailbox.getattr(py, "drain")?;
        event_loop.call_method1("add_reader", (descriptor, drain))?;
        event_loop.setattr(pyo3::intern!(py, ATTRIBUTE), &mailbox)?;
        Ok(mailbox)
    }

    /// Set the future, now if this is its loop's thread, else by post.
    pub(super) fn deliver(&self, py: Python<'_>, future: Py<PyAny>, owner: &Py<PyAny>) {
        if let Err(error) = self.try_deliver(py, future, owner) {
            error.write_unraisable(py, None);
        }
    }

    fn try_deliver(&self, py: Python<'_>, future: Py<PyAny>, owner: &Py<PyAny>) -> PyResult<()> {
        let event_loop = self.event_loop.bind(py).call0()?;
        if event_loop.is_none() || event_loop.call_method0(pyo3::intern!(py, "is_closed"))?.is_truthy()? {
            let operation = owner.bind(py).call0()?;
            if !operation.is_none() {
                operation.call_method0("close")?;
            }
            return Ok(());
        }
        let running = super::identity::running_loop(py)?;
        if running.is_some_and(|running| running.is(&event_loop)) {
            set(future.bind(py))?;
            // A signal handler may have interrupted the loop's sleep, which goes on afterwards (PEP 475).
            if super::identity::asyncio_task(py)?.is_none() {
                self.ring();
            }
            return Ok(());
        }
        let was_empty = {
            let mut posted = self.posted.lock().unwrap_or_else(PoisonError::into_inner);
            posted.push(future);
            posted.len() == 1
        };
        if was_empty {
            self.ring();
        }
        Ok(())
    }

    /// Make the eventfd readable: the loop has a turn.
    fn ring(&self) {
        if let Some(event) = &self.event {
            let one = 1u64;
            // SAFETY: write(2) of eight bytes from a live u64; an eventfd takes exactly that.
            unsafe { libc::write(event.as_raw_fd(), (&raw const one).cast(), 8) };
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
    /// Set everything that was posted. The loop calls this.
    fn drain(&self, py: Python<'_>) -> PyResult<()> {
        if let Some(event) = &self.event {
            let mut count = 0u64;
            // SAFETY: read(2) of eight bytes into a live u64.
            unsafe { libc::read(event.as_raw_fd(), (&raw mut count).cast(), 8) };
        }
        let posted = std::mem::take(&mut *self.posted.lock().unwrap_or_else(PoisonError::into_inner));
        // All of them, whatever one raises: nobody else wakes the rest.
        let outcomes: Vec<_> = posted.iter().map(|future| set(future.bind(py))).collect();
        outcomes.into_iter().collect()
    }
}
