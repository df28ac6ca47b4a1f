//! The classes whose permits are acquired and released: locks, semaphores, the capacity limiter, the
//! read/write lock.
//!
//! Must never: know a condition or a queue.

pub(in crate::sync) mod acquirable;
pub(in crate::sync) mod calls;
pub(in crate::sync) mod deadlock;
pub(in crate::sync) mod limiter;
pub(in crate::sync) mod lock;
pub(in crate::sync) mod release_waiver;
pub(in crate::sync) mod rlock;
pub(in crate::sync) mod rwlock;
pub(in crate::sync) mod semaphore;
