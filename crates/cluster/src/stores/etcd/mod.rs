//! etcd: a key with a lease for each ticket; the revision at which it was created is its place and its fence.
//!
//! | key, after `unsnarl/NAMESPACE/` | |
//! |---|---|
//! | `q/QUEUE/MODE/TICKET` | a ticket; MODE is `x` or `s`; the value is who asks, since when |
//! | `l/QUEUE` | the limit of a semaphore |
//! | `c/CELL` | an event or a barrier |
//! | `m/CLIENT/TICKET` | a message: that ticket was broken |
//!
//! The order of the keys alone says which clients hold: no client writes a grant. A waiter watches one key, the one
//! before it that it waits for, so a release wakes one waiter. If the ticket of that key was the first of the queue,
//! the waiter holds once the key has gone, without asking: it was so when the waiter came, or the holder has changed
//! its key since, which it does once it has held for some milliseconds. That needs an etcd that ends no lease of a living
//! client (`SOUND` in `link.rs`): with others the waiter asks. At a semaphore the first waiter watches all that
//! hold, and those behind it their predecessor, which changes its key once it holds.
//!
//! Invariant: a waiter's watch begins with the revision after the one that told it to wait, so nothing is missed.

mod link;
mod listing;
mod messages;
mod queue;

use std::cell::{Cell as StdCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::{Mutex, mpsc};
use tonic::Code;

use crate::failure::{Kind as FailureKind, Outcome};
use crate::identity::Identity;
use crate::port::{Cell, Event, Kind, Row, Standing, Store, Ticket};
use crate::target::Target;
use link::{Link, Watched};
use messages::{
    CHANGE, Compare, Compared, DeleteRequest, GrantRequest, LeaseRequest, LeaseResponse, Nothing, Op, PutRequest,
    RangeRequest, RangeResponse, TxnRequest, TxnResponse, calls,
};

/// A waiter asks again after that time whatever it was told: etcd tells it of a holder's death by itself.
const CHECK_AFTER_MS: u64 = 30_000;

/// etcd.
pub(crate) struct Etcd {
    target: Target,
    identity: Identity,
    base: String,
    link: RefCell<Option<Rc<Link>>>,
    is_connecting: Mutex<()>,
    cells: RefCell<BTreeMap<String, i64>>,
    /// The watch of each ticket that waits.
    tickets: RefCell<HashMap<String, i64>>,
    /// Tickets whose keys are there, and whether they had to wait: asking again needs no write then.
    standing: Rc<RefCell<HashMap<String, bool>>>,
    events: mpsc::UnboundedSender<Event>,
    number: StdCell<u64>,
}

impl Etcd {
    pub(crate) fn new(target: Target, identity: Identity, events: mpsc::UnboundedSender<Event>) -> Rc<Self> {
        let base = format!("unsnarl/{}/", target.namespace);
        Rc::new(Self {
            target,
            identity,
            base,
            link: RefCell::new(None),
            is_connecting: Mutex::new(()),
            cells: RefCell::default(),
            tickets: RefCell::default(),
            standing: Rc::default(),
            events,
            number: StdCell::new(0),
        })
    }

    async fn link(&self) -> Outcome<Rc<Link>> {
        if let Some(link) = &*self.link.borrow() {
            return Ok(Rc::clone(link));
        }
        let _turn = self.is_connecting.lock().await;
        if let Some(link) = &*self.link.borrow() {
            return Ok(Rc::clone(link));
        }
        let number = self.number.get() + 1;
        self.number.set(number);
        // Another member first, each time.
        let first = usize::try_from(number).unwrap_or(0);
        let link = Rc::new(Link::open(&self.target, first).await?);
        let messages = format!("{}m/{}/", self.base, self.identity.client);
        link.watch(
            Watched::Messages,
            messages.clone().into(),
            after(&messages),
            0,
            Vec::new(),
        );
        link.listen(number, self.events.clone()).await?;
        self.tickets.borrow_mut().clear();
        for (cell, watch) in self.cells.borrow_mut().iter_mut() {
            *watch = link.watch(
                Watched::Cell(cell.clone()),
                self.cell_key(cell),
                Vec::new(),
                0,
                Vec::new(),
            );
        }
        *self.link.borrow_mut() = Some(Rc::clone(&link));
        if number > 1 {
            let _ = self.events.send(Event::Reconnected);
        }
        Ok(link)
    }

    /// Makes a call, and gives the connection up if it has failed for a reason that another may not have.
    async fn call<Q, A>(&self, path: &'static str, message: Q) -> Outcome<A>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let link = self.link().await?;
        self.checked(link.call(path, message).await)
    }

    fn checked<T>(&self, outcome: Outcome<T>) -> Outcome<T> {
        if outcome
            .as_ref()
            .is_err_and(|failure| failure.kind == FailureKind::Unavailable)
        {
            self.reset();
        }
        outcome
    }

    fn cell_key(&self, cell: &str) -> Vec<u8> {
        format!("{}c/{cell}", self.base).into()
    }

    async fn delete(&self, key: Vec<u8>) -> Outcome<()> {
        let _: Nothing = self.call(calls::DELETE, DeleteRequest { key }).await?;
        Ok(())
    }
}

impl Store for Etcd {
    async fn connect(&self) -> Outcome<()> {
        self.link().await.map(drop)
    }

    fn reset(&self) {
        *self.link.borrow_mut() = None;
    }

    fn disconnected(&self, connection: u64) {
        if self.number.get() == connection {
            self.reset();
        }
    }

    async fn open(&self, session: &str, ttl_ms: u64) -> Outcome<()> {
        let (id, ttl) = (lease_of(session), ttl_ms.div_ceil(1000).cast_signed());
        let link = self.link().await?;
        match link
            .try_call::<_, Nothing>(calls::GRANT, GrantRequest { ttl, id })
            .await
        {
            Ok(Nothing {}) => Ok(()),
            // `etcdserver: lease already exists`: an earlier request has made it.
            Err(status) if status.code() == Code::FailedPrecondition && self.renew(session, ttl_ms).await? => Ok(()),
            Err(status) => self.checked(Err(link.failure(&status))),
        }
    }

    async fn renew(&self, session: &str, _ttl_ms: u64) -> Outcome<bool> {
        let link = self.link().await?;
        self.checked(link.keep_alive(lease_of(session)).await)
    }

    async fn close(&self, session: &str) -> Outcome<()> {
        let link = self.link().await?;
        match link
            .try_call::<_, Nothing>(calls::REVOKE, LeaseRequest { id: lease_of(session) })
            .await
        {
            Err(status) if status.code() != Code::NotFound => self.checked(Err(link.failure(&status))),
            _ => Ok(()),
        }
    }

    async fn enqueue(&self, ticket: &Ticket, is_waiting: bool) -> Outcome<Standing> {
        self.stand(ticket, is_waiting).await
    }

    async fn confirm(&self, ticket: &Ticket, fence: u64) -> Outcome<()> {
        self.mark_later(ticket, fence.cast_signed());
        Ok(())
    }

    async fn leave(&self, ticket: &Ticket) -> Outcome<()> {
        self.unwatch_ticket(ticket);
        self.standing.borrow_mut().remove(&ticket.id);
        self.delete(self.ticket_key(ticket)).await
    }

    async fn read(&self, cell: &str) -> Outcome<Cell> {
        let request = RangeRequest {
            key: self.cell_key(cell),
            ..Default::default()
        };
        let answer: RangeResponse = self.call(calls::RANGE, request).await?;
        Ok(answer.kvs.into_iter().next().map_or_else(Cell::default, |kv| Cell {
            version: kv.mod_revision.cast_unsigned(),
            text: String::from_utf8_lossy(&kv.value).into_owned(),
        }))
    }

    async fn swap(&self, cell: &str, version: u64, text: &str) -> Outcome<bool> {
        let key = self.cell_key(cell);
        let compare = vec![equals(
            key.clone(),
            CHANGE,
            Compared::ModRevision(version.cast_signed()),
        )];
        let success = vec![
            Op::Put(PutRequest {
                key,
                value: text.to_owned().into(),
                ..Default::default()
            })
            .into(),
        ];
        let answer: TxnResponse = self
            .call(
                calls::TXN,
                TxnRequest {
                    compare,
                    success,
                    failure: Vec::new(),
                },
            )
            .await?;
        Ok(answer.succeeded)
    }

    async fn watch(&self, cell: &str) -> Outcome<()> {
        let link = self.link().await?;
        // From the present on: whoever watches reads after this. A read tells which revision that is.
        let request = RangeRequest {
            key: self.cell_key(cell),
            ..Default::default()
        };
        let answer: RangeResponse = self.call(calls::RANGE, request).await?;
        let revision = answer.header.map_or(0, |header| header.revision) + 1;
        let watch = link.watch(
            Watched::Cell(cell.to_owned()),
            self.cell_key(cell),
            Vec::new(),
            revision,
            Vec::new(),
        );
        if let Some(earlier) = self.cells.borrow_mut().insert(cell.to_owned(), watch) {
            link.unwatch(earlier);
        }
        Ok(())
    }

    async fn unwatch(&self, cell: &str) -> Outcome<()> {
        if let (Some(watch), Some(link)) = (self.cells.borrow_mut().remove(cell), &*self.link.borrow()) {
            link.unwatch(watch);
        }
        Ok(())
    }

    async fn are_alive(&self, sessions: &[String]) -> Outcome<Vec<bool>> {
        let mut found = Vec::with_capacity(sessions.len());
        for session in sessions {
            let answer: LeaseResponse = self
                .call(calls::TIME_TO_LIVE, LeaseRequest { id: lease_of(session) })
                .await?;
            found.push(answer.ttl > 0);
        }
        Ok(found)
    }

    async fn list(&self) -> Outcome<Vec<Row>> {
        self.rows().await
    }

    async fn remove(&self, kind: Kind, name: &str) -> Outcome<u64> {
        self.break_queue(kind, name).await
    }
}

fn equals(key: Vec<u8>, target: i32, compared: Compared) -> Compare {
    Compare {
        result: 0,
        target,
        key,
        compared: Some(compared),
    }
}

/// The first key after all those with a prefix.
fn after(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    // A prefix ends with a slash: its last byte can be raised.
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

/// A session's name is its lease's number, in hexadecimal digits.
fn lease_of(session: &str) -> i64 {
    i64::from_str_radix(session, 16).unwrap_or(0)
}

fn now_ms() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_millis())
}
