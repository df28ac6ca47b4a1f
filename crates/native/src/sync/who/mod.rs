//! The caller's identity: which thread, greenlet or task, in which process, and whether it still lives.
//!
//! Must never: wait, wake, or know a primitive.

pub(in crate::sync) mod backends;
pub(in crate::sync) mod identity;
pub(in crate::sync) mod libraries;
pub(in crate::sync) mod liveness;
pub(in crate::sync) mod process;
pub(in crate::sync) mod running;
pub(in crate::sync) mod thread;
