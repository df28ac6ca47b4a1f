//! Putting one item into a queue and getting one out, without waiting.
//!
//! Invariant: an item is in the store, with the caller, or in a waiting `PutWait`: never nowhere, never
//! twice.

use super::hooks::{Change, Held, Hooks};
use super::items::{Item, Items, into_items};
use super::state::Queue;
use crate::sync::wait::gil;
use crate::sync::wait::party::Party;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyString};
use unsnarl_sync::{Arc, Give, Take, Waiter};

/// An exception class of the standard library's `queue`; `ShutDown` also where it has none.
pub(in crate::sync) fn class_of_error<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    errors(py)?.getattr(PyString::intern(py, name))
}

/// The module of the exceptions: a program that polls gets one in most calls, and an import takes longer than the call.
fn errors<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let import = || py.import("unsnarl.sync.errors").map(Bound::unbind);
    Ok(MODULE.get_or_try_init(py, import)?.bind(py))
}

/// The class to raise, which the program catches. The standard library's queues look it up in their module when they
/// raise, and programs put classes of their own there: then it is one that is caught as either.
fn class_to_raise<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let (errors, name) = (errors(py)?, PyString::intern(py, name));
    let own = errors.getattr(&name)?;
    match errors.getattr(intern!(py, "standard"))?.getattr_opt(&name)? {
        Some(current) if !current.is(&own) => errors.call_method1(intern!(py, "joined"), (own, current)),
        _ => Ok(own),
    }
}

/// An instance of it.
#[cold]
pub(in crate::sync) fn error(py: Python<'_>, name: &str) -> PyErr {
    match class_to_raise(py, name).and_then(|class| class.call0()) {
        Ok(instance) => PyErr::from_value(instance),
        Err(error) => error,
    }
}

/// Whether this is the error `ShutDown`.
pub(in crate::sync) fn is_shut_down(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    Ok(error.is_instance(py, &class_of_error(py, "ShutDown")?))
}

impl Queue {
    /// Put the item if there is room; else return false, with the waiter enqueued.
    pub(in crate::sync) fn give(
        slf: &Bound<'_, Self>,
        item: &Bound<'_, PyAny>,
        waiter: Option<&Arc<Waiter<Party>>>,
    ) -> PyResult<bool> {
        let (py, this) = (slf.py(), slf.get());
        let Some(hooks) = this.hooks() else {
            // SAFETY: attached, alive.
            return match this.channel.give_here(unsafe { Item::of(item.as_ptr()) }, waiter) {
                Give::Given => Ok(true),
                // The queue was opened up meanwhile: there are hooks now.
                Give::Elsewhere(owned) => {
                    owned.release(py);
                    Self::give(slf, item, waiter)
                }
                Give::Full(item) => {
                    item.release(py);
                    Ok(false)
                }
                Give::Closed(item) => {
                    item.release(py);
                    Err(error(py, "ShutDown"))
                }
            };
        };
        let _held = this.hold_for_check(py, hooks, waiter)?;
        this.recount_if_changeable(slf, hooks)?;
        match this.channel.give(Item::NOTHING, waiter) {
            Give::Given => {}
            Give::Full(_nothing) => return Ok(false),
            Give::Closed(_nothing) | Give::Elsewhere(_nothing) => return Err(error(py, "ShutDown")),
        }
        if let Err(error) = hooks.put(slf.as_any(), item) {
            let _nothing = this.channel.undo_give(gil::fan_out());
            // An item that could not be compared is still in the heap, as in the standard library.
            this.recount(slf, hooks)?;
            return Err(error);
        }
        this.recount(slf, hooks)?;
        hooks.notify(py, Change::NotEmpty, 1);
        Ok(true)
    }

    /// Get an item if there is one; else return None, with the waiter enqueued.
    pub(in crate::sync) fn take<'py>(
        slf: &Bound<'py, Self>,
        waiter: Option<&Arc<Waiter<Party>>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, this) = (slf.py(), slf.get());
        let Some(hooks) = this.hooks() else {
            return match this.channel.take_here(waiter) {
                // SAFETY: an owned reference.
                Take::Taken(item) => Ok(Some(unsafe { Bound::from_owned_ptr(py, item.into_ptr()) })),
                Take::Empty => Ok(None),
                Take::Closed => Err(error(py, "ShutDown")),
                // The queue was opened up meanwhile: there are hooks now.
                Take::Elsewhere => Self::take(slf, waiter),
            };
        };
        let _held = this.hold_for_check(py, hooks, waiter)?;
        this.recount_if_changeable(slf, hooks)?;
        match this.channel.take(waiter) {
            Take::Taken(_nothing) => {
                let item = hooks.get(slf.as_any());
                this.recount(slf, hooks)?;
                hooks.notify(py, Change::NotFull, 1);
                item.map(Some)
            }
            Take::Empty => Ok(None),
            Take::Closed | Take::Elsewhere => Err(error(py, "ShutDown")),
        }
    }

    /// Acquire the mutex for one check. A waiter that has to wait for the mutex may run signal handlers
    /// meanwhile. Then no party may rely on this waiter, so others are notified first.
    fn hold_for_check<'a>(
        &self,
        py: Python<'_>,
        hooks: &'a Hooks,
        waiter: Option<&Arc<Waiter<Party>>>,
    ) -> PyResult<Held<'a>> {
        if let Some(held) = hooks.try_hold(py) {
            return Ok(held);
        }
        if waiter.is_some() {
            self.channel.change_store(|_| {});
        }
        hooks.hold(py)
    }

    /// Count the items again: hooks may keep more or fewer than were put.
    pub(in crate::sync) fn recount(&self, slf: &Bound<'_, Self>, hooks: &Hooks) -> PyResult<()> {
        let size = hooks.size(slf.as_any())?;
        self.channel.change_store(|items| {
            if let Items::Counted(count) = items {
                *count = size;
            }
        });
        Ok(())
    }

    /// Count the items again if they may have changed. The program may have changed the container. A
    /// subclass's `_qsize` may count items that became due, or that a method of the subclass added or removed.
    fn recount_if_changeable(&self, slf: &Bound<'_, Self>, hooks: &Hooks) -> PyResult<()> {
        if hooks.is_shared() || !hooks.is_heap() {
            self.recount(slf, hooks)
        } else {
            Ok(())
        }
    }

    /// Move the items into a Python container that the program may use, from now on.
    ///
    /// The hooks are set first, with the mutex held, and then the items are moved. So a caller that finds the
    /// hooks waits for the mutex; and a caller that did not find them, and then finds no items in the store,
    /// tries again with the hooks.
    pub(in crate::sync) fn open_up<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a Hooks> {
        let (py, this) = (slf.py(), slf.get());
        if let Some(hooks) = this.hooks() {
            return Ok(hooks);
        }
        let is_lifo = this.channel.with_store(|items| matches!(items, Items::Lifo(_)));
        let container = if is_lifo {
            PyList::empty(py).into_any()
        } else {
            py.import("collections")?.getattr("deque")?.call0()?
        };
        let fresh = Box::new(Hooks::held(py, container.clone().unbind())?);
        let has_won = this.hooks.set(py, fresh).is_ok();
        let hooks = this.hooks.get_or_try_init(py, || Hooks::new(py, false).map(Box::new))?;
        if has_won {
            let _held = hooks.holding();
            this.move_items(&container)?;
        }
        Ok(hooks)
    }

    /// Move the items out of the store, which only counts them from now on.
    fn move_items(&self, container: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = container.py();
        let taken = self.channel.with_store(|items| {
            let count = unsnarl_sync::Store::len(items);
            std::mem::replace(items, Items::Counted(count))
        });
        let objects: Vec<Bound<'_, PyAny>> = into_items(taken)
            // SAFETY: owned references out of the store.
            .map(|item| unsafe { Bound::from_owned_ptr(py, item.into_ptr()) })
            .collect();
        container
            .call_method1(pyo3::intern!(py, "extend"), (objects,))
            .map(drop)
    }

    /// The container, for the hooks.
    pub(in crate::sync) fn container(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Self::open_up(slf)?
            .container(slf.py())
            .ok_or_else(|| pyo3::exceptions::PyAttributeError::new_err("this queue has no container"))
    }
}
