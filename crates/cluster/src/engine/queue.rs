//! Acquiring and releasing: a ticket in the store's queue, and a waiter that is told of its grant.
//!
//! Invariant: whatever ends an acquisition, its ticket is held by the program or withdrawn.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use super::session::{Session, Use};
use super::{Engine, sleep_or_never};
use crate::boottime::now_ns;
use crate::counts::count;
use crate::failure::{Failure, Kind as FailureKind, Outcome};
use crate::hold::{Hold, Loss};
use crate::operation::{Answer, Completer};
use crate::port::{Kind, Standing, Store, Ticket};
use crate::runner::spawn;

/// What the program wants to hold.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) is_shared: bool,
    pub(crate) limit: u32,
    pub(crate) ttl_ms: u64,
    /// 0 without.
    pub(crate) progress_ns: u64,
    pub(crate) is_waiting: bool,
    pub(crate) timeout: Option<Duration>,
}

/// One that waits for a grant.
#[derive(Default)]
pub(super) struct Waiter {
    fence: Cell<Option<u64>>,
    changed: Notify,
}

impl Waiter {
    pub(super) fn grant(&self, fence: u64) {
        self.fence.set(Some(fence));
        self.changed.notify_one();
    }

    /// Has the waiter ask the store where its ticket stands.
    pub(super) fn look(&self) {
        self.changed.notify_one();
    }
}

/// A ticket under way, to be withdrawn unless it becomes a hold.
type Current = RefCell<Option<(Ticket, Use)>>;

impl<S: Store> Engine<S> {
    /// Carries out an acquisition, whatever ends it.
    pub(super) async fn acquire(self: Rc<Self>, request: Request, completer: Completer) {
        let current = Current::default();
        let outcome = tokio::select! {
            biased;
            outcome = self.grant(&request, &current) => outcome,
            () = completer.cancelled() => Err(Failure::new(FailureKind::Cancelled, "cancelled")),
            () = sleep_or_never(request.timeout) => Err(Failure::new(FailureKind::TimedOut, "the time is up")),
        };
        let outcome = match outcome {
            Ok(None) => Err(Failure::new(FailureKind::TimedOut, "held by another")),
            Ok(Some(fence)) => Ok(self.hold(&request, &current, fence)),
            Err(failure) => Err(failure),
        };
        match &outcome {
            Ok(_) => count(&self.counts.acquired),
            Err(failure) if failure.kind == FailureKind::TimedOut => count(&self.counts.timed_out),
            Err(failure) if failure.kind == FailureKind::Cancelled => count(&self.counts.cancelled),
            Err(_) => {}
        }
        if let Some((ticket, session)) = current.take() {
            self.waiters.borrow_mut().remove(&ticket.id);
            spawn(Rc::clone(&self).withdraw(ticket, session));
        }
        let hold = outcome.as_ref().ok().map(Arc::clone);
        let is_taken = completer.complete(outcome.map(Answer::Hold));
        if let Some(hold) = hold.filter(|_| !is_taken) {
            let _ = hold.release();
            self.put_down(&hold);
        }
    }

    /// Makes a hold of the ticket that was granted.
    fn hold(self: &Rc<Self>, request: &Request, current: &Current, fence: u64) -> Arc<Hold> {
        let (ticket, in_use) = current.take().expect("a grant is some ticket's");
        self.waiters.borrow_mut().remove(&ticket.id);
        let session = in_use.session();
        session.count_in();
        let hold = Arc::new(Hold::new(
            fence,
            ticket,
            Arc::clone(&session.belief),
            request.progress_ns,
        ));
        self.holds
            .borrow_mut()
            .insert(hold.ticket.id.clone(), Arc::clone(&hold));
        if request.progress_ns != 0 {
            spawn(Rc::clone(self).watch_progress(Arc::clone(&hold)));
        }
        hold
    }

    /// Waits until a ticket is granted, with as many sessions as it takes; None if it is not to wait.
    async fn grant(self: &Rc<Self>, request: &Request, current: &Current) -> Outcome<Option<u64>> {
        loop {
            let session = self.session(request.ttl_ms).await?;
            let ticket = self.ticket(request, &session);
            let waiter = Rc::new(Waiter::default());
            self.waiters.borrow_mut().insert(ticket.id.clone(), Rc::clone(&waiter));
            *current.borrow_mut() = Some((ticket.clone(), session.keep_in_use()));
            let granted = tokio::select! {
                biased;
                granted = self.stand(&ticket, &session, &waiter, request.is_waiting) => granted,
                () = session.lost() => Ok(Standing::NoSession),
            };
            match granted? {
                // A grant of a session that is no longer believed in is none.
                Standing::Granted { fence } if session.is_held() => return Ok(Some(fence)),
                Standing::Busy => return Ok(None),
                Standing::NoSession => session.refuse(),
                _ => {}
            }
            self.waiters.borrow_mut().remove(&ticket.id);
            if let Some((ticket, in_use)) = current.take() {
                spawn(Rc::clone(self).withdraw(ticket, in_use));
            }
        }
    }

    fn ticket(&self, request: &Request, session: &Session) -> Ticket {
        let mode = if request.is_shared { 's' } else { 'x' };
        let id = format!("{}.{}.{}.{mode}", self.identity.client, session.id, self.number());
        let (kind, name, session) = (request.kind, request.name.clone(), session.id.clone());
        Ticket {
            kind,
            name,
            is_shared: request.is_shared,
            limit: request.limit,
            session,
            id,
        }
    }

    /// Waits for a ticket until it is granted or can no longer be.
    async fn stand(&self, ticket: &Ticket, session: &Session, waiter: &Waiter, is_waiting: bool) -> Outcome<Standing> {
        let mut is_first = true;
        loop {
            let standing = self.persist(|| self.store.enqueue(ticket, is_waiting)).await?;
            let Standing::Queued { check_after_ms } = standing else {
                return Ok(standing);
            };
            if std::mem::take(&mut is_first) {
                count(&self.counts.contended);
            }
            tokio::select! {
                biased;
                () = waiter.changed.notified() => {}
                () = sleep(Duration::from_millis(check_after_ms)) => {}
            }
            if let Some(fence) = waiter.fence.take() {
                self.persist(|| self.store.confirm(ticket, fence)).await?;
                return Ok(Standing::Granted { fence });
            }
            if !session.is_held() {
                return Ok(Standing::NoSession);
            }
        }
    }

    /// Takes a ticket out of the store, for as long as the store has its session.
    async fn withdraw(self: Rc<Self>, ticket: Ticket, session: Use) {
        loop {
            match self.persist(|| self.store.leave(&ticket)).await {
                Err(failure) if failure.kind == FailureKind::Unavailable && session.session().is_held() => {}
                _ => return,
            }
        }
    }

    /// Gives a hold back that the program has released.
    pub(super) async fn release(self: Rc<Self>, hold: Arc<Hold>, completer: Completer) {
        let in_use = self.put_away(&hold);
        count(&self.counts.released);
        let outcome = self.persist(|| self.store.leave(&hold.ticket)).await;
        if let (Err(_), Some(session)) = (&outcome, in_use) {
            spawn(Rc::clone(&self).withdraw(hold.ticket.clone(), session));
        }
        completer.complete(outcome.map(|()| Answer::Nothing));
    }

    /// Gives a hold back that nobody has taken, or that is lost for the program alone.
    fn put_down(self: &Rc<Self>, hold: &Arc<Hold>) {
        if let Some(session) = self.put_away(hold) {
            spawn(Rc::clone(self).withdraw(hold.ticket.clone(), session));
        }
    }

    /// Takes a hold from the list; returns its session, still in use, unless that is lost.
    fn put_away(&self, hold: &Hold) -> Option<Use> {
        self.holds.borrow_mut().remove(&hold.ticket.id)?;
        let sessions = self.sessions.borrow();
        let session = sessions.values().find(|session| session.id == hold.ticket.session)?;
        let in_use = session.keep_in_use();
        session.count_out();
        Some(in_use)
    }

    /// Ends a hold whose program has stopped reporting progress.
    async fn watch_progress(self: Rc<Self>, hold: Arc<Hold>) {
        loop {
            match hold.loss() {
                None if hold.is_released() => return,
                None => {
                    let left = hold.stalls_at_ns().saturating_sub(now_ns());
                    sleep(Duration::from_nanos(left.max(1_000_000))).await;
                }
                Some(Loss::Stalled) => {
                    self.lose(&hold, Loss::Stalled);
                    return self.put_down(&hold);
                }
                Some(_) => return,
            }
        }
    }
}

/// Waits until a hold is lost; released, it never will be.
pub(super) async fn watch(hold: Arc<Hold>, limit: Option<Duration>, completer: Completer) {
    let ended = hold.ended.notified();
    tokio::pin!(ended);
    // From here on an end is noticed, before the state is read.
    ended.as_mut().enable();
    if hold.loss().is_none() && !hold.is_released() {
        tokio::select! {
            () = ended => {}
            () = completer.cancelled() => {}
            () = sleep_or_never(limit) => {}
        }
    }
    completer.complete(Ok(Answer::Flag(hold.loss().is_some())));
}
