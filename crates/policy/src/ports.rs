//! What the mechanism tells the policy, and what the policy answers.
//!
//! Invariant: plain data; times are of the clock that the mechanism passes in.

use crate::{Nanos, ThreadId};

/// How a thread came to want the GIL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrival {
    /// It was blocked on a lock of the interpreter since it last had the GIL.
    pub was_on_lock: bool,
    /// When it came out of the wait that a requested drop imposes, if it was in
    /// one; that wait is not time it blocked.
    pub switched_at: Option<Nanos>,
}

/// What a waiting thread does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Ask the holder to drop the GIL, then look again.
    Ask,
    /// Wait to be notified: awake for `spin_ns`, then asleep until `until`.
    Park {
        /// When to look again if nobody notifies (the policy's clock).
        until: Nanos,
        /// How long to stay awake first.
        spin_ns: Nanos,
    },
    /// The GIL is free and this thread's to take.
    Go,
}

/// Whom to notify after a drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// The thread the GIL is meant for.
    pub heir: ThreadId,
    /// If it is awake, it leaves the GIL alone until then.
    pub not_before: Nanos,
}

/// Consequences of a thread having taken the GIL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Taken {
    /// The heir whose grant is void: it waits on, in its place.
    pub revoked: Option<ThreadId>,
    /// A sleeping thread to wake so that it keeps time.
    pub appoint: Option<ThreadId>,
}
