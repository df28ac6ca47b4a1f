//! The economy of servers: a pure rule that says when a command, or one more of its servers, may cost something.
//!
//! All times are processor time, in milliseconds, of everything in the background included:
//!
//! ```text
//! a start may be paid  ⇔  spent + cost ≤ share · calls · plain + saved      (and the key has come back)
//! ```
//!
//! | word | meaning | where it comes from |
//! |---|---|---|
//! | `calls` | plain calls of the command that a server could have taken, this one included | counted by the client |
//! | `plain` | what one of them takes, at least | the imports of the last server, or a call that took less (`unsnarl.warm.ledger`) |
//! | `saved` | what served calls have not spent | the servers: calls × plain, less what serving took |
//! | `spent` | learning runs and starts of servers so far | each of them, at its end |
//! | `cost` | the next one | the last one that became a server; before the first, [`CALLS_OF_LEARNING`] plain calls |
//! | `share` | what may be lost if no further call comes | `UNSNARL_WARM_SPEND`, in percent |
//!
//! So at any moment plain calls, learning and servers together have taken at most `1 + share` times what the same calls
//! would have taken plainly, as far as the next start costs what the last one did. What served calls have saved pays
//! for further servers without a wait.
//!
//! Must never read a file or a clock.
//!
//! Considered and not built, since their bounds do not reach the goal:
//!
//! - a fixed number of calls: five plain calls of `pip` and two of `aws` pay for the same loss;
//! - half of the cost, or all of it, before the first start (the usual ski-rental rule): it bounds the loss by a factor
//!   of 1.5 or 2 just after the start, where the goal is 1.10.

use crate::syscall::{Bytes, variable};

/// Plain calls that learning a command and starting its first server are taken for until they were measured once.
/// Origin: 5.6 for `hg`, 3.2 for `pip`, 3.0 for `black`, 1.9 for `aws` (docs/design/warm.md).
pub(crate) const CALLS_OF_LEARNING: u64 = 6;

/// Share, in percent, if the user sets none: the goal is 1.10 of plain at any number of calls.
pub(crate) const SHARE_PERCENT: u64 = 10;

/// Calls with one key before a server for it is started.
const RETURNS: u64 = 2;

/// What is known of one command, as described at the top.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) calls: u64,
    /// Those with the key of the call that is considered.
    pub(crate) calls_of_key: u64,
    /// `None` before the first server.
    pub(crate) plain_ms: Option<u64>,
    pub(crate) saved_ms: u64,
    pub(crate) spent_ms: u64,
    pub(crate) cost_ms: u64,
}

/// How much may be spent ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    Percent(u64),
    /// As much as it takes: the first call learns.
    Any,
}

impl Share {
    /// Reads the user's setting; the default where there is none or it is not understood.
    pub(crate) fn parse(text: Option<&[u8]>) -> Self {
        match text {
            Some(b"any") => Self::Any,
            Some(text) => core::str::from_utf8(text)
                .ok()
                .and_then(|text| text.parse().ok())
                .map_or(Self::Percent(SHARE_PERCENT), |percent: u32| {
                    Self::Percent(percent.into())
                }),
            None => Self::Percent(SHARE_PERCENT),
        }
    }
}

/// The variable with which nothing is learned.
pub(crate) const FROZEN: &[u8] = b"UNSNARL_WARM_FROZEN";

/// Whether the user has ruled learning out.
pub(crate) fn is_frozen(environ: &[Bytes]) -> bool {
    variable(environ, FROZEN).is_some_and(|value| !value.is_empty())
}

/// Whether a start may be paid now.
pub(crate) fn pays(account: &Account, share: Share) -> bool {
    lacking(account, share) == Some(0)
}

/// How many more calls like the one considered pay for a start, if nothing else changes; `None` if none ever do.
pub(crate) fn lacking(account: &Account, share: Share) -> Option<u64> {
    let Share::Percent(percent) = share else { return Some(0) };
    // What calls must pay, and what each of them pays, in hundredths of a call or of a millisecond.
    let (due, of_call) = match account.plain_ms {
        // In plain calls: nothing was measured.
        None => {
            let tries = if account.spent_ms == 0 { 1 } else { TRIES };
            (CALLS_OF_LEARNING * 100 * tries, percent)
        }
        Some(plain_ms) => {
            let due_ms = account.spent_ms.saturating_add(account.cost_ms);
            let ahead_ms = due_ms.saturating_sub(account.saved_ms);
            (ahead_ms.saturating_mul(100), plain_ms.saturating_mul(percent))
        }
    };
    let calls = match (due, of_call) {
        (0, _) => 0,
        (_, 0) => return None,
        _ => due.div_ceil(of_call),
    };
    let returns = RETURNS.saturating_sub(account.calls_of_key);
    Some(calls.saturating_sub(account.calls).max(returns))
}

/// A command that was learned and got no server: only a multiple of the calls pays for another try.
const TRIES: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a command takes, in milliseconds of processor time.
    #[derive(Clone, Copy)]
    struct Command {
        plain_ms: u64,
        served_ms: u64,
        learning_ms: u64,
        start_ms: u64,
    }

    const PIP: Command = Command {
        plain_ms: 165,
        served_ms: 20,
        learning_ms: 600,
        start_ms: 260,
    };
    const HG: Command = Command {
        plain_ms: 145,
        served_ms: 15,
        learning_ms: 820,
        start_ms: 260,
    };
    const AWS: Command = Command {
        plain_ms: 330,
        served_ms: 40,
        learning_ms: 650,
        start_ms: 450,
    };

    /// Runs a sequence of keys; returns what it took after each call, with the background, and plainly.
    fn simulate(command: Command, keys: impl Iterator<Item = u64>, idle_every: Option<u64>) -> Vec<(u64, u64)> {
        let mut account = Account::default();
        let (mut seen, mut servers) = (std::collections::HashMap::new(), std::collections::HashSet::new());
        let (mut took_ms, mut plainly_ms, mut out) = (0, 0, Vec::new());
        for (number, key) in (0..).zip(keys) {
            if idle_every.is_some_and(|calls| number % calls == 0) {
                servers.clear(); // an hour has passed
            }
            plainly_ms += command.plain_ms;
            if servers.contains(&key) {
                took_ms += command.served_ms;
                account.saved_ms += command.plain_ms - command.served_ms;
            } else {
                took_ms += command.plain_ms;
                account.calls += 1;
                account.calls_of_key = *seen.entry(key).and_modify(|count| *count += 1).or_insert(1);
                if pays(&account, Share::Percent(SHARE_PERCENT)) {
                    let cost_ms = if account.plain_ms.is_none() {
                        command.learning_ms
                    } else {
                        command.start_ms
                    };
                    took_ms += cost_ms;
                    account.spent_ms += cost_ms;
                    account.cost_ms = cost_ms;
                    account.plain_ms = Some(command.plain_ms);
                    servers.insert(key);
                }
            }
            out.push((took_ms, plainly_ms));
        }
        out
    }

    fn worst(command: Command, keys: impl Iterator<Item = u64>, idle_every: Option<u64>) -> f64 {
        let ratios = simulate(command, keys, idle_every).into_iter();
        ratios
            .map(|(took, plainly)| took as f64 / plainly as f64)
            .fold(0.0, f64::max)
    }

    fn last(command: Command, keys: impl Iterator<Item = u64>) -> f64 {
        let (took, plainly) = *simulate(command, keys, None).last().unwrap();
        took as f64 / plainly as f64
    }

    #[test]
    fn no_number_of_calls_loses_more_than_the_share() {
        for command in [PIP, HG, AWS] {
            assert!(worst(command, (0..300).map(|_| 0), None) <= 1.11);
        }
    }

    #[test]
    fn a_suite_with_ever_new_keys_stays_plain_and_starts_nothing() {
        let outcome = simulate(HG, 0..25_000, None);
        assert_eq!(outcome.last().map(|(took, plainly)| took - plainly), Some(0));
    }

    #[test]
    fn a_suite_with_one_key_is_warm_nearly_all_the_time() {
        assert!(last(HG, (0..25_000).map(|_| 0)) <= 0.12);
        // Each key comes four times in a row: two plain calls, two served ones that pay for the next start.
        assert!(worst(HG, (0..25_000).map(|call| call / 4), None) <= 1.11);
    }

    #[test]
    fn three_calls_a_day_never_pay_more_than_the_share() {
        assert!(worst(PIP, (0..3_000).map(|_| 0), Some(3)) <= 1.11);
    }

    #[test]
    fn a_laptop_with_bursts_pays_for_new_servers_from_what_the_earlier_ones_saved() {
        let keys = || (0..5_000).map(|_| 0);
        assert!(worst(HG, keys(), Some(50)) <= 1.11);
        let (took, plainly) = *simulate(HG, keys(), Some(50)).last().unwrap();
        assert!(took * 4 < plainly, "{took} of {plainly}");
    }

    #[test]
    fn a_build_of_forty_commands_a_few_times_each_costs_nothing() {
        let total: u64 = (0..40).map(|_| simulate(AWS, (0..5).map(|_| 0), None)[4].0).sum();
        assert_eq!(total, 40 * 5 * AWS.plain_ms);
    }

    #[test]
    fn calls_that_are_lacking_are_counted() {
        let account = |calls, calls_of_key| Account {
            calls,
            calls_of_key,
            ..Account::default()
        };
        let tenth = Share::Percent(10);
        assert_eq!(lacking(&account(3, 3), tenth), Some(57));
        assert_eq!(lacking(&account(59, 0), tenth), Some(2));
        assert_eq!(lacking(&account(3, 3), Share::Percent(0)), None);
        assert_eq!(lacking(&account(0, 0), Share::Any), Some(0));
        let learned = Account {
            plain_ms: Some(100),
            spent_ms: 1500,
            cost_ms: 300,
            saved_ms: 800,
            ..account(40, 5)
        };
        assert_eq!(lacking(&learned, tenth), Some(60));
        assert_eq!(
            lacking(
                &Account {
                    saved_ms: 1800,
                    ..learned
                },
                tenth
            ),
            Some(0)
        );
    }

    #[test]
    fn settings_are_read() {
        assert_eq!(Share::parse(None), Share::Percent(SHARE_PERCENT));
        assert_eq!(Share::parse(Some(b"any")), Share::Any);
        assert_eq!(Share::parse(Some(b"25")), Share::Percent(25));
        assert_eq!(Share::parse(Some(b"much")), Share::Percent(SHARE_PERCENT));
        assert!(pays(&Account::default(), Share::Any));
        assert!(!pays(
            &Account {
                calls: u64::MAX,
                calls_of_key: 9,
                ..Account::default()
            },
            Share::Percent(0)
        ));
    }

    #[test]
    fn a_command_that_got_no_server_is_tried_again_ever_more_rarely() {
        let tried = Account {
            calls: 200,
            calls_of_key: 200,
            spent_ms: 1500,
            cost_ms: 1500,
            ..Account::default()
        };
        assert!(!pays(&tried, Share::Percent(10)));
        assert!(pays(&Account { calls: 1000, ..tried }, Share::Percent(10)));
    }

    proptest! {
        #[test]
        fn the_bound_holds_for_any_sequence(
            keys in proptest::collection::vec(0_u64..6, 1..800), idle in 1_u64..200,
            plain_ms in 50_u64..2000, served in 1_u64..90, learning in 1_u64..=CALLS_OF_LEARNING, start in 1_u64..3,
        ) {
            let command = Command {
                plain_ms, served_ms: plain_ms * served / 100, learning_ms: plain_ms * learning, start_ms: plain_ms * start.min(learning),
            };
            prop_assert!(worst(command, keys.into_iter(), Some(idle)) <= 1.10 + 1e-9);
        }

        #[test]
        fn it_pays_after_the_calls_that_were_lacking_and_no_call_earlier(
            calls in 0_u64..500, of_key in 0_u64..5, plain_ms in proptest::option::of(1_u64..2000),
            spent_ms in 0_u64..5000, cost_ms in 0_u64..3000, saved_ms in 0_u64..5000, percent in 1_u64..300,
        ) {
            let now = Account { calls, calls_of_key: of_key, plain_ms, saved_ms, spent_ms, cost_ms };
            let more = lacking(&now, Share::Percent(percent)).expect("each call pays something");
            let after = |more| Account { calls: calls + more, calls_of_key: of_key + more, ..now };
            prop_assert!(pays(&after(more), Share::Percent(percent)));
            prop_assert!(more == 0 || !pays(&after(more - 1), Share::Percent(percent)));
        }

        #[test]
        fn nothing_overflows(calls: u64, calls_of_key: u64, plain_ms: u64, saved_ms: u64, spent_ms: u64, cost_ms: u64) {
            let account = Account { calls, calls_of_key, plain_ms: Some(plain_ms), saved_ms, spent_ms, cost_ms };
            let _ = pays(&account, Share::Percent(u64::from(u32::MAX)));
        }
    }
}
