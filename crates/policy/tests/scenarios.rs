//! Scenarios in virtual time, each with the bound that the policy promises there.
//!
//! Invariant: no real clock and no real machine is involved; a failure repeats exactly. Sizes are
//! smaller in debug builds.

use unsnarl_policy::sim::{Program, Scenario, Scheduler, Step, Trace, growth_exponent, run};
use unsnarl_policy::{Class, Config, Hint, Nanos};

use Step::{Acquire, Block, Call, Compute, Fork, Install, Mark, Release, SetInterval, Start, Uninstall, Work};

mod common;
use common::{MS, SECOND, US, beside, echo, hog, hogs, simulate};

/// 50 ms for every second thread that can run.
fn starvation_bound(trace: &Trace) -> Nanos {
    50 * MS * trace.most_contenders.div_ceil(2)
}

// ---- I/O and CPU -----------------------------------------------------------

#[test]
fn an_echo_thread_keeps_most_of_its_rate_beside_any_number_of_cpu_threads() {
    for (processors, counts) in [(1, &[1][..]), (2, &[1, 2, 4, 8]), (64, &[1, 2, 4, 8])] {
        let alone = simulate(&Scenario::new(processors, vec![echo()])).threads[0].marks;
        for &count in counts {
            let scenario = Scenario::new(processors, beside(vec![echo()], hogs(count)));
            let trace = simulate(&scenario);
            let stock = run(&scenario.stock());
            assert!(
                trace.threads[0].marks * 2 >= alone,
                "{processors} processors, {count} hogs"
            );
            assert!(trace.threads[0].marks >= 20 * stock.threads[0].marks);
            assert!(trace.longest_wait_ns([0]) <= 5 * MS);
            assert!(trace.fairness(1..=count) >= 0.95);
        }
    }
}

/// With several CPU threads on one processor the kernel decides: a second CPU thread that has been
/// woken keeps the echo thread from preempting the first, so each request costs a slice of the
/// kernel's. Measured machines behave the same.
#[test]
fn an_echo_thread_on_one_processor_is_served_beside_several_cpu_threads() {
    for count in [2, 4, 8] {
        let scenario = Scenario::new(1, beside(vec![echo()], hogs(count)));
        let trace = simulate(&scenario);
        let stock = run(&scenario.stock());
        let (served, before) = (trace.threads[0].marks, stock.threads[0].marks);
        assert!(
            served >= 200 && served >= 2 * before,
            "{count} hogs: {served}, stock {before}"
        );
        assert!(trace.longest_wait_ns([0]) <= starvation_bound(&trace));
        assert!(trace.fairness(1..=count) >= 0.95);
    }
}

#[test]
fn rare_io_costs_cpu_threads_at_most_a_twentieth() {
    let poller = Program::forever([Compute(5 * US), Mark, Block(MS)]);
    let scenario = Scenario::new(2, beside(vec![poller], hogs(4)));
    let (trace, stock) = (simulate(&scenario), run(&scenario.stock()));
    let work = |trace: &Trace| trace.threads[1..].iter().map(|hog| hog.work_ns).sum::<Nanos>();
    assert!(work(&trace) * 100 >= work(&stock) * 95);
    assert!(trace.threads[0].marks >= 900);
}

#[test]
fn cpu_threads_alone_share_fairly_and_lose_no_time() {
    for processors in [1, 2, 64] {
        for count in [1, 2, 8, 50] {
            let mut scenario = Scenario::new(processors, hogs(count));
            scenario.until = 80 * count as Nanos * MS;
            let (trace, stock) = (simulate(&scenario), run(&scenario.stock()));
            assert!(
                trace.fairness(0..count) >= 0.95,
                "{processors} processors, {count} threads"
            );
            assert!(trace.utilisation() >= 0.995 * stock.utilisation());
            // On one processor the timekeeper has to get the processor first, from a thread
            // whose slice for the kernel is as long.
            let slices = if processors == 1 { 2 } else { 1 };
            assert!(trace.longest_wait_ns(0..count) <= slices * (count as Nanos) * 11 * MS / 2);
        }
    }
}

#[test]
fn a_changed_slice_is_kept() {
    let work_of = |interval_ns| {
        let changer = Program::once([SetInterval(interval_ns), Compute(2 * SECOND)]);
        simulate(&Scenario::new(2, beside(vec![changer], hogs(3)))).hand_overs
    };
    let (fine, coarse) = (work_of(MS), work_of(20 * MS));
    assert!((900..=1_100).contains(&fine), "{fine} hand-overs at 1 ms");
    assert!((45..=75).contains(&coarse), "{coarse} hand-overs at 20 ms");
}

// ---- the squares -----------------------------------------------------------

/// Starts threads that go on computing, one after the other.
fn start_square(count: usize) -> Scenario {
    let main = (1..=count).flat_map(|i| [Start(i), Acquire(i)]).collect::<Vec<_>>();
    let started = |i| Program::forever([Compute(20 * US), Release(i), Compute(100 * SECOND)]).unstarted();
    square(vec![0; count + 1], main, (1..=count).map(started).collect())
}

/// Threads that all wait for one lock, which goes from hand to hand.
fn mutex_square(count: usize) -> Scenario {
    let mut main = (1..=count).map(Start).collect::<Vec<_>>();
    main.extend([Block(500 * MS), Release(0)]);
    main.extend((1..=count).map(Acquire));
    let waiter = |i| {
        let steps = [Acquire(0), Compute(20 * US), Release(0), Compute(200 * US), Release(i)];
        Program::once(steps).unstarted()
    };
    square(vec![0; count + 1], main, (1..=count).map(waiter).collect())
}

/// Threads that are woken one after the other, and each answers.
fn wakeup_square(count: usize) -> Scenario {
    let mut main = (1..=count).map(Start).collect::<Vec<_>>();
    main.push(Block(500 * MS));
    main.extend((1..=count).flat_map(|_| [Release(0), Acquire(1)]));
    let woken = |_| Program::once([Acquire(0), Release(1), Compute(100 * SECOND)]).unstarted();
    square(vec![0; count + 1], main, (1..=count).map(woken).collect())
}

fn square(permits: Vec<u32>, main: Vec<Step>, others: Vec<Program>) -> Scenario {
    let mut scenario = Scenario::new(2, beside(vec![Program::once(main)], others));
    scenario.permits = permits;
    scenario.ends_with = Some(0);
    scenario.until = 100_000 * SECOND;
    scenario
}

fn exponent(of: fn(usize) -> Scenario, processors: usize) -> f64 {
    let sizes: &[usize] = if cfg!(debug_assertions) {
        &[100, 300, 900]
    } else {
        &[100, 1_000, 10_000]
    };
    let cost = |&count: &usize| {
        let mut scenario = of(count);
        scenario.machine.processors = processors;
        let trace = simulate(&scenario);
        assert!(
            trace.threads[0].has_ended,
            "{count} threads, {processors} processors: {} takes",
            trace.takes
        );
        (count as f64, trace.hand_overs as f64)
    };
    growth_exponent(&sizes.iter().map(cost).collect::<Vec<_>>())
}

#[test]
fn the_square_programs_grow_linearly() {
    for (name, program) in [
        ("start", start_square as fn(usize) -> Scenario),
        ("mutex", mutex_square),
        ("wakeup", wakeup_square),
    ] {
        for processors in [1, 2, 64] {
            let exponent = exponent(program, processors);
            assert!(exponent <= 1.15, "{name}, {processors} processors: n^{exponent:.2}");
        }
    }
}

// ---- starvation and inversion ----------------------------------------------

/// Fifty threads with short sleeps, and 25 pairs that wake each other up.
fn wakeup_abusers(processors: usize) -> Scenario {
    let sleeper = |i: Nanos| Program::forever([Compute((10 + i) * US), Block((20 + i) * US)]);
    let mut programs = (0..50).map(sleeper).collect::<Vec<_>>();
    for pair in 0..25 {
        programs.push(Program::forever([
            Compute(5 * US),
            Release(2 * pair),
            Acquire(2 * pair + 1),
        ]));
        programs.push(Program::forever([
            Acquire(2 * pair),
            Compute(5 * US),
            Release(2 * pair + 1),
        ]));
    }
    programs.push(hog());
    let mut scenario = Scenario::new(processors, programs);
    scenario.permits = vec![0; 50];
    scenario.until = 4 * SECOND;
    scenario
}

#[test]
fn nobody_starves_beside_a_hundred_wakeup_abusers() {
    for processors in [2, 8, 64] {
        let trace = simulate(&wakeup_abusers(processors));
        let longest_ns = trace.longest_wait_ns(0..101);
        assert!(
            longest_ns <= starvation_bound(&trace),
            "{processors} processors: {longest_ns} ns"
        );
        assert!(
            trace.threads[100].work_ns >= trace.ended_at / 20,
            "{processors} processors: the CPU thread's share"
        );
    }
}

#[test]
fn a_class_in_between_is_starved_neither_by_better_ones_nor_by_the_least_share() {
    // Two threads that wake each other up are always in a better class, and CPU-bound threads take
    // their share; the thread in between has only its age.
    let handing = |compute_ns| Program::forever([Acquire(0), Compute(compute_ns), Release(0), Compute(50 * US)]);
    let between = Program::forever([Step::Hint(Hint::Interactive), Compute(50 * US)]);
    let programs = beside(vec![handing(120 * US), between, handing(US)], hogs(1));
    let mut scenario = Scenario::new(2, programs);
    scenario.permits = vec![1];
    scenario.machine.has_kernel_hints = false;
    let trace = simulate(&scenario);
    let longest_ns = trace.longest_wait_ns(0..4);
    assert!(longest_ns <= starvation_bound(&trace), "{longest_ns} ns");
}

#[test]
fn a_lock_held_by_a_cpu_thread_reaches_the_io_thread_that_wants_it() {
    let io = Program::forever([Block(MS), Acquire(0), Compute(10 * US), Release(0), Mark]);
    let owner = Program::forever([Acquire(0), Compute(2 * MS), Release(0), Compute(3 * MS)]);
    let mut scenario = Scenario::new(2, beside(vec![io, owner], hogs(6)));
    scenario.permits = vec![1];
    let trace = simulate(&scenario);
    // The owner's turn comes at least once a round of the seven CPU threads.
    assert!(trace.threads[0].marks >= 20, "{} times", trace.threads[0].marks);
    assert!(trace.longest_wait_ns([0]) <= 5 * MS);
}

#[test]
fn loops_of_short_sleeps_starve_nobody() {
    for sleep_ns in [1, 60 * US, 85 * US, 500 * US] {
        let poller = Program::forever([Compute(2 * US), Block(sleep_ns)]);
        let scenario = Scenario::new(2, beside(vec![poller; 4], hogs(2)));
        let trace = simulate(&scenario);
        let work_ns: Nanos = trace.threads[4..].iter().map(|hog| hog.work_ns).sum();
        let held_ns = trace.utilisation() * trace.ended_at as f64;
        // No kernel can sleep for a nanosecond; such a thread leaves the processor to
        // no CPU thread either, and a share that is not taken up is not saved.
        assert!(
            sleep_ns < 60 * US || work_ns as f64 >= held_ns / 8.0,
            "sleeps of {sleep_ns} ns leave {work_ns} of {held_ns} ns"
        );
        let longest_ns = trace.longest_wait_ns(0..6);
        assert!(
            longest_ns <= starvation_bound(&trace),
            "sleeps of {sleep_ns} ns: {longest_ns} ns"
        );
    }
}

#[test]
fn long_c_work_without_the_gil_runs_beside_the_others() {
    let worker = Program::forever([Compute(10 * US), Work(2 * MS), Mark]);
    let trace = simulate(&Scenario::new(64, beside(vec![worker; 8], hogs(4))));
    for thread in 0..8 {
        assert!(
            trace.threads[thread].marks >= 400,
            "{} rounds",
            trace.threads[thread].marks
        );
    }
    assert!(trace.fairness(8..12) >= 0.95);
}

#[test]
fn a_long_c_call_is_named_by_the_statistics() {
    let caller = Program::once([Compute(MS), Call(300 * MS), Compute(MS)]);
    let trace = simulate(&Scenario::new(2, beside(vec![echo(), caller], hogs(1))));
    let longest = trace.stats.longest_hold.expect("a hold was recorded");
    assert_eq!(longest.tag, 1, "the thread's own number");
    assert!(longest.hold_ns >= 299 * MS);
    assert!(trace.longest_wait_ns([0]) >= 299 * MS, "nobody can help that");
}

// ---- who watches the clock ---------------------------------------------------

#[test]
fn a_thread_that_blocks_when_it_was_asked_leaves_nobody_without_a_timer() {
    // The request comes during the call, and is answered by the drop before the sleep: this thread
    // does not return to become the timekeeper.
    let leaver = Program::forever([Compute(6 * MS), Call(3 * MS), Block(200 * MS)]);
    for processors in [2, 64] {
        let trace = simulate(&Scenario::new(processors, beside(vec![leaver.clone(); 2], hogs(4))));
        let longest_ns = trace.longest_wait_ns(0..6);
        assert!(longest_ns <= 6 * 9 * MS, "{processors} processors: {longest_ns} ns");
    }
}

#[test]
fn a_gil_left_lingering_for_nobody_is_found_within_a_millisecond() {
    // Comes straight back a dozen times, and then does not.
    let mut steps = [Compute(5 * US), Work(5 * US)].repeat(12);
    steps.push(Block(7 * MS));
    for processors in [1, 2, 64] {
        let programs = beside(vec![Program::forever(steps.clone())], hogs(4));
        let trace = simulate(&Scenario::new(processors, programs));
        let longest_ns = trace.longest_free_ns;
        assert!(longest_ns <= 1_300 * US, "{processors} processors: {longest_ns} ns");
    }
}

// ---- threads that end, fork, uninstall -------------------------------------

#[test]
fn threads_that_end_with_a_request_pending_lose_no_wakeup() {
    let brief = |i: Nanos| Program::once([Compute(20 * US + 7 * i), Call(100 * US), Block(i), Compute(30 * US)]);
    for processors in [1, 2, 64] {
        let trace = simulate(&Scenario::new(processors, (0..400).map(brief).collect()));
        assert!(trace.threads.iter().all(|thread| thread.has_ended));
        assert!(trace.longest_free_ns <= 200 * US, "{} ns", trace.longest_free_ns);
    }
}

#[test]
fn waiters_that_end_at_finalisation_do_not_hold_up_the_main_thread() {
    let main = Program::once([
        Compute(50 * MS),
        Step::Finalize,
        Compute(20 * MS),
        Block(MS),
        Compute(20 * MS),
    ]);
    for processors in [1, 2, 64] {
        let mut scenario = Scenario::new(processors, beside(vec![main.clone(), echo()], hogs(20)));
        scenario.ends_with = Some(0);
        scenario.until = 5 * SECOND;
        let trace = run(&scenario);
        assert!(trace.threads[0].has_ended, "{processors} processors");
        assert_eq!(trace.violations, Vec::<String>::new());
    }
}

#[test]
fn the_child_of_a_fork_starts_afresh() {
    let after = [
        Fork,
        Start(3),
        Start(4),
        Compute(100 * MS),
        Mark,
        Block(MS),
        Compute(100 * MS),
        Mark,
    ];
    let main = Program::once(beside_steps(&[Compute(30 * MS)], &after));
    let child = || Program::forever([Compute(30 * US), Mark, Block(50 * US)]).unstarted();
    for processors in [1, 2] {
        let programs = vec![main.clone(), hog(), echo(), child(), hog().unstarted()];
        let trace = simulate(&Scenario::new(processors, programs));
        assert_eq!(
            trace.threads[0].marks, 2,
            "{processors} processors: {:?}",
            trace.threads
        );
        assert!(trace.threads[3].marks >= 1_000);
        assert!(trace.threads[4].work_ns >= 100 * MS);
    }
}

fn beside_steps(first: &[Step], then: &[Step]) -> Vec<Step> {
    [first, then].concat()
}

#[test]
fn uninstalling_and_installing_under_load_loses_nobody() {
    let toggler = Program::forever([Compute(2 * MS), Uninstall, Compute(3 * MS), Block(MS), Install, Mark]);
    for processors in [1, 2, 64] {
        let mut scenario = Scenario::new(processors, beside(vec![toggler.clone(), echo()], hogs(3)));
        scenario.until = 2 * SECOND;
        // Timers are as late as the kernel's slack: without it CPython's own waits
        // of 5 ms and the slices fall into step, which no machine keeps up.
        scenario.delays.timer_ns = 50 * US;
        let trace = simulate(&scenario);
        assert!(
            trace.threads[0].marks >= 20,
            "{processors} processors: {:?}",
            trace.threads
        );
        assert!(trace.fairness(2..5) >= 0.9);
        // For a part of the time it is CPython's own wait that decides.
        let stock_ns = run(&scenario.stock()).longest_wait_ns(0..5);
        let longest_ns = trace.longest_wait_ns(0..5);
        assert!(
            longest_ns <= (100 * MS).max(2 * stock_ns),
            "{processors} processors: {longest_ns} ns, stock {stock_ns} ns"
        );
    }
}

#[test]
fn threads_beyond_the_table_wait_by_polling() {
    let mut scenario = Scenario::new(2, beside(hogs(2), vec![echo(); 4]));
    scenario.capacity = 3;
    let trace = simulate(&scenario);
    let takes = trace.threads.iter().map(|thread| thread.takes).collect::<Vec<_>>();
    assert!(takes.iter().all(|&takes| takes > 5), "{takes:?}");
}

#[test]
fn cpu_threads_keep_the_share_that_was_set_beside_saturating_io_threads() {
    for permille in [0, 100, 200, 400, 600, 900] {
        let mut scenario = Scenario::new(2, beside(vec![echo(); 16], hogs(2)));
        scenario.scheduler = Scheduler::Policy(Config {
            batch_share_permille: permille,
            ..Config::default()
        });
        let trace = simulate(&scenario);
        let hogs_ns: Nanos = trace.threads[16..].iter().map(|hog| hog.work_ns).sum();
        let share = hogs_ns as f64 / (trace.utilisation() * trace.ended_at as f64);
        let wanted = f64::from(permille) / 1_000.0;
        assert!(
            (0.85 * wanted..wanted + 0.12).contains(&share),
            "{permille} thousandths: {share:.3}"
        );
    }
}

// ---- size ------------------------------------------------------------------

#[test]
fn ten_thousand_threads_on_64_processors() {
    let count: usize = if cfg!(debug_assertions) { 500 } else { 10_000 };
    let sleeper = |i: usize| Program::forever([Compute(20 * US), Block((i as Nanos % 977 + 1) * 100 * US)]);
    let mut scenario = Scenario::new(64, beside((0..count).map(sleeper).collect(), hogs(4)));
    scenario.until = 3 * SECOND;
    let trace = simulate(&scenario);
    assert!(trace.longest_wait_ns(0..count + 4) <= starvation_bound(&trace));
    // The share is one of the time that the GIL is held: while it goes from one
    // sleeping thread to the next, no thread has it.
    let hogs_ns: Nanos = trace.threads[count..].iter().map(|hog| hog.work_ns).sum();
    let held_ns = trace.utilisation() * trace.ended_at as f64;
    assert!(
        hogs_ns as f64 >= 0.9 * held_ns * f64::from(Config::default().batch_share_permille) / 1_000.0,
        "{hogs_ns} of {held_ns} ns"
    );
    assert!(trace.stats.classes[Class::Io.index()].waits > count as u64);
}
