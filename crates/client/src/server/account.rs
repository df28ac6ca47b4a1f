//! The account of a command: the calls that ran plainly, and what its servers have spent and saved.
//!
//! `COMMAND.ledger` is appended to by `unsnarl.warm.ledger`: lines `spent MS`, `failed MS`, `asked MS`,
//! `saved MS CALLS`, `plain MS`, `call MS`.

use super::calls::{Calls, Part};
use super::economy::Account;
use crate::syscall::read_file;

/// Largest size, in bytes: the ledger is cut by each start (`unsnarl.warm.ledger`).
const LEDGER_LIMIT: usize = 1 << 17;
/// Plain calls that count, the last ones that were measured (`FEW` in `unsnarl.warm.ledger`).
const FEW: usize = 5;
/// Plain calls that a start without learning takes at most, until it was measured: its imports, and an interpreter of
/// unsnarl's own. Origin: 1.4 for `aws`, 1.6 for `pip`, 1.8 for `hg`, 2.0 for `flake8`.
const CALLS_OF_START: u64 = 2;

/// Counts one plain call with this key, which is made of these parts, and returns the account with it.
pub(crate) fn count(calls: &[u8], ledger: &[u8], key_id: &str, parts: &[Part]) -> Account {
    let mut counts = Calls::read(calls);
    let calls_of_key = counts.add(key_id, parts);
    counts.write(calls);
    with_ledger(ledger, counts.all(), calls_of_key)
}

/// Returns the account of the counted calls without counting one.
pub(crate) fn read(calls: &Calls, ledger: &[u8], key_id: &str) -> Account {
    with_ledger(ledger, calls.all(), calls.of_key(key_id))
}

fn with_ledger(ledger: &[u8], calls: u64, calls_of_key: u64) -> Account {
    let account = read_ledger(&read_file(ledger, LEDGER_LIMIT).unwrap_or_default());
    Account {
        calls,
        calls_of_key,
        ..account
    }
}

fn read_ledger(text: &[u8]) -> Account {
    let mut account = Account::default();
    let mut calls_ms = Vec::new();
    let mut is_asked = false;
    for line in core::str::from_utf8(text).unwrap_or_default().lines() {
        let mut words = line.split(' ');
        let (Some(what), Some(Ok(ms))) = (words.next(), words.next().map(str::parse::<u64>)) else {
            continue;
        };
        match what {
            "spent" => {
                account.spent_ms = account.spent_ms.saturating_add(ms);
                (account.cost_ms, is_asked) = (ms, false);
            }
            "failed" => account.spent_ms = account.spent_ms.saturating_add(ms),
            "asked" => (account.cost_ms, is_asked) = (ms, true),
            "saved" => account.saved_ms = account.saved_ms.saturating_add(ms),
            "plain" => account.plain_ms = Some(ms),
            "call" => calls_ms.push(ms),
            _ => {}
        }
    }
    if let (true, Some(plain_ms)) = (is_asked, account.plain_ms) {
        // The user has had the command learned; the next start need not.
        account.cost_ms = account.cost_ms.min(plain_ms.saturating_mul(CALLS_OF_START));
    }
    if let Some(call_ms) = middle(&calls_ms) {
        account.plain_ms = account.plain_ms.map(|plain_ms| plain_ms.min(call_ms));
    }
    account
}

/// The middle one of the last calls, or the lesser one of two: one may have been aborted as soon as it had begun.
fn middle(calls_ms: &[u64]) -> Option<u64> {
    let mut last = calls_ms[calls_ms.len().saturating_sub(FEW)..].to_vec();
    last.sort_unstable();
    last.get(last.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_ledger_is_summed() {
        let account = read_ledger(b"spent 1500\nplain 140\nsaved 300 2\nspent 200\nsaved 100 1\n\nodd\nspent x\n");
        assert_eq!((account.spent_ms, account.cost_ms, account.saved_ms), (1700, 200, 400));
        assert_eq!(account.plain_ms, Some(140));
        let failed = read_ledger(b"spent 200\nplain 140\nfailed 1500\ntried 900\n");
        assert_eq!((failed.spent_ms, failed.cost_ms), (1700, 200));
        assert_eq!(read_ledger(b"call 90\nplain 140\ncall 95\n").plain_ms, Some(90));
        assert_eq!(read_ledger(b"call 150\nplain 140\n").plain_ms, Some(140));
        assert_eq!(read_ledger(b"call 90\n").plain_ms, None);
    }

    #[test]
    fn a_start_after_learning_by_hand_is_taken_for_a_start_alone() {
        assert_eq!(read_ledger(b"asked 1500\nplain 140\n").cost_ms, 280);
        assert_eq!(read_ledger(b"asked 200\nplain 140\n").cost_ms, 200);
        assert_eq!(read_ledger(b"asked 1500\n").cost_ms, 1500);
        assert_eq!(
            read_ledger(b"asked 1500\nplain 140\nspent 310\nplain 140\n").cost_ms,
            310
        );
        let account = Account {
            calls: 20,
            calls_of_key: 20,
            ..read_ledger(b"asked 1500\nplain 140\n")
        };
        assert!(super::super::economy::pays(
            &account,
            super::super::economy::Share::Percent(10)
        ));
    }

    #[test]
    fn an_aborted_call_does_not_count_for_good() {
        assert_eq!(
            read_ledger(b"plain 140\ncall 90\ncall 10\ncall 95\n").plain_ms,
            Some(90)
        );
        let fast = b"plain 140\ncall 90\ncall 92\ncall 20\ncall 21\ncall 22\ncall 23\n";
        assert_eq!(read_ledger(fast).plain_ms, Some(22));
    }

    proptest! {
        #[test]
        fn arbitrary_text_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_ledger(&bytes);
        }
    }
}
