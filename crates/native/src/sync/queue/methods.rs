//! The methods of Queue; its kinds are in [`super::kinds`], its fast methods in [`super::calls`].
//!
//! The items of plain first-in-first-out and last-in-first-out queues are in native memory: `put` and `get`
//! run no Python code. Other queues work through [`super::hooks`].
//!
//! Invariant: hooks are set before the store that only counts.

use super::access::{error, is_shut_down};
use super::awaitable::{self, QueueRequest};
use super::batch::PutManyWait;
use super::hooks::{Change, Hooks, has_own_hooks};
use super::items::{Items, into_items, release_all};
use super::kinds::{LifoQueue, PriorityQueue, SimpleQueue};
use super::state::Queue;
use super::waits::{GetWait, JoinWait, perform_within};
use crate::sync::calls::arguments::{self, Timeout};
use crate::sync::calls::description;
use crate::sync::condition::state::Condition;
use crate::sync::wait::blocking::block;
use crate::sync::wait::gil;
use crate::sync::wait::operation::Operation;
use crate::sync::wait::protocol::Wait;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyTuple, PyType};
use std::collections::VecDeque;
use std::sync::PoisonError;

#[pymethods]
impl Queue {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "(maxsize=0)")]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self::fresh()
    }

    #[pyo3(signature = (maxsize=None))]
    fn __init__(slf: &Bound<'_, Self>, maxsize: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let (py, this, class) = (slf.py(), slf.get(), slf.get_type());
        let capacity = this.keep_maxsize(maxsize.as_ref())?;
        let is_heap = slf.is_instance_of::<PriorityQueue>();
        let base = if is_heap {
            py.get_type::<PriorityQueue>()
        } else if slf.is_instance_of::<LifoQueue>() {
            py.get_type::<LifoQueue>()
        } else {
            py.get_type::<Self>()
        };
        let own_hooks = !class.is(&base) && has_own_hooks(&class, &base)?;
        let has_hooks = own_hooks || is_heap || this.hooks().is_some();
        let items = if has_hooks {
            Items::Counted(0)
        } else if base.is(py.get_type::<LifoQueue>()) {
            Items::Lifo(Vec::new())
        } else {
            Items::Fifo(VecDeque::new())
        };
        if has_hooks {
            // Set before the store that only counts: a caller that finds no items in the store looks for the
            // hooks.
            let hooks = Box::new(Hooks::new(py, is_heap && !own_hooks)?);
            this.hooks.get_or_init(py, || hooks);
        }
        let old = this.channel.restart(items, capacity, gil::fan_out());
        into_items(old).for_each(|item| item.release(py));
        if let Some(hooks) = this.hooks() {
            slf.call_method1("_init", (this.maxsize(py)?,))?;
            this.recount(slf, hooks)?;
        }
        Ok(())
    }

    /// Return the number of items, which may have changed by the time you use it.
    fn qsize(slf: &Bound<'_, Self>) -> PyResult<usize> {
        let this = slf.get();
        if let Some(hooks) = this.hooks() {
            let _held = hooks.hold(slf.py())?;
            return hooks.size(slf.as_any());
        }
        Ok(this.channel.len())
    }

    /// Tell whether there is no item.
    fn empty(slf: &Bound<'_, Self>) -> PyResult<bool> {
        Ok(Self::qsize(slf)? == 0)
    }

    /// Tell whether there is no room.
    fn full(slf: &Bound<'_, Self>) -> PyResult<bool> {
        let capacity = slf.get().channel.capacity();
        Ok(capacity > 0 && Self::qsize(slf)? >= capacity)
    }

    fn __len__(slf: &Bound<'_, Self>) -> PyResult<usize> {
        Self::qsize(slf)
    }

    /// True, as an object without a length is in the standard library; a subclass may have a length of its own.
    fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
        if Self::is_plain(slf) {
            return Ok(true);
        }
        let name = pyo3::intern!(slf.py(), "__len__");
        let ours = slf.py().get_type::<Self>().getattr(name)?;
        let length = slf.get_type().getattr(name)?;
        Ok(length.is_none() || length.is(&ours) || slf.len()? != 0)
    }

    /// Report that an item that was got before is done.
    fn task_done(&self, py: Python<'_>) -> PyResult<()> {
        let held = match self.hooks().filter(|hooks| hooks.is_shared()) {
            Some(hooks) => Some((hooks, hooks.hold(py)?)),
            None => None,
        };
        if !self.channel.done(1, gil::fan_out()) {
            return Err(PyValueError::new_err("task_done() called too many times"));
        }
        if let Some((hooks, _)) = &held
            && self.channel.unfinished() == 0
        {
            hooks.notify(py, Change::AllDone, usize::MAX);
        }
        Ok(())
    }

    /// Wait until every item was reported done. With a timeout (seconds): return whether that happened.
    #[pyo3(signature = (timeout=None))]
    fn join(slf: &Bound<'_, Self>, timeout: Option<Bound<'_, PyAny>>) -> PyResult<Option<bool>> {
        let limit = arguments::wait_timeout(timeout.as_ref())?;
        if let Some(module) = Self::own_wait(slf, Change::AllDone, limit)? {
            let done = module.call_method1("join", (slf, &timeout))?.extract()?;
            return Ok(timeout.map(|_| done));
        }
        let mut wait = JoinWait {
            queue: slf.clone().unbind(),
        };
        let done = slf.get().channel.unfinished() == 0
            || (!matches!(limit, Timeout::None) && block(slf.py(), &mut wait, limit.deadline())?);
        Ok(timeout.map(|_| done))
    }

    /// Wait in a task until every item was reported done; False if the timeout (seconds) passed first.
    #[pyo3(signature = (timeout=None))]
    fn async_join(slf: Bound<'_, Self>, timeout: Option<Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let wait = JoinWait { queue: slf.unbind() };
        Operation::of(py, wait, arguments::task_timeout(timeout.as_ref())?)
    }

    /// Close the queue: `put` raises ShutDown, and `get` too once the queue is empty. With immediate=True the
    /// items are dropped, and count as done.
    #[pyo3(signature = (immediate=false))]
    fn shutdown(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = PyAnyMethods::is_truthy)] immediate: bool,
    ) -> PyResult<()> {
        Self::close(slf, immediate)
    }

    /// Drop every item, and count it as done. Returns their number.
    fn clear(slf: &Bound<'_, Self>) -> PyResult<usize> {
        Self::drop_all(slf)
    }

    /// Return the next item without removing it; Empty if there is none. For queues without hooks of their
    /// own.
    fn peek<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        if let Some(hooks) = this.hooks() {
            let _held = hooks.hold(py)?;
            let container = hooks.container(py).ok_or_else(|| error(py, "Empty"))?.into_bound(py);
            if container.len()? == 0 {
                return Err(error(py, "Empty"));
            }
            let index = if slf.is_instance_of::<LifoQueue>() { -1 } else { 0 };
            return container.get_item(index);
        }
        let next = this.channel.with_store(|items| match items {
            Items::Fifo(items) => items.front().map(|item| item.clone_ref(py)),
            Items::Lifo(items) => items.last().map(|item| item.clone_ref(py)),
            Items::Counted(_) => None,
        });
        if next.is_none() && this.hooks().is_some() {
            return Self::peek(slf);
        }
        next.map(|item| item.into_bound(py)).ok_or_else(|| error(py, "Empty"))
    }

    /// Put all items, waiting for room as often as needed; one wake-up for as many as fit. Full if the
    /// timeout (seconds) passed first, ShutDown: `.args[0]` is how many were put. In any other exception, of
    /// a hook, a comparison or a signal handler, `.put` is that number.
    #[pyo3(signature = (items, block=true, timeout=None))]
    fn put_many(
        slf: &Bound<'_, Self>,
        items: Bound<'_, PyAny>,
        #[pyo3(from_py_with = PyAnyMethods::is_truthy)] block: bool,
        timeout: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let timeout = arguments::queue_timeout(block, timeout.as_ref())?;
        let mut wait = PutManyWait::new(slf, &items)?;
        let put = perform_within(slf.py(), &mut wait, timeout);
        put.map(drop).inspect_err(|error| wait.note(slf.py(), error))
    }

    /// As `put_many`, in a task. An exception that interrupts it (a cancellation, above all) has `.put` as
    /// well.
    #[pyo3(signature = (items, timeout=None))]
    fn async_put_many(
        slf: &Bound<'_, Self>,
        items: Bound<'_, PyAny>,
        timeout: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let timeout = arguments::task_timeout(timeout.as_ref())?;
        Operation::of(slf.py(), PutManyWait::new(slf, &items)?, timeout)
    }

    /// Wait for an item, and take as many more as are there, up to count; return a list. If a hook or a
    /// comparison raises after the first item, `.got` of the exception is the list.
    #[pyo3(signature = (count, block=true, timeout=None))]
    fn get_many(
        slf: &Bound<'_, Self>,
        count: usize,
        #[pyo3(from_py_with = PyAnyMethods::is_truthy)] block: bool,
        timeout: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let timeout = arguments::queue_timeout(block, timeout.as_ref())?;
        perform_within(slf.py(), &mut GetWait::many(slf.clone().unbind(), count), timeout)
    }

    /// As `get_many`, in a task; a cancelled call has got nothing.
    #[pyo3(signature = (count, timeout=None))]
    fn async_get_many(slf: &Bound<'_, Self>, count: usize, timeout: Option<Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        let timeout = arguments::task_timeout(timeout.as_ref())?;
        Operation::of(slf.py(), GetWait::many(slf.clone().unbind(), count), timeout)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Get the next item; the iteration ends when the queue is shut down and empty.
    fn __next__<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match Self::get_within(slf, Timeout::Endless) {
            Ok(item) => Ok(Some(item)),
            Err(error) if is_shut_down(slf.py(), &error)? => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__(slf: Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let request = QueueRequest::Get { ends_iteration: true };
        // SAFETY: a live Queue; a new reference.
        Ok(unsafe { Bound::from_owned_ptr(py, awaitable::issue(py, slf.as_ptr(), request, None)?) }.unbind())
    }

    #[classmethod]
    fn __class_getitem__<'py>(class: &Bound<'py, PyType>, item: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        class
            .py()
            .import("types")?
            .getattr("GenericAlias")?
            .call1((class, item))
    }

    /// The maximal number of items; 0 or less is unbounded.
    #[getter]
    fn maxsize(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let given = self.maxsize.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(given) = given.as_ref() {
            return Ok(given.clone_ref(py));
        }
        Ok(self.channel.capacity().into_pyobject(py)?.into_any().unbind())
    }

    #[setter]
    fn set_maxsize(&self, maxsize: Bound<'_, PyAny>) -> PyResult<()> {
        let capacity = self.keep_maxsize(Some(&maxsize))?;
        self.channel.resize(capacity);
        Ok(())
    }

    /// Items that were put and not yet reported done.
    #[getter]
    fn unfinished_tasks(&self) -> usize {
        self.channel.unfinished()
    }

    #[setter]
    fn set_unfinished_tasks(&self, unfinished: usize) {
        self.channel.set_unfinished(unfinished, gil::fan_out());
    }

    /// Whether the queue was shut down.
    #[getter]
    fn is_shutdown(&self) -> bool {
        self.channel.is_closed()
    }

    #[setter]
    fn set_is_shutdown(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = PyAnyMethods::is_truthy)] is_shutdown: bool,
    ) -> PyResult<()> {
        if is_shutdown {
            return Self::close(slf, false);
        }
        slf.get().channel.reopen();
        Ok(())
    }

    /// How many parties wait to get, to put, or for the items to be done.
    #[getter]
    fn waiting(&self) -> usize {
        let (takers, givers, joiners) = self.channel.waiting();
        takers + givers + joiners
    }

    /// How many parties wait to get, to put, and for the items to be done.
    fn _waiting(&self) -> (usize, usize, usize) {
        self.channel.waiting()
    }

    /// Describe the queue's state.
    fn statistics<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = PyDict::new(slf.py());
        let this = slf.get();
        let (takers, givers, joiners) = this.channel.waiting();
        statistics.set_item("size", Self::qsize(slf)?)?;
        statistics.set_item("maxsize", this.channel.capacity())?;
        statistics.set_item("unfinished", this.unfinished_tasks())?;
        statistics.set_item("getting", takers)?;
        statistics.set_item("putting", givers)?;
        statistics.set_item("joining", joiners)?;
        Ok(statistics)
    }

    /// The container. Once it was read, the queue has the standard library's layout: hold `mutex` while you
    /// use the container.
    #[getter(queue)]
    fn shared_container(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Self::open_up(slf)?.share();
        Self::container(slf)
    }

    #[setter(queue)]
    fn set_container(slf: &Bound<'_, Self>, container: Py<PyAny>) -> PyResult<()> {
        let hooks = Self::open_up(slf)?;
        let is_first = hooks.container(slf.py()).is_none();
        hooks.set_container(container);
        if is_first {
            // A subclass's `_init`, after which all items are counted anyway.
            return Ok(());
        }
        hooks.share();
        slf.get().recount(slf, hooks)
    }

    /// The lock of the container.
    #[getter]
    fn mutex(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let hooks = Self::open_up(slf)?;
        hooks.share();
        Ok(hooks.mutex.clone_ref(slf.py()).into_any())
    }

    /// The condition that is notified when an item was put; over `mutex`.
    #[getter]
    fn not_empty(slf: &Bound<'_, Self>) -> PyResult<Py<Condition>> {
        Self::open_up(slf)?.condition(slf.as_any(), Change::NotEmpty)
    }

    /// The condition that is notified when an item was got; over `mutex`.
    #[getter]
    fn not_full(slf: &Bound<'_, Self>) -> PyResult<Py<Condition>> {
        Self::open_up(slf)?.condition(slf.as_any(), Change::NotFull)
    }

    /// The condition that is notified when every item was reported done; over `mutex`.
    #[getter]
    fn all_tasks_done(slf: &Bound<'_, Self>) -> PyResult<Py<Condition>> {
        Self::open_up(slf)?.condition(slf.as_any(), Change::AllDone)
    }

    /// Count the items again after the program changed the container. Called with `mutex` held.
    fn _recount(slf: &Bound<'_, Self>) -> PyResult<()> {
        let hooks = Self::open_up(slf)?;
        slf.get().recount(slf, hooks)
    }

    /// Look up every hook at each call from now on: one was set in this object.
    fn _look_hooks_up(slf: &Bound<'_, Self>) -> PyResult<()> {
        // The standard library's SimpleQueue has none.
        if !slf.is_instance_of::<SimpleQueue>() {
            Self::open_up(slf)?.look_up_all();
        }
        Ok(())
    }

    fn _init(slf: &Bound<'_, Self>, _maxsize: &Bound<'_, PyAny>) -> PyResult<()> {
        let container = slf.py().import("collections")?.getattr("deque")?.call0()?;
        Self::open_up(slf)?.set_container(container.unbind());
        Ok(())
    }

    fn _qsize(slf: &Bound<'_, Self>) -> PyResult<usize> {
        Self::container(slf)?.bind(slf.py()).len()
    }

    fn _put<'py>(slf: &Bound<'py, Self>, item: Bound<'py, PyAny>) -> PyResult<()> {
        Self::container(slf)?
            .call_method1(slf.py(), "append", (item,))
            .map(drop)
    }

    fn _get(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Self::container(slf)?.call_method0(slf.py(), "popleft")
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(format!(
            "<{} object at {:#x}>",
            description::name(slf)?,
            slf.as_ptr() as usize
        ))
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        if let Some(hooks) = self.hooks() {
            hooks.traverse(&visit)?;
        }
        if let Ok(given) = self.maxsize.try_lock() {
            visit.call(&*given)?;
        }
        self.channel.with_store(|items| items.traverse(&visit))
    }

    fn __clear__(&self) {
        let given = self.maxsize.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(given);
        Python::attach(|py| {
            release_all(py, self.channel.drain(false, gil::fan_out()));
            if let Some(hooks) = self.hooks() {
                hooks.set_container(py.None());
            }
        });
    }
}

impl Queue {
    /// Store the argument `maxsize`. Returns the capacity that it means, 0 for none.
    fn keep_maxsize(&self, maxsize: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
        let capacity = maxsize.map_or(Ok(0), arguments::capacity)?;
        let is_told_by =
            |given: &&Bound<'_, PyAny>| given.is_exact_instance_of::<PyInt>() && given.eq(capacity).unwrap_or(false);
        let given = maxsize.filter(|given| !is_told_by(given));
        let given = given.map(|given| given.clone().unbind());
        let old = std::mem::replace(&mut *self.maxsize.lock().unwrap_or_else(PoisonError::into_inner), given);
        // Dropped without the mutex: it may be the last reference.
        drop(old);
        Ok(capacity)
    }
}
