//! The short way for a thread that drops the GIL and takes it again while an heir is on its way.
//!
//! Invariant: as in `scenarios.rs`, no real clock and no real machine.

mod common;

use common::{MS, SECOND, US, simulate};
use unsnarl_policy::sim::Step::{Compute, Mark, Work};
use unsnarl_policy::sim::{Program, Scenario};
use unsnarl_policy::{Arrival, Config, Nanos, Policy, ThreadId, Verdict};

/// A policy with a thread that has overtaken an heir and is expected back after its next drop; when that was.
fn overtaken() -> (Policy, ThreadId, ThreadId, Nanos) {
    let mut policy = Policy::new(Config::default(), 3);
    let [fetcher, heir] = [1, 2].map(|tag| policy.register(tag).expect("there is room"));
    let mut now = SECOND;
    policy.taken(Some(fetcher), now, Arrival::default());
    policy.wait(heir, now, Arrival::default());
    for _ in 0..16 {
        assert!(!policy.dropped_quickly(Some(fetcher)), "nothing allows it");
        assert_eq!(policy.dropped(Some(fetcher), now).map(|grant| grant.heir), Some(heir));
        now += US;
        assert_eq!(policy.taken(Some(fetcher), now, Arrival::default()).revoked, Some(heir));
        now += US;
    }
    policy.allow_quick_returns(fetcher);
    (policy, fetcher, heir, now)
}

#[test]
fn a_full_pair_follows_after_some_quick_ones() {
    let (mut policy, fetcher, heir, now) = overtaken();
    let pairs = (0..1_000)
        .take_while(|_| policy.dropped_quickly(Some(fetcher)) && policy.taken_quickly(Some(fetcher)))
        .count();
    assert!((16..=64).contains(&pairs), "{pairs}");
    assert_eq!(policy.dropped(Some(fetcher), now).map(|grant| grant.heir), Some(heir));
}

#[test]
fn an_heir_that_comes_finds_the_gil_as_it_is() {
    let (mut policy, fetcher, heir, now) = overtaken();
    assert!(policy.dropped_quickly(Some(fetcher)) && policy.taken_quickly(Some(fetcher)));
    assert!(matches!(policy.look(heir, now + US), Verdict::Park { .. }));
    assert!(
        !policy.dropped_quickly(Some(fetcher)),
        "it sleeps again, and must be notified"
    );

    let (mut policy, fetcher, heir, now) = overtaken();
    assert!(policy.dropped_quickly(Some(fetcher)));
    assert_eq!(policy.look(heir, now + US), Verdict::Go);
    assert!(!policy.taken_quickly(Some(fetcher)), "the short way has ended");
}

#[test]
fn no_other_thread_takes_the_short_way() {
    let (mut policy, fetcher, heir, now) = overtaken();
    assert!(!policy.dropped_quickly(Some(heir)) && !policy.dropped_quickly(None));
    assert!(policy.dropped_quickly(Some(fetcher)));
    assert!(!policy.taken_quickly(Some(heir)) && !policy.taken_quickly(None));
    policy.taken(Some(heir), now + US, Arrival::default());
    assert!(!policy.taken_quickly(Some(fetcher)));
}

#[test]
fn time_for_which_nobody_has_a_processor_is_not_charged_to_the_last_holder() {
    let (mut policy, fetcher, heir, now) = overtaken();
    assert!(policy.dropped_quickly(Some(fetcher)));
    // Other programs have the processor for a long time.
    policy.taken(Some(heir), now + 80 * MS, Arrival::default());
    let longest_ns = policy.stats().longest_hold.map_or(0, |longest| longest.hold_ns);
    assert!(longest_ns <= 100 * US, "{longest_ns}");
}

#[test]
fn threads_that_fetch_rows_share_a_processor() {
    let rows = Program::forever([Compute(US), Work(US), Mark]);
    let trace = simulate(&Scenario::new(1, vec![rows; 8]));
    let marks: Vec<u64> = trace.threads[..8].iter().map(|thread| thread.marks).collect();
    let (least, most) = (marks.iter().min().expect("eight"), marks.iter().max().expect("eight"));
    assert!(least * 3 >= *most, "{marks:?}");
    assert!(trace.longest_wait_ns(0..8) <= 400 * MS);
}
