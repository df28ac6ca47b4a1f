//! No two holders ever both believe, whatever the network, the clocks and the processes do.

mod simulator;

use proptest::prelude::*;

use simulator::{CountsFrom, Plan, run};

fn plans() -> impl Strategy<Value = Plan> {
    let network = (1_u64..4_000, 0_u64..40, 0_u64..40);
    (
        any::<u64>(),
        2_usize..7,
        100_u64..3_000,
        network,
        0_u64..8_000,
        0_u64..=1_000,
    )
        .prop_map(
            |(seed, holders, ttl_ms, (delay_ms, lost_percent, repeated_percent), pause_ms, drift_ppm)| Plan {
                seed,
                holders,
                ttl_ms,
                delay_ms,
                lost_percent,
                repeated_percent,
                pause_ms,
                drift_ppm,
                counts_from: CountsFrom::Sending,
            },
        )
}

proptest! {
    #[test]
    fn two_holders_never_both_believe_and_the_fence_grows(plan in plans()) {
        let outcome = run(plan, 60_000);
        prop_assert_eq!(outcome.overlaps, Vec::<u64>::new());
        prop_assert_eq!(outcome.stale_fences, Vec::<u64>::new());
    }
}

fn rough(seed: u64, counts_from: CountsFrom) -> Plan {
    let (holders, ttl_ms, delay_ms, pause_ms, drift_ppm) = (4, 500, 600, 1_500, 1_000);
    Plan {
        seed,
        holders,
        ttl_ms,
        delay_ms,
        lost_percent: 10,
        repeated_percent: 10,
        pause_ms,
        drift_ppm,
        counts_from,
    }
}

#[test]
fn a_rough_run_grants_releases_and_loses() {
    let outcome = run(rough(1, CountsFrom::Sending), 600_000);
    assert!(
        outcome.grants > 100 && outcome.releases > 50 && outcome.losses > 20,
        "{outcome:?}"
    );
}

/// The simulator has teeth: with the deadline counted from the receipt of an answer, two holders believe.
#[test]
fn counting_from_the_receipt_is_found_out() {
    let overlaps = (0..50)
        .map(|seed| run(rough(seed, CountsFrom::Receipt), 60_000).overlaps.len())
        .sum::<usize>();
    assert!(overlaps > 0);
}
