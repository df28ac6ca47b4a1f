//! Events: a cell whose text is `SET TIMES`, 0 or 1 and how often it was set.
//!
//! Invariant: a `set()` releases all that waited when it was called, even if a `clear()` follows before they look.

use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;

use super::{Engine, sleep_or_never};
use crate::failure::{Failure, Kind as FailureKind, Outcome};
use crate::operation::{Answer, Completer};
use crate::port::Store;
use crate::runner::spawn;

/// Keeps a cell watched.
pub(super) struct Watching<S: Store> {
    engine: Rc<Engine<S>>,
    cell: String,
    pub(super) changed: Rc<Notify>,
}

impl<S: Store> Drop for Watching<S> {
    fn drop(&mut self) {
        let mut watched = self.engine.watched.borrow_mut();
        let Some((users, _)) = watched.get_mut(&self.cell) else {
            return;
        };
        *users -= 1;
        if *users == 0 {
            watched.remove(&self.cell);
            let (engine, cell) = (Rc::clone(&self.engine), self.cell.clone());
            spawn(async move {
                // Somebody may have come back to it meanwhile.
                if !engine.watched.borrow().contains_key(&cell) {
                    let _ = engine.store.unwatch(&cell).await;
                }
            });
        }
    }
}

fn read(text: &str) -> (bool, u64) {
    let (is_set, times) = text.split_once(' ').unwrap_or(("0", "0"));
    (is_set == "1", times.parse().unwrap_or(0))
}

impl<S: Store> Engine<S> {
    /// Has changes of a cell told, until the result is dropped.
    pub(super) async fn watching(self: &Rc<Self>, cell: &str) -> Outcome<Watching<S>> {
        let (is_first, changed) = {
            let mut watched = self.watched.borrow_mut();
            let entry = watched.entry(cell.to_owned()).or_default();
            entry.0 += 1;
            (entry.0 == 1, Rc::clone(&entry.1))
        };
        let watching = Watching {
            engine: Rc::clone(self),
            cell: cell.to_owned(),
            changed,
        };
        if is_first {
            self.persist(|| self.store.watch(cell)).await?;
        }
        Ok(watching)
    }

    pub(super) async fn is_set(&self, cell: &str) -> Outcome<bool> {
        Ok(read(&self.persist(|| self.store.read(cell)).await?.text).0)
    }

    pub(super) async fn set(&self, cell: &str, is_set: bool) -> Outcome<()> {
        loop {
            let found = self.persist(|| self.store.read(cell)).await?;
            let (was_set, times) = read(&found.text);
            if was_set == is_set {
                return Ok(());
            }
            let text = format!("{} {}", u8::from(is_set), times + u64::from(is_set));
            // An answer that was lost shows as another version, and the loop ends at the first read then.
            if self.persist(|| self.store.swap(cell, found.version, &text)).await? {
                return Ok(());
            }
        }
    }

    pub(super) async fn wait_until_set(self: Rc<Self>, cell: String, limit: Option<Duration>, completer: Completer) {
        let outcome = tokio::select! {
            biased;
            outcome = self.until_set(&cell) => outcome.map(|()| Answer::Flag(true)),
            () = completer.cancelled() => Err(Failure::new(FailureKind::Cancelled, "cancelled")),
            () = sleep_or_never(limit) => Ok(Answer::Flag(false)),
        };
        completer.complete(outcome);
    }

    async fn until_set(self: &Rc<Self>, cell: &str) -> Outcome<()> {
        let (is_set, first) = read(&self.persist(|| self.store.read(cell)).await?.text);
        if is_set {
            return Ok(());
        }
        let watching = self.watching(cell).await?;
        loop {
            let changed = watching.changed.notified();
            tokio::pin!(changed);
            // From here on a change is noticed, before the text is read.
            changed.as_mut().enable();
            let (is_set, times) = read(&self.persist(|| self.store.read(cell)).await?.text);
            if is_set || times > first {
                return Ok(());
            }
            changed.await;
        }
    }
}
