//! Counts what a queue's `join` waits for: records that are not dealt with, and records that are promised.
//!
//! A process whose records find no room keeps them for later and counts them in a ledger of promises: `join` waits
//! for these too. A record is promised before its `put` returns, and the promise is resolved after the record exists,
//! so it is counted at every moment. If the process dies, its promises are void: `join` removes them.
//!
//! Invariant: `unfinished` returns 0 only if at some moment during the call nothing was unfinished.

use super::ring::{Ring, count_of};
use crate::kernel::{Kernel, Step};
use crate::ownership::{Account, Books, Ledger, Threads};
use crate::shim::Ordering;
use crate::wake::ALL;

/// Processes with promises that are known by name. Promises of further processes are counted, but their deaths are
/// not noticed.
const PROMISERS: usize = 32;

/// The shared words of the promises.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Promises {
    number: Ledger,
    accounts: [Account; PROMISERS],
}

impl<'a> Ring<'a> {
    /// The ledger of promises.
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

    /// Announces that a record will be put later.
    pub fn promise(&self, books: &Books<'_>, account: Option<&Account>) {
        books.change(account, 1, |_| true);
    }

    /// Resolves a promise: the record was put, or will not be.
    pub fn resolve<K: Kernel>(&self, books: &Books<'_>, account: Option<&Account>, kernel: &K) {
        books.change(account, -1, |promised| promised > 0);
        self.ring_if_done(kernel);
    }

    fn ring_if_done<K: Kernel>(&self, kernel: &K) {
        if self.unfinished() == 0 {
            self.words.all_done.ring(ALL, kernel);
        }
    }

    /// Counts a record as dealt with; false if all are already.
    pub fn task_done<K: Kernel>(&self, kernel: &K) -> bool {
        // ORDERING: pairs with the load in `unfinished`; the ring follows.
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
        // ORDERING: pairs with the store in `put_inside`.
        count_of(self.words.put.tail.load(Ordering::SeqCst))
    }

    /// Records that were put or promised and are not dealt with yet.
    #[must_use]
    pub fn unfinished(&self) -> u32 {
        loop {
            let before = self.words.promises.number.state();
            // ORDERING: pairs with the update in `task_done`. `done` is read before `tail`: a record that is put and
            // another that is dealt with in between must not cancel out.
            let done = self.words.done.load(Ordering::SeqCst);
            let left = self.put_count().wrapping_sub(done);
            if self.words.promises.number.state() == before {
                return left.wrapping_add(before as u32);
            }
        }
    }

    /// Waits until all records are dealt with.
    pub fn join<K: Kernel>(&self, threads: Threads, kernel: &K) -> Step<'a, ()> {
        if self.unfinished() == 0 {
            return Step::Done(());
        }
        let (word, heard) = self.words.all_done.listen();
        if self.words.promises.number.value() != 0 {
            self.promises(threads).repair(kernel);
        }
        if self.unfinished() == 0 {
            // Other waiters may be asleep: only void promises were left.
            self.words.all_done.ring(ALL, kernel);
            return Step::Done(());
        }
        Step::Sleep(word, heard)
    }
}
