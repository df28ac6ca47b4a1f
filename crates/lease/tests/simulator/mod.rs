//! One store, some holders and a network between them, in virtual time.
//!
//! The store is what unsnarl-cluster makes of any of its stores: sessions with a time to live by the store's clock, one
//! lock with a queue in order of arrival, a fence that grows with every grant. Messages are delayed, lost and
//! repeated; holders pause and restart; every clock has a rate and an offset of its own. Never asks a real clock:
//! a run is a function of its `Plan`.
//!
//! Invariant that `Outcome` reports on: no two holders believe at one time, and every grant has a higher fence.

mod holder;
mod random;
mod store;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use unsnarl_lease::Rules;

use holder::Holder;
use random::Random;
use store::Store;

/// Nanoseconds of true time.
pub(crate) type Time = u64;

/// All that a run depends on.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) holders: usize,
    pub(crate) ttl_ms: u64,
    /// The slowest message takes this long.
    pub(crate) delay_ms: u64,
    pub(crate) lost_percent: u64,
    pub(crate) repeated_percent: u64,
    /// The longest pause of a holder.
    pub(crate) pause_ms: u64,
    /// How far each clock's rate is from true time, at most; half of what the rules allow for two.
    pub(crate) drift_ppm: u64,
    /// What a holder counts its deadline from; the tests of the simulator itself use the wrong one.
    pub(crate) counts_from: CountsFrom,
}

/// The moment from which a holder believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountsFrom {
    Sending,
    Receipt,
}

/// What a run showed.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Times at which more than one holder believed.
    pub(crate) overlaps: Vec<Time>,
    /// Fences that did not grow.
    pub(crate) stale_fences: Vec<u64>,
    pub(crate) grants: u64,
    pub(crate) losses: u64,
    pub(crate) releases: u64,
}

/// What happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Happening {
    ToStore(Request),
    ToHolder(usize, Answer),
    /// A holder looks at its clock.
    Tick(usize),
    /// A holder stops, and goes on at that time.
    Pause(usize, Time),
    Restart(usize),
}

/// A session: the holder's number and how often it has begun.
pub(crate) type Session = (usize, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Request {
    /// With the time at which it was sent, by the holder's clock: the answer carries it back.
    Open(Session, Time),
    Renew(Session, Time),
    Enqueue(Session),
    Leave(Session),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
    Alive(Session, Time),
    Dead(Session),
    Granted(Session, u64),
}

/// The world of one run.
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) plan: Plan,
    pub(crate) random: Random,
    pub(crate) rules: Rules,
    events: BinaryHeap<Reverse<(Time, u64, Happening)>>,
    count: u64,
}

impl World {
    fn new(plan: Plan) -> Self {
        let rules = Rules::new(plan.ttl_ms * 1_000_000).expect("the plan's ttl is allowed");
        Self {
            now: 0,
            random: Random::new(plan.seed),
            rules,
            plan,
            events: BinaryHeap::new(),
            count: 0,
        }
    }

    pub(crate) fn schedule(&mut self, at: Time, happening: Happening) {
        self.count += 1;
        self.events.push(Reverse((at.max(self.now), self.count, happening)));
    }

    /// Sends a message: not at all, once or twice, each time after a delay of its own.
    pub(crate) fn send(&mut self, happening: Happening) {
        if self.random.is_chance(self.plan.lost_percent) {
            return;
        }
        let copies = 1 + u64::from(self.random.is_chance(self.plan.repeated_percent));
        for _ in 0..copies {
            let delay = self.delay();
            self.schedule(self.now + delay, happening);
        }
    }

    /// Mostly a twentieth of the slowest, as networks are.
    fn delay(&mut self) -> Time {
        let slowest = self.plan.delay_ms * 1_000_000;
        let limit = if self.random.is_chance(10) {
            slowest
        } else {
            slowest / 20
        };
        1 + self.random.below(limit + 1)
    }
}

/// Runs a plan for `duration_ms` of true time.
pub(crate) fn run(plan: Plan, duration_ms: u64) -> Outcome {
    let mut world = World::new(plan);
    let mut store = Store::new(&mut world);
    let mut holders: Vec<Holder> = (0..world.plan.holders)
        .map(|number| Holder::new(&mut world, number))
        .collect();
    let mut outcome = Outcome::default();
    while let Some(Reverse((at, _, happening))) = world.events.pop() {
        if at > duration_ms * 1_000_000 {
            break;
        }
        world.now = at;
        match happening {
            Happening::ToStore(request) => store.handle(&mut world, request, &mut outcome),
            Happening::ToHolder(number, answer) => holders[number].hear(&mut world, answer, &mut outcome),
            Happening::Tick(number) => holders[number].tick(&mut world, &mut outcome),
            Happening::Pause(number, until) => holders[number].pause(&mut world, until),
            Happening::Restart(number) => holders[number].restart(&mut world),
        }
        if holders.iter().filter(|holder| holder.believes(world.now)).count() > 1 {
            outcome.overlaps.push(world.now);
        }
    }
    outcome
}
