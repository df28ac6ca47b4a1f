//! The only file that knows about loom: the protocols import their atomics from here.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::fence;
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::fence;
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Load a word in the one order of all sequentially consistent operations.
///
/// Where a party writes one word and then reads another, and the other party does it the other way
/// round, this is what lets one of them see the other.
#[cfg(not(loom))]
#[inline]
pub(crate) fn load_in_order(word: &AtomicU32) -> u32 {
    word.load(Ordering::SeqCst)
}

/// loom takes such a load for an acquire load, which may miss the other party; a
/// read-modify-write does not.
#[cfg(loom)]
pub(crate) fn load_in_order(word: &AtomicU32) -> u32 {
    word.fetch_or(0, Ordering::SeqCst)
}
