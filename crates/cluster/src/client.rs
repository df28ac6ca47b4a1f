//! The program's side of one connection: it starts the native thread and sends it commands.
//!
//! Invariant: no call here waits; what takes time is an `Operation`.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::counts::Counts;
use crate::engine::{Command, run};
use crate::failure::{Failure, Kind, Outcome};
use crate::identity::Identity;
use crate::operation::{Completer, Operation, pair};
use crate::runner::Runner;
use crate::signals::without_signals;
use crate::stores::etcd::Etcd;
use crate::stores::postgres::Postgres;
use crate::stores::redis::Redis;
use crate::target::{Scheme, Target};

/// How many native threads there are, which those that end count down.
static ALIVE: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// Counts one native thread for as long as it lives.
struct Alive;

impl Alive {
    fn new() -> Self {
        *ALIVE.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Self
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        let mut count = ALIVE.0.lock().unwrap_or_else(PoisonError::into_inner);
        *count = count.saturating_sub(1);
        ALIVE.1.notify_all();
    }
}

/// Waits until all native threads have ended, for up to `limit`; to be called when nothing refers to a client any more.
///
/// Not in a fork: its parent's threads are not there.
pub(crate) fn wait_for_the_end(limit: Duration) {
    let count = ALIVE.0.lock().unwrap_or_else(PoisonError::into_inner);
    drop(ALIVE.1.wait_timeout_while(count, limit, |count| *count > 0));
}

/// One connection to a store.
pub(crate) struct Client {
    commands: mpsc::UnboundedSender<Command>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) identity: Identity,
    runner: Arc<Runner>,
}

impl Client {
    /// Starts the native thread; nothing is connected yet.
    pub(crate) fn start(target: Target) -> Outcome<Self> {
        let (commands, inbox) = mpsc::unbounded_channel();
        let counts = Arc::new(Counts::default());
        let identity = Identity::new();
        let (own_counts, own_identity) = (Arc::clone(&counts), identity.clone());
        let cannot = |error: std::io::Error| Failure::unavailable(format!("no thread can be started: {error}"));
        let runner = Runner::new(Arc::clone(&counts)).map_err(cannot)?;
        let own_runner = Arc::clone(&runner);
        let alive = Alive::new();
        let task = move || {
            let _alive = alive;
            own_runner.serve(|| engine(target, own_identity, own_counts, inbox));
        };
        without_signals(|| thread::Builder::new().name("unsnarl-cluster".to_owned()).spawn(task)).map_err(cannot)?;
        Ok(Self {
            commands,
            counts,
            identity,
            runner,
        })
    }

    /// Sends a command that `make` makes of the completer.
    pub(crate) fn send(&self, make: impl FnOnce(Completer) -> Command) -> Operation {
        let (operation, completer) = pair(Arc::clone(&self.runner));
        if self.is_forked() {
            // The thread is the parent's, and so may be its channel's lock.
            completer.complete(Err(Failure::new(
                Kind::Closed,
                "this connection belongs to the parent process",
            )));
        } else {
            // Without a receiver the completer is dropped, which completes it.
            let _ = self.commands.send(make(completer));
        }
        operation
    }

    pub(crate) fn is_forked(&self) -> bool {
        self.runner.is_forked()
    }
}

/// The engine with the store that the target names.
async fn engine(target: Target, identity: Identity, counts: Arc<Counts>, commands: mpsc::UnboundedReceiver<Command>) {
    let (sender, events) = mpsc::unbounded_channel();
    let (own, place) = (identity.clone(), target.clone());
    match target.scheme {
        Scheme::Redis => {
            let store = Redis::new(target, own, sender);
            run(store, &place, identity, counts, commands, events).await;
        }
        Scheme::Postgres => {
            let store = Postgres::new(target, own, sender);
            run(store, &place, identity, counts, commands, events).await;
        }
        Scheme::Etcd => {
            let store = Etcd::new(target, own, sender);
            run(store, &place, identity, counts, commands, events).await;
        }
    }
}
