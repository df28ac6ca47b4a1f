//! The suspension of a waiting task: its waiter in the core's queue, and the awaitable that the event loop
//! drives.
//!
//! Invariant: `inner` is an iterator that the task's event loop accepts.

use super::interruption;
use super::mailbox::Mailbox;
use super::owner::{Owner, Suspended};
use super::party::Party;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use unsnarl_sync::{Arc, Waiter};

/// The waiting stage of an operation.
pub(in crate::sync) struct Waiting {
    pub(in crate::sync) waiter: Arc<Waiter<Party>>,
    /// Whether the time is up, by the loop's clock.
    pub(in crate::sync) is_expired: bool,
    pub(in crate::sync) inner: Py<PyAny>,
    pub(in crate::sync) backend: Backend,
}

/// The means of suspending the task: a future of asyncio, or the parker of another library.
pub(in crate::sync) enum Backend {
    Asyncio {
        event_loop: Py<PyAny>,
        mailbox: Py<Mailbox>,
        future: Py<PyAny>,
        timer: Option<Py<PyAny>>,
    },
    Parker(Py<PyAny>),
}

impl Waiting {
    /// Make a new suspension for the waiter. The timeout counts from the first one.
    pub(in crate::sync) fn arrange(&mut self, slf: &Bound<'_, impl Suspended>, timeout_s: Option<f64>) -> PyResult<()> {
        let py = slf.py();
        match &mut self.backend {
            Backend::Parker(parker) => {
                let parked = parker.bind(py).call_method1(pyo3::intern!(py, "park"), (timeout_s,))?;
                self.inner = parked.call_method0(pyo3::intern!(py, "__await__"))?.unbind();
            }
            Backend::Asyncio {
                event_loop,
                mailbox,
                future,
                timer,
            } => {
                let event_loop = event_loop.bind(py);
                let fresh = event_loop.call_method0(pyo3::intern!(py, "create_future"))?;
                self.inner = fresh.call_method0(pyo3::intern!(py, "__await__"))?.unbind();
                *future = fresh.clone().unbind();
                if timer.is_none()
                    && let Some(timeout_s) = timeout_s
                {
                    let expire = slf.as_any().getattr(pyo3::intern!(py, "_expire"))?;
                    *timer = Some(event_loop.call_method1("call_later", (timeout_s, expire))?.unbind());
                }
                self.waiter
                    .party
                    .attach(py, fresh.unbind(), mailbox.clone_ref(py), Owner::of(slf)?);
            }
        }
        Ok(())
    }

    pub(in crate::sync) fn stop_timer(&self, py: Python<'_>) {
        if let Backend::Asyncio { timer: Some(timer), .. } = &self.backend {
            interruption::outlast(py, || timer.call_method0(py, "cancel").map(drop));
        }
    }
}

/// Choose the means of suspending the task, and make the waiter that ends the suspension.
pub(in crate::sync) fn choose(
    py: Python<'_>,
    task: usize,
    parker: Option<Bound<'_, PyAny>>,
    running: Option<Bound<'_, PyAny>>,
) -> PyResult<(Arc<Waiter<Party>>, Backend)> {
    Ok(match (parker, running) {
        (Some(parker), _) => {
            let unpark = parker.getattr("unpark")?.unbind();
            (Waiter::new(Party::task(task, unpark)), Backend::Parker(parker.unbind()))
        }
        (None, Some(event_loop)) => {
            let mailbox = Mailbox::of(&event_loop)?;
            let event_loop = event_loop.unbind();
            let future = py.None();
            (
                Waiter::new(Party::asyncio(task)),
                Backend::Asyncio {
                    event_loop,
                    mailbox,
                    future,
                    timer: None,
                },
            )
        }
        (None, None) => {
            return Err(PyRuntimeError::new_err(
                "no event loop runs in this thread: await this in a task of asyncio, trio, anyio or curio",
            ));
        }
    })
}
