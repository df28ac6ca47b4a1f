//! Scenarios in which a hand-over is put off because it would cost more than it gives.
//!
//! Invariant: as in `scenarios.rs`, no real clock and no real machine.

mod common;

use common::{MS, SECOND, US, beside, echo, hogs, simulate};
use unsnarl_policy::sim::Step::{Acquire, Block, Compute, Mark, Release};
use unsnarl_policy::sim::{Program, Scenario, Scheduler};
use unsnarl_policy::{Arrival, Config, Hint, Nanos, Policy, ThreadId, Verdict};

#[test]
fn a_long_burst_among_threads_that_block_is_not_cut_in_two() {
    // Three requests of 40 us and one of 400 us, in turns, on four connections that keep the GIL busy.
    let [short, long] = [40, 400].map(|us| [Compute(us * US), Mark, Block(30 * US)]);
    let served = Program::forever([short, short, short, long].concat());
    let cut = |programs| {
        let trace = simulate(&Scenario::new(2, programs));
        let marks: u64 = trace.threads[..4].iter().map(|thread| thread.marks).sum();
        let takes: u64 = trace.threads[..4].iter().map(|thread| thread.takes).sum();
        takes.saturating_sub(marks) as f64 / marks as f64
    };
    let alone = cut(vec![served.clone(); 4]);
    assert!(alone <= 0.01, "{alone} of the bursts were cut");
    // With a CPU-bound thread beside them, the short ones do not wait for the long one.
    let beside_hog = cut(beside(vec![served; 4], hogs(1)));
    assert!(beside_hog >= 0.1, "{beside_hog} of the bursts were cut");
}

#[test]
fn the_workers_of_a_large_pool_are_served_together() {
    let submitter = Program::forever([Compute(7 * US), Release(0), Mark]);
    let worker = Program::forever([Acquire(0), Compute(5 * US), Mark]);
    let run_with = |moderation_each_ns| {
        let mut scenario = Scenario::new(2, beside(vec![submitter.clone()], vec![worker.clone(); 32]));
        scenario.permits = vec![0];
        scenario.scheduler = Scheduler::Policy(Config {
            moderation_each_ns,
            ..Config::default()
        });
        simulate(&scenario)
    };
    let (together, singly) = (run_with(Config::default().moderation_each_ns), run_with(0));
    assert!(together.hand_overs * 10 < singly.hand_overs * 9);
    assert!(together.threads[0].marks > singly.threads[0].marks);
    assert!(together.longest_wait_ns(0..33) <= 50 * MS);
}

#[test]
fn a_cpu_thread_that_wakes_a_worker_again_and_again_is_not_displaced_each_time() {
    // The main thread of a pool submits, the worker does a short task each time.
    let submitter = Program::forever([Compute(7 * US), Release(0), Mark]);
    let worker = Program::forever([Acquire(0), Compute(5 * US), Mark]);
    let run_with = |moderation_ns| {
        let mut scenario = Scenario::new(2, vec![submitter.clone(), worker.clone(), echo()]);
        scenario.permits = vec![0];
        scenario.scheduler = Scheduler::Policy(Config {
            moderation_ns,
            moderation_each_ns: moderation_ns / 10,
            ..Config::default()
        });
        simulate(&scenario)
    };
    let (moderated, immediate) = (run_with(Config::default().moderation_ns), run_with(0));
    assert!(moderated.hand_overs * 4 < immediate.hand_overs * 3);
    assert!(
        moderated.threads[0].marks * 20 > immediate.threads[0].marks * 21,
        "more is submitted"
    );
    assert!(moderated.threads[1].longest_wait_ns <= 5 * MS);
    // An I/O thread beside them waits for the worker, which has more to do at a time, but not for the CPU-bound thread.
    assert!(moderated.threads[2].marks * 2 >= immediate.threads[2].marks);
    assert!(moderated.threads[2].longest_wait_ns <= MS);
}

/// A thread takes the GIL while nobody waits, so it is not known, and `waiter` arrives; returns how long that one parks.
fn arrives_at_a_stranger(policy: &mut Policy, waiter: ThreadId, now: Nanos) -> Nanos {
    policy.taken_uncontended(None);
    match policy.wait(waiter, now, Arrival::default()) {
        Verdict::Park { until, .. } => until - now,
        verdict => panic!("{verdict:?}"),
    }
}

/// The stranger drops the GIL, and the waiter takes it and drops it.
fn drops_for(policy: &mut Policy, waiter: ThreadId, stranger: ThreadId, now: Nanos) {
    assert_eq!(
        policy.dropped(Some(stranger), now).map(|grant| grant.heir),
        Some(waiter)
    );
    policy.taken(Some(waiter), now + 5 * US, Arrival::default());
    policy.dropped_uncontended(Some(waiter));
}

#[test]
fn a_holder_that_is_not_known_is_judged_by_those_before_it() {
    let mut policy = Policy::new(Config::default(), 2);
    let [stranger, waiter] = [1, 2].map(|tag| policy.register(tag).expect("there is room"));
    let mut now = SECOND;
    assert_eq!(
        arrives_at_a_stranger(&mut policy, waiter, now),
        50 * US,
        "nothing is known"
    );
    drops_for(&mut policy, waiter, stranger, now + 20 * US);
    for _ in 0..8 {
        now += MS;
        arrives_at_a_stranger(&mut policy, waiter, now);
        drops_for(&mut policy, waiter, stranger, now + 20 * US);
    }
    now += MS;
    let late = 4_500 * US;
    assert_eq!(
        arrives_at_a_stranger(&mut policy, waiter, now),
        late,
        "they have dropped the GIL by themselves, each before the alarm, which may be late now"
    );
    assert!(
        matches!(policy.look(waiter, now + MS - US), Verdict::Park { until, .. } if until > now + late),
        "a millisecond is not over"
    );
    assert_eq!(policy.look(waiter, now + MS), Verdict::Ask);
    drops_for(&mut policy, waiter, stranger, now + MS);
    now += 10 * MS;
    assert_eq!(
        arrives_at_a_stranger(&mut policy, waiter, now),
        50 * US,
        "the last one was CPU-bound, and its alarm was needed: it is exact again"
    );
}

#[test]
fn a_late_alarm_is_no_later_for_a_longer_slice() {
    let mut policy = Policy::new(
        Config {
            slice_ns: 1000 * SECOND,
            ..Config::default()
        },
        2,
    );
    let [stranger, waiter] = [1, 2].map(|tag| policy.register(tag).expect("there is room"));
    let mut now = SECOND;
    for _ in 0..9 {
        now += MS;
        arrives_at_a_stranger(&mut policy, waiter, now);
        drops_for(&mut policy, waiter, stranger, now + 20 * US);
    }
    assert_eq!(arrives_at_a_stranger(&mut policy, waiter, now + MS), 4_500 * US);
}

#[test]
fn an_alarm_at_which_there_is_nothing_to_do_was_in_vain() {
    let mut policy = Policy::new(Config::default(), 2);
    let [stranger, waiter] = [1, 2].map(|tag| policy.register(tag).expect("there is room"));
    let mut now = SECOND;
    for _ in 0..9 {
        now += MS;
        arrives_at_a_stranger(&mut policy, waiter, now);
        // The stranger drops the GIL and takes it again: its time begins anew.
        policy.dropped(None, now + 40 * US);
        policy.taken(None, now + 45 * US, Arrival::default());
        let verdict = policy.look(waiter, now + 51 * US);
        assert!(matches!(verdict, Verdict::Park { .. }), "nothing is due: {verdict:?}");
        drops_for(&mut policy, waiter, stranger, now + 60 * US);
    }
    assert_eq!(arrives_at_a_stranger(&mut policy, waiter, now + MS), 4_500 * US);
}

/// When a waiter re-checks, after its arrival in a process whose early alarms have been in vain and in which a CPU-bound
/// thread waits.
fn alarm_beside_a_cpu_bound_waiter(is_alone: bool) -> Nanos {
    let mut policy = Policy::new(Config::default(), 3);
    policy.set_alone(is_alone);
    let [stranger, waiter, batch] = [1, 2, 3].map(|tag| policy.register(tag).expect("there is room"));
    policy.set_hint(batch, Hint::Batch);
    let mut now = SECOND;
    for _ in 0..9 {
        now += MS;
        arrives_at_a_stranger(&mut policy, waiter, now);
        drops_for(&mut policy, waiter, stranger, now + 20 * US);
    }
    now += MS;
    policy.taken_uncontended(None);
    assert!(matches!(
        policy.wait(batch, now, Arrival::default()),
        Verdict::Park { .. }
    ));
    match policy.wait(waiter, now + US, Arrival::default()) {
        Verdict::Park { until, .. } => until - now - US,
        other => panic!("it parks: {other:?}"),
    }
}

#[test]
fn an_alarm_is_exact_while_a_cpu_bound_thread_waits() {
    let until_ns = alarm_beside_a_cpu_bound_waiter(false);
    assert!(until_ns <= MS, "{until_ns}");
}

#[test]
fn on_a_single_processor_an_alarm_may_be_late_also_then() {
    let until_ns = alarm_beside_a_cpu_bound_waiter(true);
    assert!(until_ns >= 4_400 * US, "{until_ns}");
}

/// How long an awake thread waits for the heir after a drop, in a process whose early alarms have been in vain.
fn waits_for_the_heir_ns(is_alone: bool, hint: Hint) -> Nanos {
    let mut policy = Policy::new(Config::default(), 4);
    policy.set_alone(is_alone);
    let [holder, earlier, heir, awake] = [1, 2, 3, 4].map(|tag| policy.register(tag).expect("there is room"));
    let mut now = SECOND;
    for _ in 0..9 {
        now += MS;
        arrives_at_a_stranger(&mut policy, earlier, now);
        drops_for(&mut policy, earlier, holder, now + 20 * US);
    }
    for thread in [heir, awake] {
        policy.set_hint(thread, hint);
    }
    now += MS;
    policy.taken_uncontended(Some(holder));
    policy.wait(heir, now, Arrival::default());
    policy.wait(awake, now + US, Arrival::default());
    let dropped_at = now + 10 * US;
    let grant = policy.dropped(Some(holder), dropped_at);
    assert_eq!(grant.map(|grant| grant.heir), Some(heir));
    match policy.look(awake, dropped_at + 10 * US) {
        Verdict::Park { until, .. } => until - dropped_at,
        other => panic!("it parks: {other:?}"),
    }
}

#[test]
fn an_awake_thread_waits_longer_for_an_heir_that_is_next_to_get_the_only_processor() {
    assert_eq!(waits_for_the_heir_ns(false, Hint::None), 200 * US);
    assert_eq!(waits_for_the_heir_ns(true, Hint::None), 4_500 * US);
    assert_eq!(
        waits_for_the_heir_ns(true, Hint::Batch),
        200 * US,
        "the kernel may run other threads before a CPU-bound one"
    );
}
