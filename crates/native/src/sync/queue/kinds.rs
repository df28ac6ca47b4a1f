//! LifoQueue, PriorityQueue and SimpleQueue: their differences from Queue.
//!
//! Invariant: the methods here are the standard library's hooks; of the plain queues only a priority queue
//! calls them.

use super::hooks;
use super::state::Queue;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// A last-in-first-out queue.
///
/// All else, fairness and cancellation included: as `Queue`.
#[pyclass(frozen, subclass, weakref, extends = Queue, module = "unsnarl")]
pub(in crate::sync) struct LifoQueue;

#[pymethods]
impl LifoQueue {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "(maxsize=0)")]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyClassInitializer<Self> {
        PyClassInitializer::from(Queue::fresh()).add_subclass(Self)
    }

    fn _init(slf: &Bound<'_, Self>, _maxsize: &Bound<'_, PyAny>) -> PyResult<()> {
        let container = PyList::empty(slf.py()).into_any().unbind();
        Queue::open_up(slf.as_super())?.set_container(container);
        Ok(())
    }

    fn _get(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Queue::container(slf.as_super())?.call_method0(slf.py(), "pop")
    }
}

/// A queue that gives the least item first.
///
/// Items are compared with `<`, behind a lock (`mutex`) for which a task, too, may have to wait for a moment;
/// an exception of a comparison is raised by `put` or `get`. All else, fairness and cancellation included: as
/// `Queue`.
#[pyclass(frozen, subclass, weakref, extends = Queue, module = "unsnarl")]
pub(in crate::sync) struct PriorityQueue;

#[pymethods]
impl PriorityQueue {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "(maxsize=0)")]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyClassInitializer<Self> {
        PyClassInitializer::from(Queue::fresh()).add_subclass(Self)
    }

    fn _init(slf: &Bound<'_, Self>, _maxsize: &Bound<'_, PyAny>) -> PyResult<()> {
        let container = PyList::empty(slf.py()).into_any().unbind();
        Queue::open_up(slf.as_super())?.set_container(container);
        Ok(())
    }

    fn _put<'py>(slf: &Bound<'py, Self>, item: Bound<'py, PyAny>) -> PyResult<()> {
        hooks::heap_push(slf.py())?
            .call1((Queue::container(slf.as_super())?, item))
            .map(drop)
    }

    fn _get<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        hooks::heap_pop(slf.py())?.call1((Queue::container(slf.as_super())?,))
    }
}

/// An unbounded queue whose `put` never waits.
///
/// So `__del__`, signal handlers and callbacks may put. All else, fairness and cancellation included: as
/// `Queue`.
#[pyclass(frozen, subclass, weakref, extends = Queue, module = "unsnarl")]
pub(in crate::sync) struct SimpleQueue;

#[pymethods]
impl SimpleQueue {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "()")]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyClassInitializer<Self> {
        PyClassInitializer::from(Queue::fresh()).add_subclass(Self)
    }

    #[pyo3(signature = ())]
    fn __init__(_slf: &Bound<'_, Self>) {}
}

impl Queue {
    /// Whether the class is one of the four, not one derived from them.
    pub(in crate::sync) fn is_plain(slf: &Bound<'_, Self>) -> bool {
        let (py, class) = (slf.py(), slf.get_type());
        class.is(py.get_type::<Self>())
            || class.is(py.get_type::<LifoQueue>())
            || class.is(py.get_type::<PriorityQueue>())
            || class.is(py.get_type::<SimpleQueue>())
    }
}
