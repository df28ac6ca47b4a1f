//! The clock that leases go by: Linux's CLOCK_BOOTTIME, which also counts while the machine is suspended.
//!
//! CLOCK_MONOTONIC stands still then, and a laptop that wakes up would believe in leases that ended hours ago.

use rustix::time::{ClockId, clock_gettime};

/// Returns the time in nanoseconds.
pub(crate) fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    // The clock counts from the boot: neither part is negative.
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
