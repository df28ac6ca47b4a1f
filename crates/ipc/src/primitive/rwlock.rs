//! Read/write lock: a robust word for the writer, a ledger of readers; writers do not starve.
//!
//! A reader enters itself in the ledger and then reads the writer's word. A writer takes its word and then, after a
//! fence, waits until the ledger is at zero. Both orders are sequentially consistent, so at least one of the two sees
//! the other. New readers stay out while a writer waits. Readers may starve behind writers that follow each other
//! without a pause.
//!
//! A reader that dies changed nothing: the writer that waits for it takes its entries back silently. A writer's death
//! is reported, unless the writer died before it was alone inside (`is_writing` not set): then it changed nothing
//! either.
//!
//! Invariant: `is_writing` is set only while the ledger was at zero and the writer's word was held.

use crate::kernel::{Kernel, Step};
use crate::ownership::{Account, Books, Ledger, Threads};
use crate::ownership::{DIED, TID_MASK, announce, observe};
use crate::shim::{AtomicU32, Ordering, fence, load_in_order};
use crate::wake::{ALL, Bell};

/// The shared words of a read/write lock, without the writer's.
#[derive(Debug, Default)]
#[repr(C)]
pub struct RwWords {
    /// The number of readers.
    pub readers: Ledger,
    /// Rung when the last reader leaves.
    pub bell: Bell,
    /// Not zero while the writer is alone inside.
    pub is_writing: AtomicU32,
}

impl RwWords {
    /// The ledger with its rule: the number is the sum of what the processes hold.
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

    /// Enters as a reader: true, or false if the last writer died inside; `has_slept` if the caller slept on the
    /// writer's word.
    pub fn read<'a, K: Kernel>(
        &'a self,
        writer: &'a AtomicU32,
        books: &Books<'_>,
        account: Option<&Account>,
        has_slept: bool,
        kernel: &K,
    ) -> Step<'a, bool> {
        loop {
            let word = observe(writer, kernel);
            if word & TID_MASK == 0 {
                if word & DIED != 0 && has_slept {
                    // The kernel wakes one of the sleepers when a writer dies. A reader takes no lock, so no release
                    // of its would wake the next sleeper.
                    kernel.wake(writer, ALL);
                }
                // ORDERING: pairs with the store in `drain`, before the writer died.
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

    /// Leaves as a reader; false if this process does not read.
    pub fn leave<K: Kernel>(&self, books: &Books<'_>, account: Option<&Account>, kernel: &K) -> bool {
        let left = books.change(account, -1, |readers| readers > 0);
        if left && self.readers.value() == 0 {
            self.bell.ring(ALL, kernel);
        }
        left
    }

    /// Waits until there is no reader. The caller holds the writer's word.
    pub fn drain<K: Kernel>(&self, books: &Books<'_>, kernel: &K) -> Step<'_, ()> {
        // ORDERING: the word was taken with acquire alone, which a later load may overtake. Pairs with the reader's
        // change of the ledger and its load of the word after that.
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
        // ORDERING: pairs with the loads of readers and of the next writer, if this one dies.
        self.is_writing.store(1, Ordering::SeqCst);
        Step::Done(())
    }
}
