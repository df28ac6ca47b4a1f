//! Emptying a queue and shutting it down.
//!
//! Invariant: if a hook raises, the exception is raised only after the items were counted and every waiter
//! concerned was notified.

use super::hooks::{Change, Hooks};
use super::items::release_all;
use super::state::Queue;
use crate::sync::wait::gil;
use pyo3::prelude::*;

impl Queue {
    /// `shutdown`: the queue is closed first, so it is closed even if a hook raises.
    pub(in crate::sync) fn close(slf: &Bound<'_, Self>, immediate: bool) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let Some(hooks) = this.hooks() else {
            this.channel.close();
            if immediate {
                release_all(py, this.channel.drain(true, gil::fan_out()));
            }
            // The queue was opened up meanwhile: once more, for the items in the container.
            return if this.hooks().is_some() {
                Self::close(slf, immediate)
            } else {
                Ok(())
            };
        };
        // Dropped after the mutex is released, as below: dropping an item may run code that puts another.
        let _dropped;
        let _held = hooks.hold(py)?;
        this.channel.close();
        let outcome = if immediate {
            let (items, outcome) = this.get_all(slf, hooks);
            _dropped = items;
            outcome
        } else {
            Ok(())
        };
        if immediate {
            hooks.notify(py, Change::AllDone, usize::MAX);
        }
        hooks.notify(py, Change::NotEmpty, usize::MAX);
        hooks.notify(py, Change::NotFull, usize::MAX);
        outcome
    }

    /// `clear`: drop every item. Returns their number.
    pub(in crate::sync) fn drop_all(slf: &Bound<'_, Self>) -> PyResult<usize> {
        let (py, this) = (slf.py(), slf.get());
        let Some(hooks) = this.hooks() else {
            let items = this.channel.drain(true, gil::fan_out());
            let count = items.len();
            release_all(py, items);
            // The queue was opened up meanwhile: once more, for the items in the container.
            return if this.hooks().is_some() {
                Ok(count + Self::drop_all(slf)?)
            } else {
                Ok(count)
            };
        };
        let dropped;
        let _held = hooks.hold(py)?;
        let (items, outcome) = this.get_all(slf, hooks);
        dropped = items;
        hooks.notify(py, Change::NotFull, usize::MAX);
        if this.channel.unfinished() == 0 {
            hooks.notify(py, Change::AllDone, usize::MAX);
        }
        outcome.map(|()| dropped.len())
    }

    /// Get every item and count it done, until a hook raises. Returns the items, and what was raised.
    fn get_all<'py>(&self, slf: &Bound<'py, Self>, hooks: &Hooks) -> (Vec<Bound<'py, PyAny>>, PyResult<()>) {
        let mut items = Vec::new();
        let outcome = loop {
            match hooks.size(slf.as_any()) {
                Ok(0) => break Ok(()),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
            match hooks.get(slf.as_any()) {
                Ok(item) => items.push(item),
                Err(error) => break Err(error),
            }
        };
        // At most as many as are unfinished, if the program has set that number lower; again if a task was
        // done meanwhile.
        while !self
            .channel
            .done(items.len().min(self.channel.unfinished()), gil::fan_out())
        {}
        (items, outcome.and(self.recount(slf, hooks)))
    }
}
