//! Condition: the wait for a notification, with a lock released meanwhile.
//!
//! Must never: know a queue.

pub(in crate::sync) mod guard;
pub(in crate::sync) mod methods;
pub(in crate::sync) mod notify_wait;
pub(in crate::sync) mod state;
