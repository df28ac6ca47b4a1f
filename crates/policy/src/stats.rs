//! The counters of the policy.
//!
//! Invariant: counters only grow until `reset`; every wait that ended with the
//! GIL is in exactly one class's histogram.

use crate::Nanos;
use crate::class::Class;
use crate::histogram::Histogram;

/// Counters of one class of waiting threads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassStats {
    /// Waits begun.
    pub waits: u64,
    /// From the start of a wait to the moment the GIL was taken, nanoseconds.
    pub wait_ns: Histogram,
    /// Times a waiting thread of this class asked the holder to drop.
    pub asks: u64,
    /// Times a holder of this class dropped because it had been asked to.
    pub forced_drops: u64,
    /// Times a thread that did not wait took the GIL before an heir of this class, which kept
    /// its place.
    pub barged: u64,
}

/// The longest time one thread held the GIL while another wanted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongestHold {
    /// The tag that the thread was registered with.
    pub tag: u64,
    /// Length of the hold, nanoseconds.
    pub hold_ns: Nanos,
}

/// All counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Per class, indexed by [`Class::index`].
    pub classes: [ClassStats; Class::COUNT],
    /// Times the GIL went to another thread than its last holder, while a thread waited.
    pub hand_overs: u64,
    /// Picks out of order because a waiter had aged.
    pub aged_picks: u64,
    /// Picks by which CPU-bound threads got their least share.
    pub share_picks: u64,
    /// Drops at which an awake heir had to let the GIL linger.
    pub lingers: u64,
    /// Those of them at which the dropper did return immediately.
    pub lingers_hit: u64,
    /// Longest hold seen.
    pub longest_hold: Option<LongestHold>,
}

impl Stats {
    pub(crate) fn record_hold(&mut self, tag: u64, hold_ns: Nanos) {
        if self.longest_hold.is_none_or(|longest| hold_ns > longest.hold_ns) {
            self.longest_hold = Some(LongestHold { tag, hold_ns });
        }
    }
}
