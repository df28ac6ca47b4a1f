//! Emptying a queue and shutting it down.
//!
//! Invariant: whatever the hooks raise, the items are counted as they are, and everybody
//! whom it concerns is told, before it is raised.

use super::hooks::{Change, Hooks};
use super::identity;
use super::queue::Queue;
use super::queue_access::release_all;
use pyo3::prelude::*;

impl Queue {
    /// `shutdown`: closed first, so that it is closed whatever the hooks raise.
    pub(super) fn close(slf: &Bound<'_, Self>, immediate: bool) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let Some(hooks) = this.hooks() else {
            this.channel.close();
            if immediate {
                release_all(py, this.channel.drain(true, identity::fan_out()));
            }
            // Opened up meanwhile: once more, for what is in the container now.
            return if this.hooks().is_some() {
                Self::close(slf, immediate)
            } else {
                Ok(())
            };
        };
        let _held = hooks.hold(py)?;
        this.channel.close();
        let outcome = if immediate { this.get_all(slf, hooks).1 } else { Ok(()) };
        if immediate {
            hooks.tell(py, Change::AllDone, usize::MAX);
        }
        hooks.tell(py, Change::NotEmpty, usize::MAX);
        hooks.tell(py, Change::NotFull, usize::MAX);
        outcome
    }

    /// `clear`: how many there were.
    pub(super) fn drop_all(slf: &Bound<'_, Self>) -> PyResult<usize> {
        let (py, this) = (slf.py(), slf.get());
        let Some(hooks) = this.hooks() else {
            let items = this.channel.drain(true, identity::fan_out());
            let count = items.len();
            release_all(py, items);
            // Opened up meanwhile: once more, for what is in the container now.
            return if this.hooks().is_some() {
                Ok(count + Self::drop_all(slf)?)
            } else {
                Ok(count)
            };
        };
        let _held = hooks.hold(py)?;
        let (count, outcome) = this.get_all(slf, hooks);
        hooks.tell(py, Change::NotFull, usize::MAX);
        if this.channel.unfinished() == 0 {
            hooks.tell(py, Change::AllDone, usize::MAX);
        }
        outcome.map(|()| count)
    }

    /// Get every item and count it done, until the hooks raise: how many, and what was raised.
    fn get_all(&self, slf: &Bound<'_, Self>, hooks: &Hooks) -> (usize, PyResult<()>) {
        let mut count = 0;
        let outcome = loop {
            match hooks.size(slf.as_any()) {
                Ok(0) => break Ok(()),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
            if let Err(error) = hooks.get(slf.as_any()) {
                break Err(error);
            }
            count += 1;
        };
        // As many as there are, if a program has set the number to fewer; again if a task was done meanwhile.
        while !self
            .channel
            .done(count.min(self.channel.unfinished()), identity::fan_out())
        {}
        (count, outcome.and(self.recount(slf, hooks)))
    }
}
