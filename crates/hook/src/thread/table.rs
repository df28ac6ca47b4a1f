//! The size of the tables with an entry for each thread.
//!
//! Invariant: the policy is made with this capacity, so each of its `ThreadId`s is a valid index.

/// Threads that can be known at a time; Linux allows a process about as many by
/// default (`vm.max_map_count` / 2). A thread beyond them waits by polling.
pub(crate) const CAPACITY: usize = 32_768;

/// One entry for each thread, by the index of its `ThreadId`.
pub(super) type Table<T> = [T; CAPACITY];
