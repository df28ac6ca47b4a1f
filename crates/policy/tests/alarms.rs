//! Which waiting thread keeps the time, and what its alarm costs where the GIL changes hands without it.
//!
//! Invariant: as in `scenarios.rs`, no real clock and no real machine.

mod common;

use common::{MS, SECOND, US};
use unsnarl_policy::{Arrival, Config, Nanos, Policy, ThreadId, Verdict};

/// How long a thread parks.
fn parks_for(verdict: Verdict, now: Nanos) -> Nanos {
    match verdict {
        Verdict::Park { until, .. } => until - now,
        verdict => panic!("{verdict:?}"),
    }
}

/// A barrier of some threads: the last one to arrive wakes the others with the GIL held, and they take it in turns.
struct Barrier {
    policy: Policy,
    threads: Vec<ThreadId>,
    now: Nanos,
    rounds: usize,
    /// A thread that is woken to keep the time looks only when the thread that woke it has dropped the GIL.
    looks_at_free_gil: bool,
}

impl Barrier {
    fn new(parties: usize) -> Self {
        let mut policy = Policy::new(Config::default(), parties);
        let threads = (0..parties as u64).map(|tag| policy.register(tag).expect("there is room"));
        let threads = threads.collect();
        Self {
            policy,
            threads,
            now: SECOND,
            rounds: 0,
            looks_at_free_gil: false,
        }
    }

    /// Runs a round; returns how many threads were woken to keep the time.
    fn round(&mut self) -> usize {
        let parties = self.threads.len();
        self.threads.rotate_left(self.rounds % parties);
        self.rounds += 1;
        let arrival = Arrival {
            was_on_lock: true,
            ..Arrival::default()
        };
        for &thread in &self.threads[1..] {
            self.now += 2 * US;
            parks_for(self.policy.wait(thread, self.now, arrival), self.now);
        }
        let (mut appointed, mut on_its_way) = (0, None);
        for pair in self.threads.windows(2) {
            self.now += 15 * US;
            let grant = self.policy.dropped(Some(pair[0]), self.now);
            assert_eq!(grant.map(|grant| grant.heir), Some(pair[1]));
            if let Some(thread) = on_its_way.take().filter(|&thread| thread != pair[1]) {
                parks_for(self.policy.look(thread, self.now), self.now);
            }
            self.now += 5 * US;
            if let Some(thread) = self.policy.taken(Some(pair[1]), self.now, Arrival::default()).appoint {
                appointed += 1;
                if self.looks_at_free_gil {
                    on_its_way = Some(thread);
                } else {
                    parks_for(self.policy.look(thread, self.now), self.now);
                }
            }
        }
        appointed
    }
}

#[test]
fn no_thread_is_woken_to_keep_the_time_of_a_round_in_which_the_gil_goes_around() {
    let mut barrier = Barrier::new(6);
    let learning: usize = (0..12).map(|_| barrier.round()).sum();
    assert!(
        learning > 0,
        "the first alarms are exact, and the first timekeeper is served first"
    );
    let known: usize = (0..12).map(|_| barrier.round()).sum();
    assert_eq!(known, 0);
}

#[test]
fn a_thread_that_looks_while_the_heir_is_on_its_way_is_not_woken_again_by_each_heir() {
    // More parties than the last of which relieves the timekeeper, and on one processor: who is woken comes when the
    // thread that woke it has left the processor, and dropped the GIL before.
    let mut barrier = Barrier::new(12);
    barrier.looks_at_free_gil = true;
    let _learning: usize = (0..24).map(|_| barrier.round()).sum();
    let appointed: usize = (0..12).map(|_| barrier.round()).sum();
    assert!((1..=24).contains(&appointed), "{appointed}");
}

#[test]
fn an_alarm_that_would_have_come_a_little_before_its_end_was_not_needed() {
    let late = |hold_ns| {
        let mut policy = Policy::new(Config::default(), 2);
        let [stranger, waiter] = [1, 2].map(|tag| policy.register(tag).expect("there is room"));
        let mut now = SECOND;
        for _ in 0..9 {
            now += MS;
            policy.taken_uncontended(None);
            let parked_ns = parks_for(policy.wait(waiter, now, Arrival::default()), now);
            assert!(parked_ns <= 4_500 * US, "{parked_ns}");
            policy.dropped(Some(stranger), now + hold_ns);
            policy.taken(Some(waiter), now + hold_ns, Arrival::default());
            policy.dropped_uncontended(Some(waiter));
        }
        policy.taken_uncontended(None);
        parks_for(policy.wait(waiter, now + MS, Arrival::default()), now + MS)
    };
    // The alarms are due after 50 us, and later after a millisecond.
    assert_eq!(late(20 * US), 4_500 * US);
    assert_eq!(
        late(120 * US),
        4_500 * US,
        "to ask would have gained less than a hand-over costs"
    );
    assert!(late(200 * US) <= MS);
}
