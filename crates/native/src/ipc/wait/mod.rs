//! Waiting for a word in shared memory: threads block, tasks get a sleep to wait for.
//!
//! Must never know what the word means.
//!
//! Invariant: a waiter that leaves after a sleep without what it waited for wakes another sleeper.

mod blocking;
mod sleep;
mod spin;
pub(super) mod timeouts;

pub(super) use blocking::{WaitRound, Watch, block, block_behind_guard, give_way};
pub(super) use sleep::{register, task_outcome, yes};
pub(super) use spin::Spin;
