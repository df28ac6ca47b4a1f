//! Semaphore: a ledger of permits and a bell.
//!
//! Permits are held by processes, not by threads: what one thread of a process took,
//! another may give back. A process may give back what another one took, which is not lost then
//! if that one dies; from then on no death is reported. A semaphore that started at 0 counts events, which nobody
//! holds: deaths are not reported there.
//!
//! Fairness: none between processes; whoever runs first takes a free permit.

use crate::kernel::{Kernel, Step};
use crate::ownership::{Account, Books, Ledger, Threads};
use crate::wake::Bell;

/// The shared words of a semaphore.
#[derive(Debug, Default)]
#[repr(C)]
pub struct SemaphoreWords {
    /// Free permits.
    pub ledger: Ledger,
    /// Rung for every permit that comes back.
    pub bell: Bell,
}

impl SemaphoreWords {
    /// The ledger with its rule: what processes hold is missing from the initial value.
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

    /// Take a permit if one is free.
    #[inline]
    pub fn try_acquire(&self, books: &Books<'_>, account: Option<&Account>) -> bool {
        books.change(account, 1, |value| value > 0)
    }

    /// Take a permit, or name what to sleep on.
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
            // Others may be asleep still, and a permit that came meanwhile has woken nobody.
            self.bell.relisten();
            if self.ledger.value() > 0 {
                self.bell.ring(1, kernel);
            }
        }
        Step::Done(())
    }

    /// Give `count` permits back; false, and nothing happens, beyond the bound.
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
