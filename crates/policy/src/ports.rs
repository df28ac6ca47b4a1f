//! The values that the mechanism passes to the policy, and those that the policy returns.
//!
//! Invariant: plain data; times are of the clock that the mechanism passes in.

use crate::{Nanos, ThreadId};

/// How a thread came to want the GIL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrival {
    /// It was blocked on a lock of the interpreter since it last had the GIL.
    pub was_on_lock: bool,
    /// The present holder has released a lock for which a thread waited, during this hold.
    pub holder_has_woken: bool,
    /// When the wait that a requested drop imposes ended, if there was one; the thread did not
    /// block for that time.
    pub switched_at: Option<Nanos>,
}

/// The next step of a waiting thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Ask the holder to drop the GIL, then re-check.
    Ask,
    /// Park until notified: spin for `spin_ns`, then sleep until `until`.
    Park {
        /// When to re-check without a notification (the policy's clock).
        until: Nanos,
        /// How long to spin first.
        spin_ns: Nanos,
    },
    /// Take the GIL, which is free.
    Go,
}

/// The heir to notify after a drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// The thread the GIL is meant for.
    pub heir: ThreadId,
    /// If it is awake, it does not take the GIL before this time.
    pub not_before: Nanos,
    /// Whether it is woken if it sleeps.
    pub wakes: bool,
}

/// Consequences of a thread having taken the GIL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Taken {
    /// The heir whose grant is void: it keeps waiting, in its place.
    pub revoked: Option<ThreadId>,
    /// A sleeping thread to wake so that it becomes the timekeeper.
    pub appoint: Option<ThreadId>,
}
