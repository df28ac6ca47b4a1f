//! Which thread or process holds something, in words from which a death can be repaired.
//!
//! The robust word is for what one thread holds, the ledger for what several processes hold at once.
//!
//! Invariant: no death leaves something held for ever without a process that can find it out.

mod ledger;
mod robust;

pub use ledger::{Account, Books, Ledger, Threads};
pub(crate) use robust::announce;
pub use robust::{
    Attempt, DIED, Guarded, TID_MASK, WAITERS, lock_or_sleep, release_guard, try_guard, try_lock, unlock,
};
