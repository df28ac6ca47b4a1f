//! The account of a command: counts the calls that ran plainly, and reads what its servers have spent and saved.
//!
//! | file | written by | content |
//! |---|---|---|
//! | `COMMAND.calls` | here | `unsnarl-calls 1 COUNT`, then a line `KEY COUNT` for each of the last [`MOST_KEYS`] keys |
//! | `COMMAND.ledger` | `unsnarl.warm.ledger` | lines `spent MS`, `failed MS`, `asked MS`, `saved MS CALLS`, `plain MS`, `call MS`, appended |
//!
//! A key is a hash, so neither file holds the value of a variable.
//!
//! Invariant: in doubt a count is too low, never too high: calls that collide, or a file that is not understood, delay a
//! server, and cost nothing.

use super::economy::Account;
use crate::syscall::{Bytes, close, open, read_file};
use core::fmt::Write as _;

/// Keys that are counted. With more of them in turn, none of them comes back soon enough for a server.
const MOST_KEYS: usize = 64;
/// Largest sizes, in bytes: the ledger is cut by each start (`unsnarl.warm.ledger`).
const CALLS_LIMIT: usize = 1 << 12;
const LEDGER_LIMIT: usize = 1 << 17;
/// Plain calls that count, the last ones that were measured (`FEW` in `unsnarl.warm.ledger`).
const FEW: usize = 5;
/// Plain calls that a start without learning takes at most, until it was measured: its imports, and an interpreter of
/// unsnarl's own. Origin: 1.4 for `aws`, 1.6 for `pip`, 1.8 for `hg`, 2.0 for `flake8`.
const CALLS_OF_START: u64 = 2;

/// Counts one plain call with this key, and returns the account with it.
pub(crate) fn count(calls: &[u8], ledger: &[u8], key_id: &str) -> Account {
    let mut counts = Calls::read(calls);
    let calls_of_key = counts.add(key_id);
    counts.write(calls);
    with_ledger(ledger, counts.all, calls_of_key)
}

/// Returns the account without counting a call.
pub(crate) fn read(calls: &[u8], ledger: &[u8], key_id: &str) -> Account {
    let counts = Calls::read(calls);
    with_ledger(ledger, counts.all, counts.of_key(key_id))
}

fn with_ledger(ledger: &[u8], calls: u64, calls_of_key: u64) -> Account {
    let account = read_ledger(&read_file(ledger, LEDGER_LIMIT).unwrap_or_default());
    Account {
        calls,
        calls_of_key,
        ..account
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Calls {
    all: u64,
    /// The key called last comes first.
    keys: Vec<(String, u64)>,
}

impl Calls {
    fn read(path: &[u8]) -> Self {
        read_file(path, CALLS_LIMIT)
            .and_then(|text| Self::parse(&text))
            .unwrap_or_default()
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let mut lines = core::str::from_utf8(text).ok()?.lines();
        let all = lines.next()?.strip_prefix("unsnarl-calls 1 ")?.parse().ok()?;
        let keys = lines.map(|line| {
            line.split_once(' ')
                .and_then(|(key, count)| Some((key.into(), count.parse().ok()?)))
        });
        Some(Self {
            all,
            keys: keys.collect::<Option<_>>()?,
        })
    }

    fn of_key(&self, key: &str) -> u64 {
        let found = self.keys.iter().find(|(known, _)| known == key);
        found.map_or(0, |(_, count)| *count)
    }

    /// Counts a call; returns how many had this key.
    fn add(&mut self, key: &str) -> u64 {
        let at = self.keys.iter().position(|(known, _)| known == key);
        let before = at.map_or(0, |at| self.keys.remove(at).1);
        self.all = self.all.saturating_add(1);
        self.keys.insert(0, (key.into(), before.saturating_add(1)));
        self.keys.truncate(MOST_KEYS);
        self.keys[0].1
    }

    fn text(&self) -> Bytes {
        let mut text = format!("unsnarl-calls 1 {}\n", self.all);
        for (key, count) in &self.keys {
            let _ = writeln!(text, "{key} {count}");
        }
        text.into_bytes()
    }

    /// Writes the counts, unless another client is writing.
    fn write(&self, path: &[u8]) {
        let text = self.text();
        let fd = open(path, libc::O_WRONLY | libc::O_CREAT | libc::O_NOFOLLOW, 0o600);
        if fd < 0 {
            return;
        }
        // SAFETY: fd is open, the buffer valid for its length. The signal's disposition is restored: without that, a
        // caller that may not write files at all would end here.
        unsafe {
            let before = libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            libc::fchmod(fd, 0o600); // independent of the caller's file mode mask
            if libc::flock(fd, libc::LOCK_EX | libc::LOCK_NB) == 0 {
                let written = libc::pwrite(fd, text.as_ptr().cast(), text.len(), 0);
                // A file that is cut off is not understood, or counts too little.
                libc::ftruncate(fd, written.max(0) as libc::off_t);
            }
            libc::signal(libc::SIGXFSZ, before);
        }
        close(fd);
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
    fn calls_are_counted_by_key() {
        let mut calls = Calls::default();
        assert_eq!((calls.add("a"), calls.add("b"), calls.add("a")), (1, 1, 2));
        assert_eq!(calls.all, 3);
        assert_eq!((calls.of_key("a"), calls.of_key("c")), (2, 0));
        assert_eq!(Calls::parse(&calls.text()), Some(calls));
    }

    #[test]
    fn a_key_that_is_long_gone_is_forgotten() {
        let mut calls = Calls::default();
        calls.add("first");
        for number in 0..MOST_KEYS {
            calls.add(&format!("{number:032}"));
        }
        assert_eq!(calls.add("first"), 1);
        assert!(calls.text().len() < CALLS_LIMIT);
    }

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
            let _ = Calls::parse(&[b"unsnarl-calls 1 ".as_slice(), &bytes].concat());
            let _ = read_ledger(&bytes);
        }
    }
}
