//! The store: the one party that does not lie, lose or forget.
//!
//! Sessions end by the store's own clock, and are noticed to have ended when anybody asks. It keeps what it
//! knows over a restart, as etcd, PostgreSQL and a Redis with an append-only file do.

use std::collections::{BTreeMap, VecDeque};

use super::random::Clock;
use super::{Answer, Happening, Outcome, Request, Session, World};

pub(crate) struct Store {
    clock: Clock,
    /// When each session ends, by the store's clock.
    sessions: BTreeMap<Session, u64>,
    holder: Option<Session>,
    queue: VecDeque<Session>,
    fence: u64,
    highest_granted: u64,
}

impl Store {
    pub(crate) fn new(world: &mut World) -> Self {
        let clock = Clock::new(&mut world.random, world.plan.drift_ppm);
        Self {
            clock,
            sessions: BTreeMap::new(),
            holder: None,
            queue: VecDeque::new(),
            fence: 0,
            highest_granted: 0,
        }
    }

    pub(crate) fn handle(&mut self, world: &mut World, request: Request, outcome: &mut Outcome) {
        let now = self.clock.read(world.now);
        self.sessions.retain(|_, ends| *ends > now);
        match request {
            Request::Open(session, sent) => self.open(world, session, sent, now),
            Request::Renew(session, sent) if self.sessions.contains_key(&session) => {
                self.open(world, session, sent, now)
            }
            Request::Renew(session, _) => world.send(Happening::ToHolder(session.0, Answer::Dead(session))),
            Request::Enqueue(session) => self.enqueue(world, session),
            Request::Leave(session) => self.leave(session),
        }
        self.grant(world, outcome);
    }

    fn open(&mut self, world: &mut World, session: Session, sent: u64, now: u64) {
        self.sessions.insert(session, now + world.rules.ttl_ns());
        world.send(Happening::ToHolder(session.0, Answer::Alive(session, sent)));
    }

    fn enqueue(&mut self, world: &mut World, session: Session) {
        if !self.sessions.contains_key(&session) {
            world.send(Happening::ToHolder(session.0, Answer::Dead(session)));
        } else if self.holder == Some(session) {
            // Asked again, since the answer was lost: the same fence.
            world.send(Happening::ToHolder(session.0, Answer::Granted(session, self.fence)));
        } else if !self.queue.contains(&session) {
            self.queue.push_back(session);
        }
    }

    fn leave(&mut self, session: Session) {
        self.queue.retain(|waiter| *waiter != session);
        if self.holder == Some(session) {
            self.holder = None;
        }
    }

    fn grant(&mut self, world: &mut World, outcome: &mut Outcome) {
        self.holder = self.holder.filter(|session| self.sessions.contains_key(session));
        while self.holder.is_none() {
            let Some(next) = self.queue.pop_front() else { return };
            if !self.sessions.contains_key(&next) {
                continue;
            }
            self.holder = Some(next);
            self.fence += 1;
            if self.fence <= self.highest_granted {
                outcome.stale_fences.push(self.fence);
            }
            self.highest_granted = self.fence;
            outcome.grants += 1;
            world.send(Happening::ToHolder(next.0, Answer::Granted(next, self.fence)));
        }
    }
}
