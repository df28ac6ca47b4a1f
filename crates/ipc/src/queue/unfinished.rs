//! What a queue's `join` waits for: records that are not dealt with, and those that are promised.
//!
//! A process whose records found no room keeps them for later, and says so in a ledger: `join` waits for them
//! too. A record is promised before its `put` returns, and the promise is taken back after the record exists, so it is
//! counted at every moment. What a process that died had promised does not come: `join` strikes it off.
//!
//! Invariant: `unfinished` is 0 only if there was a moment at which it was.

use super::ring::{Ring, count_of};
use crate::kernel::{Kernel, Step};
use crate::ownership::{Account, Books, Ledger, Threads};
use crate::shim::Ordering;
use crate::wake::ALL;

/// Processes that may have promised something at once, each known by name. More are counted, but
/// their deaths are not noticed.
const PROMISERS: usize = 32;

/// The shared words of what is promised.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Promises {
    number: Ledger,
    accounts: [Account; PROMISERS],
}

impl<'a> Ring<'a> {
    /// The ledger of what is promised.
    #[must_use]
    pub fn promises(&self, threads: Threads) -> Books<'a> {
        let promises = &self.words.promises;
        Books {
            ledger: &promises.number,
            accounts: &promises.accounts,
            base: 0,
            sign: 1,
            threads,
        }
    }

    /// Say that a record will be put later.
    pub fn promise(&self, books: &Books<'_>, account: Option<&Account>) {
        books.change(account, 1, |_| true);
    }

    /// Say that it has been put, or will not be.
    pub fn resolve<K: Kernel>(&self, books: &Books<'_>, account: Option<&Account>, kernel: &K) {
        books.change(account, -1, |promised| promised > 0);
        self.ring_if_done(kernel);
    }

    fn ring_if_done<K: Kernel>(&self, kernel: &K) {
        if self.unfinished() == 0 {
            self.words.all_done.ring(ALL, kernel);
        }
    }

    /// Say that a record taken before is dealt with; false if all are already.
    pub fn task_done<K: Kernel>(&self, kernel: &K) -> bool {
        let counted = self
            .words
            .done
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |done| {
                (done != self.put_count()).then_some(done.wrapping_add(1))
            });
        if counted.is_ok() {
            self.ring_if_done(kernel);
        }
        counted.is_ok()
    }

    fn put_count(&self) -> u32 {
        count_of(self.words.put.tail.load(Ordering::SeqCst))
    }

    /// Records put or promised, and not yet dealt with.
    #[must_use]
    pub fn unfinished(&self) -> u32 {
        loop {
            let before = self.words.promises.number.state();
            // In this order: a record that comes and another that is done in between must not cancel out.
            let done = self.words.done.load(Ordering::SeqCst);
            let left = self.put_count().wrapping_sub(done);
            if self.words.promises.number.state() == before {
                return left.wrapping_add(before as u32);
            }
        }
    }

    /// Wait until all records are dealt with.
    pub fn join<K: Kernel>(&self, threads: Threads, kernel: &K) -> Step<'a, ()> {
        if self.unfinished() == 0 {
            return Step::Done(());
        }
        let (word, heard) = self.words.all_done.listen();
        if self.words.promises.number.value() != 0 {
            self.promises(threads).repair(kernel);
        }
        if self.unfinished() == 0 {
            // The others may be asleep, if what was promised was all.
            self.words.all_done.ring(ALL, kernel);
            return Step::Done(());
        }
        Step::Sleep(word, heard)
    }
}
