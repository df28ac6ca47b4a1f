//! Barriers: a cell in which the parties of a cycle write themselves down.
//!
//! A party that leaves, by a timeout, a cancellation or its death, breaks the barrier for all, as the standard
//! library's does; those that wait ask from time to time whether the others live.
//!
//! Invariant: a party passes if and only if its cycle is among those that were completed.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::session::Session;
use super::{Engine, sleep_or_never};
use crate::failure::{Failure, Kind as FailureKind, Outcome};
use crate::operation::{Answer, Completer};
use crate::port::Store;

/// Completed cycles that are remembered: a party that is further behind than that finds its barrier broken.
const REMEMBERED: usize = 32;

/// One party's wish to pass.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) cell: String,
    pub(crate) parties: usize,
    pub(crate) ttl_ms: u64,
    pub(crate) timeout: Option<Duration>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Barrier {
    parties: usize,
    cycle: u64,
    is_broken: bool,
    /// `SESSION NUMBER` of each.
    arrived: Vec<String>,
    completed: Vec<u64>,
}

impl Barrier {
    fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    fn complete(&mut self) {
        self.completed.push(self.cycle);
        let surplus = self.completed.len().saturating_sub(REMEMBERED);
        self.completed.drain(..surplus);
        self.cycle += 1;
        self.arrived.clear();
    }

    fn break_it(&mut self) {
        self.is_broken = true;
        self.arrived.clear();
        self.cycle += 1;
    }

    /// The sessions of those that have arrived.
    fn sessions(&self) -> Vec<String> {
        self.arrived
            .iter()
            .filter_map(|party| party.split(' ').next())
            .map(str::to_owned)
            .collect()
    }
}

fn broken() -> Failure {
    Failure::new(
        FailureKind::Broken,
        "the barrier is broken: a party has left it, or somebody broke it",
    )
}

impl<S: Store> Engine<S> {
    pub(super) async fn arrive(self: Rc<Self>, arrival: Arrival, completer: Completer) {
        let place = Cell::new(None);
        let outcome = tokio::select! {
            biased;
            outcome = self.pass(&arrival, &place) => outcome,
            () = completer.cancelled() => {
                let _ = self.leave_cycle(&arrival.cell, place.get()).await;
                Err(Failure::new(FailureKind::Cancelled, "cancelled"))
            }
            () = sleep_or_never(arrival.timeout) => self.leave_cycle(&arrival.cell, place.get()).await,
        };
        completer.complete(outcome.map(Answer::Number));
    }

    async fn pass(self: &Rc<Self>, arrival: &Arrival, own: &Cell<Option<(u64, u64)>>) -> Outcome<u64> {
        let session = self.session(arrival.ttl_ms).await?;
        let _in_use = session.keep_in_use();
        let watching = self.watching(&arrival.cell).await?;
        let party = format!("{} {}", session.id, self.number());
        let (cycle, place) = self.write_down(arrival, &party, own).await?;
        loop {
            let changed = watching.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let barrier = Barrier::read(&self.persist(|| self.store.read(&arrival.cell)).await?.text);
            if barrier.completed.contains(&cycle) {
                return Ok(place);
            }
            if barrier.is_broken || barrier.cycle != cycle {
                return Err(broken());
            }
            if !self.are_all_alive(&barrier, &session).await? {
                return self.leave_cycle(&arrival.cell, Some((cycle, place))).await;
            }
            tokio::select! {
                () = changed => {}
                () = sleep(Duration::from_millis(session.ttl_ms)) => {}
            }
        }
    }

    /// Breaks the barrier for the others of a cycle, unless that was completed meanwhile.
    async fn leave_cycle(&self, cell: &str, own: Option<(u64, u64)>) -> Outcome<u64> {
        let Some((cycle, place)) = own else {
            return Err(broken());
        };
        loop {
            let found = self.persist(|| self.store.read(cell)).await?;
            let mut barrier = Barrier::read(&found.text);
            if barrier.completed.contains(&cycle) {
                return Ok(place);
            }
            if barrier.is_broken || barrier.cycle != cycle {
                return Err(broken());
            }
            barrier.break_it();
            if self.replace(cell, found.version, &barrier).await? {
                return Err(broken());
            }
        }
    }

    /// Adds a party to the cycle, and completes the cycle with the last one; returns the cycle and the place.
    async fn write_down(&self, arrival: &Arrival, party: &str, own: &Cell<Option<(u64, u64)>>) -> Outcome<(u64, u64)> {
        let (mut cycle, mut place) = (0, 0);
        loop {
            let found = self.persist(|| self.store.read(&arrival.cell)).await?;
            let mut barrier = Barrier::read(&found.text);
            // Written down already, by a request whose answer was lost.
            if barrier.arrived.iter().any(|other| other == party)
                || (place + 1 == arrival.parties as u64 && barrier.completed.contains(&cycle))
            {
                return Ok((cycle, place));
            }
            if barrier.is_broken {
                return Err(broken());
            }
            if barrier.arrived.is_empty() {
                barrier.parties = arrival.parties;
            } else if barrier.parties != arrival.parties {
                let parties = barrier.parties;
                return Err(Failure::invalid(format!("this barrier is in use by {parties} parties")));
            }
            (cycle, place) = (barrier.cycle, barrier.arrived.len() as u64);
            own.set(Some((cycle, place)));
            barrier.arrived.push(party.to_owned());
            if barrier.arrived.len() == barrier.parties {
                barrier.complete();
            }
            if self.replace(&arrival.cell, found.version, &barrier).await? {
                return Ok((cycle, place));
            }
        }
    }

    async fn replace(&self, cell: &str, version: u64, barrier: &Barrier) -> Outcome<bool> {
        let text = serde_json::to_string(barrier).map_err(|error| Failure::invalid(error.to_string()))?;
        self.persist(|| self.store.swap(cell, version, &text)).await
    }

    async fn are_all_alive(&self, barrier: &Barrier, session: &Session) -> Outcome<bool> {
        if !session.is_held() {
            return Ok(false);
        }
        let sessions = barrier.sessions();
        Ok(self
            .persist(|| self.store.are_alive(&sessions))
            .await?
            .iter()
            .all(|is_alive| *is_alive))
    }

    /// Breaks a barrier until it is reset, or (`is_reset`) makes it empty and whole.
    pub(super) async fn break_barrier(&self, cell: &str, is_reset: bool) -> Outcome<()> {
        loop {
            let found = self.persist(|| self.store.read(cell)).await?;
            let mut barrier = Barrier::read(&found.text);
            if barrier.is_broken && !is_reset {
                return Ok(());
            }
            barrier.break_it();
            barrier.is_broken = !is_reset;
            if self.replace(cell, found.version, &barrier).await? {
                return Ok(());
            }
        }
    }

    pub(super) async fn parties_waiting(&self, cell: &str) -> Outcome<u64> {
        Ok(Barrier::read(&self.persist(|| self.store.read(cell)).await?.text)
            .arrived
            .len() as u64)
    }
}
