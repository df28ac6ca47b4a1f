//! How a thread, a greenlet or a task waits, and how each is woken.
//!
//! Must never: know a primitive other than through the trait [`protocol::Wait`].

pub(in crate::sync) mod blocking;
pub(in crate::sync) mod futex;
pub(in crate::sync) mod gil;
pub(in crate::sync) mod interruption;
pub(in crate::sync) mod mailbox;
mod nap;
pub(in crate::sync) mod operation;
pub(in crate::sync) mod owner;
pub(in crate::sync) mod party;
pub(in crate::sync) mod protocol;
pub(in crate::sync) mod spin;
pub(in crate::sync) mod suspension;
