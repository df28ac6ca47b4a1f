//! Queues whose items live in a Python container, behind a mutex of their own:
//! priority queues, subclasses with `_init`, `_qsize`, `_put` or `_get`, and
//! queues whose `queue` or `mutex` attribute somebody has asked for.
//!
//! The core then counts the items; the container is touched only with the mutex
//! (a real, blocking lock: comparing items runs Python code) held.
//!
//! Invariant: while nobody holds the mutex, the core's count is `_qsize()`.

use super::arguments::Patience;
use super::lock::Lock;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::sync::{Mutex, PoisonError};

/// The container of a queue and the mutex in front of it.
#[derive(Debug)]
pub(super) struct Hooks {
    pub(super) mutex: Py<Lock>,
    container: Mutex<Option<Py<PyAny>>>,
    /// The hooks are PriorityQueue's own: no need to look them up.
    is_heap: bool,
}

/// The mutex, held.
pub(super) struct Held<'a>(&'a Hooks);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.mutex.get().try_put_back();
    }
}

impl Hooks {
    pub(super) fn new(py: Python<'_>, is_heap: bool) -> PyResult<Self> {
        let mutex = py.get_type::<Lock>().call0()?.cast_into::<Lock>()?.unbind();
        Ok(Self {
            mutex,
            container: Mutex::new(None),
            is_heap,
        })
    }

    pub(super) fn hold(&self, py: Python<'_>) -> PyResult<Held<'_>> {
        Lock::acquire(self.mutex.bind(py), Patience::Endless)?;
        Ok(Held(self))
    }

    pub(super) fn container(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let container = self.container.lock().unwrap_or_else(PoisonError::into_inner);
        container.as_ref().map(|container| container.clone_ref(py))
    }

    pub(super) fn set_container(&self, container: Py<PyAny>) {
        let old = self
            .container
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(container);
        drop(old);
    }

    fn heap(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        if self.is_heap { self.container(py) } else { None }
    }

    /// `queue._put(item)`
    pub(super) fn put(&self, queue: &Bound<'_, PyAny>, item: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = queue.py();
        match self.heap(py) {
            Some(heap) => heap_push(py)?.call1((heap, item)).map(drop),
            None => queue.call_method1(pyo3::intern!(py, "_put"), (item,)).map(drop),
        }
    }

    /// `queue._get()`
    pub(super) fn get<'py>(&self, queue: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = queue.py();
        match self.heap(py) {
            Some(heap) => heap_pop(py)?.call1((heap,)),
            None => queue.call_method0(pyo3::intern!(py, "_get")),
        }
    }

    /// `queue._qsize()`
    pub(super) fn size(&self, queue: &Bound<'_, PyAny>) -> PyResult<usize> {
        let py = queue.py();
        match self.heap(py) {
            Some(heap) => heap.bind(py).len(),
            None => queue.call_method0(pyo3::intern!(py, "_qsize"))?.extract(),
        }
    }

    pub(super) fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.mutex)?;
        match self.container.try_lock().as_deref() {
            Ok(container) => visit.call(container),
            Err(_) => Ok(()),
        }
    }
}

/// `heapq.heappush`
pub(super) fn heap_push(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static PUSH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let push = PUSH.get_or_try_init(py, || Ok::<_, PyErr>(py.import("heapq")?.getattr("heappush")?.unbind()))?;
    Ok(push.bind(py))
}

/// `heapq.heappop`
pub(super) fn heap_pop(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static POP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let pop = POP.get_or_try_init(py, || Ok::<_, PyErr>(py.import("heapq")?.getattr("heappop")?.unbind()))?;
    Ok(pop.bind(py))
}
