//! The atomics that the protocols use: those of `std`, or loom's in a model run.
//!
//! Invariant: no other file of this crate names loom.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::fence;
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::fence;
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Loads a word in the single total order of sequentially consistent operations.
///
/// Two parties each write one word and then read the other's. This load guarantees that at least one of them sees the
/// other's write.
#[cfg(not(loom))]
#[inline]
pub(crate) fn load_in_order(word: &AtomicU32) -> u32 {
    // ORDERING: pairs with the sequentially consistent write of the party that reads the caller's word.
    word.load(Ordering::SeqCst)
}

/// loom treats a sequentially consistent load as an acquire load, which may miss the other party's write. A
/// read-modify-write does not.
#[cfg(loom)]
pub(crate) fn load_in_order(word: &AtomicU32) -> u32 {
    // ORDERING: as above.
    word.fetch_or(0, Ordering::SeqCst)
}
