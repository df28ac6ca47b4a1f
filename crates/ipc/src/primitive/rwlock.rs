//! Read/write lock: a robust word for the writer, a ledger of readers.
//!
//! A reader enters itself in the ledger and then looks at the writer's word; a writer
//! takes its word and then, behind a fence, waits until the ledger is at zero. Both orders
//! are sequentially consistent, so one sees the other. New readers stay out while a writer
//! waits, so writers do not starve; readers may, behind writers without pause.
//!
//! A reader that dies has changed nothing: its entries are taken back silently, by the
//! writer that waits for it. A writer that dies has been told of; one that died before
//! it was alone (`is_writing` unset) has changed nothing either.

use crate::kernel::{Kernel, Step};
use crate::ownership::{Account, Books, Ledger, Threads};
use crate::ownership::{DIED, TID_MASK, announce};
use crate::shim::{AtomicU32, Ordering, fence, load_in_order};
use crate::wake::{ALL, Bell};

/// The shared words of a read/write lock, without the writer's.
#[derive(Debug, Default)]
#[repr(C)]
pub struct RwWords {
    /// How many read.
    pub readers: Ledger,
    /// Rung when the last reader leaves.
    pub bell: Bell,
    /// Not zero while the writer is alone inside.
    pub is_writing: AtomicU32,
}

impl RwWords {
    /// The ledger with its rule: the number is what the processes hold.
    #[must_use]
    pub fn books<'a>(&'a self, accounts: &'a [Account], threads: Threads) -> Books<'a> {
        Books {
            ledger: &self.readers,
            accounts,
            base: 0,
            sign: 1,
            threads,
        }
    }

    /// Enter as a reader: true, or false if the last writer died inside; `has_slept` if the caller
    /// was asleep on the writer's word.
    pub fn read<'a, K: Kernel>(
        &'a self,
        writer: &'a AtomicU32,
        books: &Books<'_>,
        account: Option<&Account>,
        has_slept: bool,
        kernel: &K,
    ) -> Step<'a, bool> {
        loop {
            let word = writer.load(Ordering::SeqCst);
            if word & TID_MASK == 0 {
                if word & DIED != 0 && has_slept {
                    // The kernel wakes one of those that sleep beside a dead writer, and a reader takes
                    // nothing that it would give back and wake the next by.
                    kernel.wake(writer, ALL);
                }
                if word & DIED != 0 && self.is_writing.load(Ordering::SeqCst) != 0 {
                    return Step::Done(false);
                }
                books.change(account, 1, |_| true);
                let now = load_in_order(writer);
                if now & TID_MASK == 0 {
                    return Step::Done(true);
                }
                self.leave(books, account, kernel);
            } else if let Some(awaited) = announce(writer, word) {
                return Step::Sleep(writer, awaited);
            }
        }
    }

    /// Leave as a reader; false if this process does not read.
    pub fn leave<K: Kernel>(&self, books: &Books<'_>, account: Option<&Account>, kernel: &K) -> bool {
        let left = books.change(account, -1, |readers| readers > 0);
        if left && self.readers.value() == 0 {
            self.bell.ring(ALL, kernel);
        }
        left
    }

    /// With the writer's word taken: wait until nobody reads.
    pub fn drain<K: Kernel>(&self, books: &Books<'_>, kernel: &K) -> Step<'_, ()> {
        // ORDERING: the word was taken with acquire alone, which a later load may overtake. Pairs with
        // the reader's change of the ledger and its look at the word.
        fence(Ordering::SeqCst);
        if self.readers.value() != 0 {
            let (word, heard) = self.bell.listen();
            if self.readers.value() != 0 {
                books.repair(kernel);
            }
            if self.readers.value() != 0 {
                return Step::Sleep(word, heard);
            }
        }
        self.is_writing.store(1, Ordering::SeqCst);
        Step::Done(())
    }
}
