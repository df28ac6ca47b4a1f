//! Semaphore: a ledger of permits and a bell, without fairness between processes.
//!
//! Processes hold permits, not threads: one thread of a process may give back what another thread took.
//!
//! A process may also give back permits that another process took. These are not lost if that process dies, and from
//! then on no death is reported. A semaphore that started at 0 counts events, which no process holds: no death is
//! reported there.
//!
//! Invariant: free permits and permits taken add up to the initial value, as long as no process gives back more than
//! was taken.

use crate::kernel::{Kernel, Step};
use crate::ownership::{Account, Books, Ledger, Threads};
use crate::wake::Bell;

/// The shared words of a semaphore.
#[derive(Debug, Default)]
#[repr(C)]
pub struct SemaphoreWords {
    /// Free permits.
    pub ledger: Ledger,
    /// Rung for every permit that is given back.
    pub bell: Bell,
}

impl SemaphoreWords {
    /// The ledger with its rule: the number is the initial value minus what the processes hold.
    #[inline]
    #[must_use]
    pub fn books<'a>(&'a self, accounts: &'a [Account], initial: u32, threads: Threads) -> Books<'a> {
        Books {
            ledger: &self.ledger,
            accounts,
            base: i64::from(initial),
            sign: -1,
            threads,
        }
    }

    /// Takes a permit if one is free.
    #[inline]
    pub fn try_acquire(&self, books: &Books<'_>, account: Option<&Account>) -> bool {
        books.change(account, 1, |value| value > 0)
    }

    /// Takes a permit, or names the word to sleep on.
    pub fn acquire<K: Kernel>(
        &self,
        books: &Books<'_>,
        account: Option<&Account>,
        has_slept: bool,
        kernel: &K,
    ) -> Step<'_, ()> {
        if !self.try_acquire(books, account) {
            let (word, heard) = self.bell.listen();
            if !self.try_acquire(books, account) {
                return Step::Sleep(word, heard);
            }
        }
        if has_slept {
            // Others may still be asleep, and a permit given back meanwhile woke no thread.
            self.bell.relisten();
            if self.ledger.value() > 0 {
                self.bell.ring(1, kernel);
            }
        }
        Step::Done(())
    }

    /// Gives `count` permits back; false, without an effect, beyond the bound.
    #[inline]
    pub fn release<K: Kernel>(
        &self,
        books: &Books<'_>,
        account: Option<&Account>,
        count: u32,
        bound: u32,
        kernel: &K,
    ) -> bool {
        let fits = |value: u32| value.checked_add(count).is_some_and(|value| value <= bound);
        if !books.change(account, -(count as i32), fits) {
            return false;
        }
        self.bell.ring(count, kernel);
        true
    }
}
