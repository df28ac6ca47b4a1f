//! The items of a queue in a Python container, behind a mutex of its own.
//!
//! Three kinds of queues need it: priority queues, subclasses with `_init`, `_qsize`, `_put` or `_get`, and
//! queues whose `queue` or `mutex` attribute the program has read. The core then only counts the items.
//!
//! Must never: touch the container without the mutex. It is a real, blocking lock, since comparing items runs
//! Python code.
//!
//! Invariant: while the mutex is free, the core's count is `_qsize()`.

use crate::sync::calls::arguments::Timeout;
use crate::sync::condition::state::Condition;
use crate::sync::permit::acquirable::Acquirable;
use crate::sync::permit::lock::Lock;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The container of a queue, and its mutex.
pub(in crate::sync) struct Hooks {
    pub(in crate::sync) mutex: Py<Lock>,
    container: Mutex<Option<Py<PyAny>>>,
    /// Whether the program has the container or the mutex, and may change the container.
    is_shared: AtomicBool,
    /// `not_empty`, `not_full` and `all_tasks_done`, once the program has read one of them.
    conditions: PyOnceLock<[Py<Condition>; 3]>,
    /// Whether the hooks are PriorityQueue's own, which need not be looked up.
    is_heap: AtomicBool,
}

/// The change of which a condition notifies.
#[derive(Clone, Copy)]
pub(in crate::sync) enum Change {
    NotEmpty,
    NotFull,
    AllDone,
}

/// The mutex, held until this is dropped.
pub(in crate::sync) struct Held<'a>(&'a Hooks);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.mutex.get().try_put_back();
    }
}

impl Hooks {
    pub(in crate::sync) fn new(py: Python<'_>, is_heap: bool) -> PyResult<Self> {
        let mutex = py.get_type::<Lock>().call0()?.cast_into::<Lock>()?.unbind();
        Ok(Self {
            mutex,
            container: Mutex::new(None),
            is_shared: AtomicBool::new(false),
            conditions: PyOnceLock::new(),
            is_heap: AtomicBool::new(is_heap),
        })
    }

    /// Hooks over this container, with the mutex held: [`Hooks::holding`] releases it.
    pub(in crate::sync) fn held(py: Python<'_>, container: Py<PyAny>) -> PyResult<Self> {
        let hooks = Self::new(py, false)?;
        hooks.set_container(container);
        Lock::acquire(hooks.mutex.bind(py), Timeout::Endless)?;
        Ok(hooks)
    }

    /// The mutex that the caller has held since [`Hooks::held`].
    pub(in crate::sync) fn holding(&self) -> Held<'_> {
        Held(self)
    }

    /// Acquire the mutex if it is free.
    pub(in crate::sync) fn try_hold(&self, py: Python<'_>) -> Option<Held<'_>> {
        self.mutex.get().try_take(py).then(|| Held(self))
    }

    pub(in crate::sync) fn hold(&self, py: Python<'_>) -> PyResult<Held<'_>> {
        Lock::acquire(self.mutex.bind(py), Timeout::Endless)?;
        Ok(Held(self))
    }

    pub(in crate::sync) fn container(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let container = self.container.lock().unwrap_or_else(PoisonError::into_inner);
        container.as_ref().map(|container| container.clone_ref(py))
    }

    pub(in crate::sync) fn set_container(&self, container: Py<PyAny>) {
        let old = self
            .container
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(container);
        drop(old);
    }

    pub(in crate::sync) fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::Relaxed)
    }

    pub(in crate::sync) fn share(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    /// One of the conditions; all are made the first time.
    pub(in crate::sync) fn condition(&self, queue: &Bound<'_, PyAny>, what: Change) -> PyResult<Py<Condition>> {
        let py = queue.py();
        let conditions = self.conditions.get_or_try_init(py, || {
            let make = py.import("unsnarl.sync.queue_conditions")?.getattr("conditions")?;
            make.call1((queue,))?.extract::<[Py<Condition>; 3]>()
        })?;
        self.share();
        Ok(conditions[what as usize].clone_ref(py))
    }

    /// Whether the program has given a condition a `wait` of its own, as an attribute.
    pub(in crate::sync) fn has_own_wait(&self, py: Python<'_>, what: Change) -> PyResult<bool> {
        match self.conditions.get(py) {
            Some(conditions) => conditions[what as usize]
                .bind(py)
                .getattr(pyo3::intern!(py, "__dict__"))?
                .contains(pyo3::intern!(py, "wait")),
            None => Ok(false),
        }
    }

    /// Notify the program's waiters on a condition. Called with the mutex held.
    pub(in crate::sync) fn notify(&self, py: Python<'_>, what: Change, count: usize) {
        if let Some(conditions) = self.conditions.get(py) {
            conditions[what as usize].get().pass_on(count);
        }
    }

    /// Whether the container is a heap, for which no hook is looked up.
    #[inline]
    pub(in crate::sync) fn is_heap(&self) -> bool {
        self.is_heap.load(Ordering::Relaxed)
    }

    /// Look up every hook from now on.
    pub(in crate::sync) fn look_up_all(&self) {
        self.is_heap.store(false, Ordering::Relaxed);
    }

    fn heap(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        if self.is_heap() { self.container(py) } else { None }
    }

    /// `queue._put(item)`
    pub(in crate::sync) fn put(&self, queue: &Bound<'_, PyAny>, item: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = queue.py();
        match self.heap(py) {
            Some(heap) => heap_push(py)?.call1((heap, item)).map(drop),
            None => queue.call_method1(pyo3::intern!(py, "_put"), (item,)).map(drop),
        }
    }

    /// `queue._get()`
    pub(in crate::sync) fn get<'py>(&self, queue: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = queue.py();
        match self.heap(py) {
            Some(heap) => heap_pop(py)?.call1((heap,)),
            None => queue.call_method0(pyo3::intern!(py, "_get")),
        }
    }

    /// `queue._qsize()`
    pub(in crate::sync) fn size(&self, queue: &Bound<'_, PyAny>) -> PyResult<usize> {
        let py = queue.py();
        match self.heap(py) {
            Some(heap) => heap.bind(py).len(),
            None => queue.call_method0(pyo3::intern!(py, "_qsize"))?.extract(),
        }
    }

    pub(in crate::sync) fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.mutex)?;
        // SAFETY: only reads the cell; no reference count is touched.
        if let Some(conditions) = self.conditions.get(unsafe { Python::assume_attached() }) {
            conditions.iter().try_for_each(|condition| visit.call(condition))?;
        }
        match self.container.try_lock().as_deref() {
            Ok(container) => visit.call(container),
            Err(_) => Ok(()),
        }
    }
}

static PUSH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static POP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// `heapq.heappush`
pub(in crate::sync) fn heap_push(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    let push = PUSH.get_or_try_init(py, || Ok::<_, PyErr>(py.import("heapq")?.getattr("heappush")?.unbind()))?;
    Ok(push.bind(py))
}

/// `heapq.heappop`
pub(in crate::sync) fn heap_pop(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    let pop = POP.get_or_try_init(py, || Ok::<_, PyErr>(py.import("heapq")?.getattr("heappop")?.unbind()))?;
    Ok(pop.bind(py))
}

/// `heapq.heappush`, if it was looked up before.
#[inline]
pub(in crate::sync) fn heap_push_known(py: Python<'_>) -> Option<&Bound<'_, PyAny>> {
    PUSH.get(py).map(|push| push.bind(py))
}

/// `heapq.heappop`, if it was looked up before.
#[inline]
pub(in crate::sync) fn heap_pop_known(py: Python<'_>) -> Option<&Bound<'_, PyAny>> {
    POP.get(py).map(|pop| pop.bind(py))
}

/// Whether a subclass has hooks of its own.
pub(in crate::sync) fn has_own_hooks(class: &Bound<'_, PyType>, base: &Bound<'_, PyType>) -> PyResult<bool> {
    for name in ["_init", "_qsize", "_put", "_get"] {
        if !class.getattr(name)?.is(&base.getattr(name)?) {
            return Ok(true);
        }
    }
    Ok(false)
}
