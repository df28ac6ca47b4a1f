//! The native thread: it alone talks to the store, renews leases and hands out grants.
//!
//! It never takes the GIL and never waits for a thread that may have it: requests arrive in a channel, outcomes leave
//! through `crate::operation`. A runtime of one thread runs all of its tasks, so nothing in here is shared.
//!
//! | file | |
//! |---|---|
//! | `session.rs` | opens a session, renews it, and notices that it is lost |
//! | `queue.rs` | acquires and releases |
//! | `cells.rs`, `barrier.rs` | events and barriers |
//!
//! Invariant: every ticket that was sent to the store is held by the program, waited for, or being withdrawn until the
//! store has confirmed that or its session has ended.

mod barrier;
mod cells;
mod queue;
mod session;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep, timeout};

use crate::counts::{Counts, count};
use crate::failure::{Failure, Kind as FailureKind, Outcome};
use crate::hold::{Hold, Loss};
use crate::identity::Identity;
use crate::operation::{Answer, Completer};
use crate::port::{Event, Kind, Store};
use crate::runner::spawn;
use crate::target::Target;

pub(crate) use barrier::Arrival;
pub(crate) use queue::Request;
use queue::Waiter;
use session::Session;

/// The first pause before a request is sent again, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));

/// A request of the program to the engine.
pub(crate) enum Command {
    Connect(Completer),
    Acquire(Request, Completer),
    Release(Arc<Hold>, Completer),
    /// Completes when the hold is lost (`true`), or the time is up or it is released (`false`).
    Watch(Arc<Hold>, Option<Duration>, Completer),
    IsSet(String, Completer),
    Set(String, bool, Completer),
    Wait(String, Option<Duration>, Completer),
    Arrive(Arrival, Completer),
    /// Breaks a barrier for good, or (`true`) for those that wait at it now only.
    Break(String, bool, Completer),
    Waiting(String, Completer),
    List(Completer),
    Remove(Kind, String, Completer),
    Close(Completer),
}

/// The state of the native thread.
pub(crate) struct Engine<S> {
    store: Rc<S>,
    identity: Identity,
    patience: Duration,
    counts: Arc<Counts>,
    /// By time to live, in milliseconds.
    sessions: RefCell<HashMap<u64, Rc<Session>>>,
    /// By ticket.
    waiters: RefCell<HashMap<String, Rc<Waiter>>>,
    holds: RefCell<HashMap<String, Arc<Hold>>>,
    /// Those that wait for a change of a cell, and how many.
    watched: RefCell<HashMap<String, (usize, Rc<Notify>)>>,
    next_number: Cell<u64>,
}

/// Runs the engine until it is told to close, or the program has let go of it; gives everything back then.
pub(crate) async fn run<S: Store>(
    store: Rc<S>,
    target: &Target,
    identity: Identity,
    counts: Arc<Counts>,
    mut commands: mpsc::UnboundedReceiver<Command>,
    mut events: mpsc::UnboundedReceiver<Event>,
) {
    let engine = Rc::new(Engine {
        store,
        identity,
        patience: target.patience,
        counts,
        sessions: RefCell::default(),
        waiters: RefCell::default(),
        holds: RefCell::default(),
        watched: RefCell::default(),
        next_number: Cell::new(1),
    });
    loop {
        tokio::select! {
            command = commands.recv() => match command {
                None => {
                    engine.close().await;
                    break;
                }
                Some(Command::Close(completer)) => {
                    engine.close().await;
                    completer.complete(Ok(Answer::Nothing));
                    break;
                }
                Some(command) => engine.begin(command),
            },
            Some(event) = events.recv() => engine.hear(event),
        }
    }
}

impl<S: Store> Engine<S> {
    /// Starts a task for a command.
    fn begin(self: &Rc<Self>, command: Command) {
        let engine = Rc::clone(self);
        match command {
            Command::Acquire(request, completer) => spawn(engine.acquire(request, completer)),
            Command::Release(hold, completer) => spawn(engine.release(hold, completer)),
            Command::Watch(hold, limit, completer) => spawn(queue::watch(hold, limit, completer)),
            Command::Wait(cell, limit, completer) => spawn(engine.wait_until_set(cell, limit, completer)),
            Command::Arrive(arrival, completer) => spawn(engine.arrive(arrival, completer)),
            others => spawn(async move {
                let (outcome, completer) = engine.simple(others).await;
                completer.complete(outcome);
            }),
        }
    }

    /// Carries out what needs no cancellation: it ends within the patience.
    async fn simple(self: Rc<Self>, command: Command) -> (Outcome<Answer>, Completer) {
        let nothing = |()| Answer::Nothing;
        match command {
            Command::IsSet(cell, completer) => (self.is_set(&cell).await.map(Answer::Flag), completer),
            Command::Set(cell, is_set, completer) => (self.set(&cell, is_set).await.map(nothing), completer),
            Command::Break(cell, is_reset, completer) => {
                (self.break_barrier(&cell, is_reset).await.map(nothing), completer)
            }
            Command::Waiting(cell, completer) => (self.parties_waiting(&cell).await.map(Answer::Number), completer),
            Command::List(completer) => (self.persist(|| self.store.list()).await.map(Answer::Rows), completer),
            Command::Remove(kind, name, completer) => (
                self.persist(|| self.store.remove(kind, &name))
                    .await
                    .map(Answer::Number),
                completer,
            ),
            Command::Connect(completer)
            | Command::Close(completer)
            | Command::Acquire(_, completer)
            | Command::Release(_, completer)
            | Command::Watch(_, _, completer)
            | Command::Wait(_, _, completer)
            | Command::Arrive(_, completer) => (self.persist(|| self.store.connect()).await.map(nothing), completer),
        }
    }

    /// Takes what the store tells.
    fn hear(self: &Rc<Self>, event: Event) {
        match event {
            Event::Granted { ticket, fence } => self.with_waiter(&ticket, |waiter| waiter.grant(fence)),
            Event::Changed { ticket } => self.with_waiter(&ticket, Waiter::look),
            Event::Broken { ticket } => {
                if let Some(hold) = self.holds.borrow_mut().remove(&ticket) {
                    self.lose(&hold, Loss::Broken);
                }
            }
            Event::CellChanged { cell } => {
                if let Some((_, changed)) = self.watched.borrow().get(&cell) {
                    changed.notify_waiters();
                }
            }
            Event::Disconnected { connection } => self.reconnect(connection),
            Event::Reconnected => {
                count(&self.counts.reconnects);
                spawn(Rc::clone(self).repeat_releases());
                self.waiters.borrow().values().for_each(|waiter| waiter.look());
                self.watched
                    .borrow()
                    .values()
                    .for_each(|(_, changed)| changed.notify_waiters());
            }
        }
    }

    fn with_waiter(&self, ticket: &str, act: impl FnOnce(&Waiter)) {
        if let Some(waiter) = self.waiters.borrow().get(ticket) {
            act(waiter);
        }
    }

    /// Connects at once if somebody waits to be told something, or a crash may have brought a ticket of ours back; else
    /// the next request does.
    fn reconnect(self: &Rc<Self>, connection: u64) {
        self.store.disconnected(connection);
        let is_told = !self.waiters.borrow().is_empty() || !self.watched.borrow().is_empty();
        if is_told || !self.sessions.borrow().is_empty() {
            self.connect();
        }
    }

    fn connect(self: &Rc<Self>) {
        let engine = Rc::clone(self);
        spawn(async move {
            let _ = engine.persist(|| engine.store.connect()).await;
        });
    }

    /// Has the store take out again what a crash may have brought back.
    async fn repeat_releases(self: Rc<Self>) {
        let _ = self
            .persist(|| async {
                let sessions: Vec<_> = self
                    .sessions
                    .borrow()
                    .values()
                    .map(|session| session.id.clone())
                    .collect();
                let waiting: Vec<_> = self.waiters.borrow().keys().cloned().collect();
                let tickets: Vec<_> = self.holds.borrow().keys().cloned().chain(waiting).collect();
                let next_number = self.next_number.get();
                self.store.keep_only(&sessions, &tickets, next_number).await
            })
            .await;
    }

    fn lose(&self, hold: &Hold, loss: Loss) {
        if hold.lose(loss) {
            count(&self.counts.lost);
        }
    }

    /// Gives everything back, as far as the store can be reached within the patience.
    async fn close(self: &Rc<Self>) {
        let holds = std::mem::take(&mut *self.holds.borrow_mut());
        for hold in holds.values() {
            self.lose(hold, Loss::Closed);
        }
        let farewell = async {
            for hold in holds.values() {
                if self.store.leave(&hold.ticket).await.is_err() {
                    return;
                }
            }
            let sessions: Vec<_> = self.sessions.borrow().values().map(Rc::clone).collect();
            for session in sessions {
                let _ = self.store.close(&session.id).await;
            }
        };
        let _ = timeout(self.patience, farewell).await;
    }

    fn number(&self) -> u64 {
        self.next_number.replace(self.next_number.get() + 1)
    }

    /// Sends a request again while the store cannot be reached, for as long as the patience lasts.
    async fn persist<T, F>(&self, mut request: impl FnMut() -> F) -> Outcome<T>
    where
        F: Future<Output = Outcome<T>>,
    {
        let begin = Instant::now();
        let mut pause = PAUSES.0;
        loop {
            count(&self.counts.requests);
            let failure = match timeout(self.patience, request()).await {
                Ok(Err(failure)) if failure.kind == FailureKind::Unavailable => failure,
                Ok(outcome) => return outcome,
                Err(_) => {
                    self.store.reset();
                    Failure::unavailable(format!(
                        "the store has not answered for {} s",
                        self.patience.as_secs_f64()
                    ))
                }
            };
            if begin.elapsed() + pause >= self.patience {
                return Err(failure);
            }
            count(&self.counts.retries);
            sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }
}

/// Sleeps for a time, or for ever without one.
async fn sleep_or_never(limit: Option<Duration>) {
    match limit {
        Some(limit) => sleep(limit).await,
        None => std::future::pending().await,
    }
}
