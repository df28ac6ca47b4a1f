//! A session: what the store ends when this process has stopped renewing it, and every hold of it with it.
//!
//! All holds of one time to live share a session, so ten thousand of them are renewed by one request.
//! The rule by which it is lost is `unsnarl_lease`'s; here are the requests and the clock.
//!
//! Invariant: `Belief::deadline_ns` is never later than what the lease says; a session that is lost is never used again.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{sleep, timeout};
use unsnarl_lease::{Attempt, Lease, Rules, State, Step};

use super::Engine;
use crate::boottime::now_ns;
use crate::counts::{count, uncount};
use crate::failure::{Failure, Outcome};
use crate::hold::{Belief, Loss};
use crate::identity::random;
use crate::port::Store;
use crate::runner::spawn;

/// How far a session has come.
#[derive(Clone, Debug)]
enum Phase {
    Opening,
    Open,
    Failed(Failure),
    Lost,
}

/// One session.
pub(super) struct Session {
    pub(super) id: String,
    pub(super) ttl_ms: u64,
    pub(super) belief: Arc<Belief>,
    lease: RefCell<Lease>,
    phase: watch::Sender<Phase>,
    /// Tickets that are held, waited for or being withdrawn.
    users: Cell<usize>,
    idle_since_ns: Cell<u64>,
    refused: Notify,
}

/// Keeps a session in use.
pub(super) struct Use(Rc<Session>);

impl Session {
    fn new(ttl_ms: u64, rules: Rules) -> Self {
        Self {
            id: format!("{:016x}", random()),
            ttl_ms,
            belief: Arc::default(),
            lease: RefCell::new(Lease::new(rules)),
            phase: watch::Sender::new(Phase::Opening),
            users: Cell::new(0),
            idle_since_ns: Cell::new(now_ns()),
            refused: Notify::new(),
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.lease.borrow().is_held(now_ns()) && self.belief.loss(now_ns()).is_none()
    }

    pub(super) fn keep_in_use(self: &Rc<Self>) -> Use {
        self.users.set(self.users.get() + 1);
        Use(Rc::clone(self))
    }

    /// Counts one more that uses it, until `count_out`.
    pub(super) fn count_in(&self) {
        self.users.set(self.users.get() + 1);
    }

    pub(super) fn count_out(&self) {
        self.users.set(self.users.get() - 1);
        self.idle_since_ns.set(now_ns());
    }

    /// Takes the store's word, from another request than a renewal, that the session has ended.
    pub(super) fn refuse(&self) {
        self.lease.borrow_mut().refuse();
        self.belief.lose(Loss::Refused);
        self.refused.notify_one();
    }

    /// Resolves when the session is lost.
    pub(super) async fn lost(&self) {
        let mut phase = self.phase.subscribe();
        let _ = phase
            .wait_for(|phase| matches!(phase, Phase::Lost | Phase::Failed(_)))
            .await;
    }

    async fn opened(&self) -> Outcome<()> {
        let mut phase = self.phase.subscribe();
        let reached = phase
            .wait_for(|phase| !matches!(phase, Phase::Opening))
            .await
            .map(|phase| phase.clone());
        match reached {
            Ok(Phase::Failed(failure)) => Err(failure),
            _ => Ok(()),
        }
    }

    fn is_usable(&self) -> bool {
        match &*self.phase.borrow() {
            Phase::Opening => true,
            Phase::Open => self.is_held(),
            Phase::Failed(_) | Phase::Lost => false,
        }
    }

    fn is_idle(&self) -> bool {
        self.users.get() == 0 && now_ns() >= self.idle_since_ns.get() + self.ttl_ms * 1_000_000
    }

    fn confirm(&self, attempt: Attempt) {
        let mut lease = self.lease.borrow_mut();
        if lease.confirm(attempt, now_ns()) {
            self.belief.extend(lease.deadline_ns().unwrap_or(0));
        }
    }
}

impl Use {
    pub(super) fn session(&self) -> &Rc<Session> {
        &self.0
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.0.count_out();
    }
}

impl<S: Store> Engine<S> {
    /// Returns an open session with that time to live.
    pub(super) async fn session(self: &Rc<Self>, ttl_ms: u64) -> Outcome<Rc<Session>> {
        let found = self
            .sessions
            .borrow()
            .get(&ttl_ms)
            .filter(|session| session.is_usable())
            .map(Rc::clone);
        let session = match found {
            Some(session) => session,
            None => {
                let rules = Rules::new(ttl_ms * 1_000_000).map_err(|error| Failure::invalid(error.to_string()))?;
                let session = Rc::new(Session::new(ttl_ms, rules));
                self.sessions.borrow_mut().insert(ttl_ms, Rc::clone(&session));
                spawn(Rc::clone(self).keep(Rc::clone(&session)));
                session
            }
        };
        session.opened().await?;
        Ok(session)
    }

    /// Opens a session and renews it until it is lost or idle.
    async fn keep(self: Rc<Self>, session: Rc<Session>) {
        if let Err(failure) = self.open(&session).await {
            self.forget(&session);
            session.phase.send_replace(Phase::Failed(failure));
            return;
        }
        count(&self.counts.sessions);
        session.phase.send_replace(Phase::Open);
        self.renew_until_the_end(&session).await;
        uncount(&self.counts.sessions);
        self.end(&session);
    }

    async fn open(&self, session: &Session) -> Outcome<()> {
        let sent = Cell::new(None);
        self.persist(|| {
            sent.set(Some(session.lease.borrow_mut().send(now_ns())));
            self.store.open(&session.id, session.ttl_ms)
        })
        .await?;
        // The latest attempt is the one that was confirmed.
        if let Some(attempt) = sent.get() {
            session.confirm(attempt);
        }
        Ok(())
    }

    async fn renew_until_the_end(self: &Rc<Self>, session: &Rc<Session>) {
        let (answers, mut inbox) = mpsc::unbounded_channel();
        loop {
            let (at_ns, is_send) = match session.lease.borrow().next_step() {
                Step::Nothing => return,
                Step::SendAt(at_ns) => (at_ns, true),
                Step::ExpireAt(at_ns) => (at_ns, false),
            };
            let wait = Duration::from_nanos(at_ns.saturating_sub(now_ns()));
            tokio::select! {
                biased;
                Some((attempt, outcome)) = inbox.recv() => self.hear_renewal(session, attempt, &outcome),
                () = session.refused.notified() => {}
                () = sleep(wait) => {
                    session.lease.borrow_mut().expire(now_ns());
                    if session.is_idle() {
                        session.lease.borrow_mut().end();
                    } else if is_send {
                        self.send_renewal(session, answers.clone());
                    }
                }
            }
        }
    }

    fn send_renewal(self: &Rc<Self>, session: &Rc<Session>, answers: mpsc::UnboundedSender<(Attempt, Outcome<bool>)>) {
        if session.lease.borrow().next_step() == Step::Nothing {
            return;
        }
        count(&self.counts.requests);
        let attempt = session.lease.borrow_mut().send(now_ns());
        let (engine, session) = (Rc::clone(self), Rc::clone(session));
        spawn(async move {
            let ttl = Duration::from_millis(session.ttl_ms);
            let limit = (ttl / 3).min(engine.patience);
            let renewal = engine.store.renew(&session.id, session.ttl_ms);
            tokio::pin!(renewal);
            let outcome = match timeout(limit, &mut renewal).await {
                Ok(outcome) => outcome,
                Err(_) => {
                    // A connection that does not answer for a third of the ttl is given up: another may.
                    engine.store.reset_renewals();
                    let _ = answers.send((attempt, Err(Failure::unavailable("a renewal was not answered"))));
                    // A server that is slow on every connection has answered none by then.
                    if !engine.store.hears_late_answers() {
                        return;
                    }
                    match timeout(ttl.saturating_sub(limit), renewal).await {
                        Ok(Ok(is_there)) => Ok(is_there),
                        _ => return,
                    }
                }
            };
            let _ = answers.send((attempt, outcome));
        });
    }

    fn hear_renewal(self: &Rc<Self>, session: &Session, attempt: Attempt, outcome: &Outcome<bool>) {
        match outcome {
            Ok(true) => {
                count(&self.counts.renewals);
                session.confirm(attempt);
                // The store serves again, and the pause until it did was longer than our patience.
                if !self.store.is_connected() {
                    self.connect();
                }
            }
            Ok(false) => session.lease.borrow_mut().refuse(),
            // Sent again in time, by the lease's next step.
            Err(_) => count(&self.counts.retries),
        }
    }

    /// Notes that a session is lost or no longer needed, and has the store end it if it still has it.
    fn end(self: &Rc<Self>, session: &Rc<Session>) {
        let loss = match session.lease.borrow().state(now_ns()) {
            State::Lost(unsnarl_lease::Loss::Refused) => Loss::Refused,
            _ => Loss::Expired,
        };
        session.belief.lose(loss);
        self.forget(session);
        session.phase.send_replace(Phase::Lost);
        let lost: Vec<_> = {
            let mut holds = self.holds.borrow_mut();
            let mine = holds
                .iter()
                .filter(|(_, hold)| Arc::ptr_eq(&hold.belief, &session.belief));
            let mine: Vec<String> = mine.map(|(ticket, _)| ticket.clone()).collect();
            mine.iter().filter_map(|ticket| holds.remove(ticket)).collect()
        };
        lost.iter().for_each(|hold| self.lose(hold, loss));
        if loss != Loss::Refused {
            let (engine, id) = (Rc::clone(self), session.id.clone());
            spawn(async move {
                let _ = engine.persist(|| engine.store.close(&id)).await;
            });
        }
    }

    fn forget(&self, session: &Rc<Session>) {
        let mut sessions = self.sessions.borrow_mut();
        if sessions
            .get(&session.ttl_ms)
            .is_some_and(|latest| Rc::ptr_eq(latest, session))
        {
            sessions.remove(&session.ttl_ms);
        }
    }
}
