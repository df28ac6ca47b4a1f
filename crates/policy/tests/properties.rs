//! Properties of every program: random threads on random machines.
//!
//! Invariants of every run: the policy's counters agree, no thread waits beyond the bound, every
//! started thread makes progress, equal threads get equal shares, and no insurance timer was
//! needed. The seed is fixed, so each run of the tests tries the same programs;
//! `UNSNARL_PROGRAMS` is their number.

use proptest::prelude::*;
use proptest::test_runner::{Config as Runner, RngSeed};
use unsnarl_policy::sim::{Machine, Program, Scenario, Step, Trace, run};
use unsnarl_policy::{Hint, MICROSECOND, MILLISECOND, Nanos};

const US: Nanos = MICROSECOND;
const MS: Nanos = MILLISECOND;
const LOCKS: usize = 3;
/// Longest call that no policy can interrupt.
const LONGEST_CALL_NS: Nanos = 2 * MS;

fn runner() -> Runner {
    let programs = std::env::var("UNSNARL_PROGRAMS").ok();
    Runner {
        cases: programs.and_then(|count| count.parse().ok()).unwrap_or(24),
        rng_seed: RngSeed::Fixed(0x6769_6c21),
        failure_persistence: None,
        max_shrink_time: 30_000,
        ..Runner::default()
    }
}

/// A time between these two, short ones as likely as long ones.
fn span(from: Nanos, to: Nanos) -> impl Strategy<Value = Nanos> {
    let octaves = (to / from).ilog2();
    (0..=octaves, 1.0..2.0f64).prop_map(move |(octave, part)| ((from << octave) as f64 * part).min(to as f64) as Nanos)
}

/// One action of a thread: a single step, or a critical section.
fn action() -> impl Strategy<Value = Vec<Step>> {
    let hints = prop_oneof![Just(Hint::None), Just(Hint::Interactive), Just(Hint::Batch)];
    prop_oneof![
        4 => span(US, 20 * MS).prop_map(|ns| vec![Step::Compute(ns)]),
        1 => span(US, LONGEST_CALL_NS).prop_map(|ns| vec![Step::Call(ns)]),
        4 => span(US, 3 * MS).prop_map(|ns| vec![Step::Block(ns)]),
        2 => span(US, MS).prop_map(|ns| vec![Step::Work(ns)]),
        2 => (0..LOCKS, span(US, MS)).prop_map(|(lock, ns)| {
            vec![Step::Acquire(lock), Step::Compute(ns), Step::Release(lock)]
        }),
        1 => hints.prop_map(|hint| vec![Step::Hint(hint)]),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(action(), 1..6).prop_map(|actions| {
        let mut steps = actions.concat();
        // A round takes some time, so that the simulation ends.
        steps.push(Step::Compute(50 * US));
        steps
    })
}

fn processors() -> impl Strategy<Value = usize> {
    prop_oneof![Just(1), Just(2), Just(4), 1..=64usize]
}

/// Threads of which some start the others, on some machine.
fn scenario() -> impl Strategy<Value = Scenario> {
    let threads = prop::collection::vec((steps(), any::<bool>()), 1..16);
    (
        processors(),
        threads,
        0..3usize,
        any::<bool>(),
        any::<bool>(),
        any::<u64>(),
    )
        .prop_map(|(processors, threads, hogs, is_late, has_kernel_hints, seed)| {
            let late = threads.iter().enumerate().filter(|(_, (_, is_late))| *is_late);
            let starter = late.map(|(index, _)| Step::Start(index + 1)).collect::<Vec<_>>();
            let mut programs = vec![Program::once([starter, vec![Step::Compute(US)]].concat())];
            programs.extend(threads.iter().map(|(steps, is_late)| {
                let program = Program::forever(steps.clone());
                if *is_late { program.unstarted() } else { program }
            }));
            programs.extend(vec![Program::forever([Step::Compute(1_000 * MS)]); hogs]);
            let mut scenario = Scenario::new(processors, programs);
            scenario.machine = Machine {
                has_kernel_hints,
                ..Machine::with(processors)
            };
            scenario.permits = vec![1; LOCKS];
            scenario.seed = seed;
            scenario.until = 800 * MS;
            if is_late {
                (scenario.delays.wake_ns, scenario.delays.timer_ns) = (20 * US, 50 * US);
            }
            scenario
        })
}

/// 50 ms for every second thread that can run, and the calls that cannot be interrupted.
fn bound_ns(trace: &Trace) -> Nanos {
    50 * MS * trace.most_contenders.div_ceil(2) + trace.most_contenders * LONGEST_CALL_NS
}

fn check(trace: &Trace) -> Result<(), TestCaseError> {
    prop_assert_eq!(&trace.violations, &Vec::<String>::new());
    prop_assert_eq!(trace.insurance_needed, 0, "nobody but the insurance would have looked");
    Ok(())
}

proptest! {
    #![proptest_config(runner())]

    #[test]
    #[cfg_attr(debug_assertions, ignore = "simulates minutes: needs a release build")]
    fn nobody_waits_beyond_the_bound(scenario in scenario()) {
        let trace = run(&scenario);
        check(&trace)?;
        let waits = trace.threads.iter().map(|thread| thread.longest_wait_ns).collect::<Vec<_>>();
        let longest_ns = waits.iter().max().copied().unwrap_or(0);
        prop_assert!(longest_ns <= bound_ns(&trace), "{longest_ns} ns of {} ns: {waits:?}", bound_ns(&trace));
        prop_assert!(trace.threads.iter().all(|thread| thread.takes > 0), "somebody never had the GIL");
    }

    #[test]
    #[cfg_attr(debug_assertions, ignore = "simulates minutes: needs a release build")]
    fn equal_threads_get_equal_shares(mut scenario in scenario(), equals in 2..6usize) {
        let first = scenario.programs.len();
        scenario.programs.extend(vec![Program::forever([Step::Compute(1_000 * MS)]); equals]);
        scenario.capacity = scenario.programs.len();
        let count = scenario.programs.len() as Nanos;
        scenario.until = 80 * count * MS;
        let trace = run(&scenario);
        check(&trace)?;
        let fairness = trace.fairness(first..first + equals);
        prop_assert!(fairness >= 0.9, "Jain index {fairness}");
    }

    #[test]
    #[cfg_attr(debug_assertions, ignore = "simulates minutes: needs a release build")]
    fn toggling_and_forking_lose_nobody(
        scenario in scenario(), pause_ns in span(10 * US, 5 * MS), forks in any::<bool>(),
    ) {
        let mut scenario = scenario;
        let last = scenario.programs.len() - 1;
        // The GIL is kept meanwhile: CPython's own wait promises no thread the GIL.
        let toggle = [Step::Uninstall, Step::Call(pause_ns), Step::Install, Step::Block(pause_ns)];
        let mut main = [&[Step::Block(20 * MS)], &toggle[..]].concat();
        if forks {
            main.extend([Step::Fork, Step::Start(1), Step::Start(last), Step::Block(pause_ns)]);
            main.extend(toggle);
        }
        main.extend([Step::Compute(10 * MS), Step::Block(MS), Step::Mark]);
        scenario.programs[0] = Program::once(main);
        scenario.ends_with = Some(0);
        scenario.delays.timer_ns = 50 * US;
        scenario.until = 3_000 * MS;
        let trace = run(&scenario);
        prop_assert_eq!(&trace.violations, &Vec::<String>::new());
        prop_assert_eq!(trace.threads[0].marks, 1, "the main thread did not get on");
    }
}
