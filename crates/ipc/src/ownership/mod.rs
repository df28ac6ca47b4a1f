//! Which thread or process holds something, in words from which a death can be repaired.
//!
//! The robust word serves for what one thread holds, the ledger for what several processes hold at the same time.
//!
//! Invariant: a thread's or a process's death leaves nothing held that no other process can find out.

mod ledger;
mod robust;

pub use ledger::{Account, Books, Ledger, Threads};
pub(crate) use robust::announce;
pub use robust::{
    Attempt, DIED, Guarded, TID_MASK, WAITERS, lock_or_sleep, observe, release_guard, try_guard, try_lock, unlock,
};
