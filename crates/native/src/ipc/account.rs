//! The calling process's account in a ledger, cached by each object.
//!
//! Invariant: a process has one account in a ledger, however many threads and objects use it.

use unsnarl_ipc::{Account, AtomicU64, Books, Ordering};
use unsnarl_shm::{Host, epoch};

/// The account's number + 1 in the lower half, 0 if all were taken; the epoch in which it was opened in the upper
/// half.
#[derive(Default)]
pub(super) struct OwnAccount(AtomicU64);

impl OwnAccount {
    /// Returns the account, opened if necessary; None if all are taken.
    #[inline]
    pub(super) fn of<'a>(&self, books: &Books<'a>) -> Option<&'a Account> {
        // ORDERING: pairs with the release in `open`: the account was claimed before its number was stored.
        let known = self.0.load(Ordering::Acquire);
        if known >> 32 == u64::from(epoch()) {
            return books.accounts.get((known as u32).wrapping_sub(1) as usize);
        }
        self.open(books)
    }

    #[cold]
    fn open<'a>(&self, books: &Books<'a>) -> Option<&'a Account> {
        let _alone = unsnarl_shm::alone();
        let account = books.open(&Host);
        let index = account.and_then(|account| books.accounts.iter().position(|other| std::ptr::eq(other, account)));
        let number = index.map_or(0, |index| index as u64 + 1);
        // ORDERING: pairs with the acquire in `of`.
        self.0.store(u64::from(epoch()) << 32 | number, Ordering::Release);
        account
    }
}
