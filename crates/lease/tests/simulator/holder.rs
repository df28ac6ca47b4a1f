//! A holder: opens a session, waits for the lock, holds it for a while, releases it, and begins again.
//!
//! A pause holds back everything but the clock: messages and ticks are carried out when it ends, in their order.

use unsnarl_lease::{Lease, Step};

use super::random::Clock;
use super::{Answer, CountsFrom, Happening, Outcome, Request, Session, Time, World};

pub(crate) struct Holder {
    number: usize,
    clock: Clock,
    session: Session,
    lease: Lease,
    is_granted: bool,
    paused_until: Time,
    /// When the next tick is due; ticks at other times are left over, and ignored.
    wakes_at: Time,
}

impl Holder {
    pub(crate) fn new(world: &mut World, number: usize) -> Self {
        let clock = Clock::new(&mut world.random, world.plan.drift_ppm);
        let lease = Lease::new(world.rules);
        let begin = world.random.below(world.rules.ttl_ns());
        world.schedule(begin, Happening::Tick(number));
        Self {
            number,
            clock,
            session: (number, 0),
            lease,
            is_granted: false,
            paused_until: 0,
            wakes_at: begin,
        }
    }

    /// Whether it would act on the lock at this moment, were it asked.
    pub(crate) fn believes(&self, now: Time) -> bool {
        self.is_granted && self.lease.is_held(self.clock.read(now))
    }

    pub(crate) fn pause(&mut self, world: &mut World, until: Time) {
        self.paused_until = self.paused_until.max(until);
        self.wake_at(world, until);
    }

    /// Ticks at that time, instead of the one it was going to.
    fn wake_at(&mut self, world: &mut World, at: Time) {
        self.wakes_at = at.max(world.now);
        world.schedule(self.wakes_at, Happening::Tick(self.number));
    }

    /// Begins with a new session, knowing nothing.
    pub(crate) fn restart(&mut self, world: &mut World) {
        self.begin_again(world);
    }

    pub(crate) fn hear(&mut self, world: &mut World, answer: Answer, outcome: &mut Outcome) {
        if world.now < self.paused_until {
            return world.schedule(self.paused_until, Happening::ToHolder(self.number, answer));
        }
        let now = self.clock.read(world.now);
        match answer {
            Answer::Alive(session, sent) if session == self.session => self.confirm(world, sent, now),
            Answer::Dead(session) if session == self.session => self.lease.refuse(),
            Answer::Granted(session, _) if session == self.session => self.is_granted = true,
            _ => return, // of an earlier session
        }
        self.step(world, outcome);
    }

    fn confirm(&mut self, world: &World, sent: u64, now: u64) {
        let from = match world.plan.counts_from {
            CountsFrom::Sending => sent,
            CountsFrom::Receipt => now,
        };
        // A copy knows the attempt by its time alone.
        let attempt = self.lease.clone().send(from);
        self.lease.confirm(attempt, now);
    }

    pub(crate) fn tick(&mut self, world: &mut World, outcome: &mut Outcome) {
        if world.now >= self.paused_until && world.now == self.wakes_at {
            self.step(world, outcome);
        }
    }

    fn step(&mut self, world: &mut World, outcome: &mut Outcome) {
        let now = self.clock.read(world.now);
        self.lease.expire(now);
        match self.lease.next_step() {
            Step::Nothing => {
                outcome.losses += 1;
                self.begin_again(world);
            }
            Step::SendAt(at) if at <= now => self.request(world, now),
            Step::SendAt(at) | Step::ExpireAt(at) => self.wake_at(world, self.clock.when(at)),
        }
        self.act(world, outcome);
    }

    /// Opens or renews, and asks for the lock until it has it.
    fn request(&mut self, world: &mut World, now: u64) {
        let is_open = self.lease.deadline_ns().is_some();
        self.lease.send(now);
        let request = if is_open {
            Request::Renew(self.session, now)
        } else {
            Request::Open(self.session, now)
        };
        world.send(Happening::ToStore(request));
        if is_open && !self.is_granted {
            world.send(Happening::ToStore(Request::Enqueue(self.session)));
        }
        if let Step::SendAt(at) | Step::ExpireAt(at) = self.lease.next_step() {
            self.wake_at(world, self.clock.when(at));
        }
    }

    /// Pauses, restarts or releases, at random.
    fn act(&mut self, world: &mut World, outcome: &mut Outcome) {
        if world.random.is_chance(5) {
            let until = world.now + world.random.below(world.plan.pause_ms * 1_000_000 + 1);
            world.schedule(world.now, Happening::Pause(self.number, until));
        } else if world.random.is_chance(1) {
            world.schedule(world.now, Happening::Restart(self.number));
        } else if self.believes(world.now) && world.random.is_chance(20) {
            outcome.releases += 1;
            world.send(Happening::ToStore(Request::Leave(self.session)));
            self.begin_again(world);
        }
    }

    fn begin_again(&mut self, world: &mut World) {
        self.session.1 += 1;
        self.lease = Lease::new(world.rules);
        self.is_granted = false;
        let pause = 1 + world.random.below(1_000_000);
        self.wake_at(world, world.now + pause);
    }
}
