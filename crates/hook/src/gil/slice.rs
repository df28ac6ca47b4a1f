//! Learns `sys.setswitchinterval` from the deadlines that `take_gil` passes.
//!
//! Each deadline is the time of the call plus the interval. It is observed a little later, or
//! much later if the kernel preempted the thread in between. So the largest remainder of the
//! last few observations is the interval, within a microsecond or two.
//! Invariant: only used with the GIL's mutex held.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use unsnarl_policy::{MICROSECOND, Nanos, Policy};

/// Longer intervals count as this one: a little under 17 minutes, the longest slice that
/// `install` accepts.
const LONGEST_NS: Nanos = 1_000_000_000_000;
/// Observations between two updates.
const WINDOW: u32 = 8;

static SEEN: AtomicU32 = AtomicU32::new(0);
static LARGEST: AtomicU64 = AtomicU64::new(0);

/// Notes the time that remained until the deadline of one call.
pub(super) fn observe(policy: &mut Policy, remaining_ns: Nanos) {
    let largest = LARGEST.load(Relaxed).max(remaining_ns);
    let seen = SEEN.load(Relaxed) + 1;
    if seen < WINDOW {
        SEEN.store(seen, Relaxed);
        LARGEST.store(largest, Relaxed);
        return;
    }
    SEEN.store(0, Relaxed);
    LARGEST.store(0, Relaxed);
    // CPython's unit is the microsecond, and it never waits for less than one.
    let interval = largest.min(LONGEST_NS).next_multiple_of(MICROSECOND);
    policy.set_slice(interval.max(MICROSECOND));
}
