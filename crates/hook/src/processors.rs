//! Whether this process may use more than one processor.
//!
//! On a single processor a spinning thread only keeps the thread that it waits for from running.
//! Invariant: the answer is that of the last `refresh`.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use unsnarl_policy::Nanos;

static IS_ALONE: AtomicBool = AtomicBool::new(true);

/// Reads the affinity mask again.
pub(crate) fn refresh() {
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    IS_ALONE.store(count < 2, Relaxed);
}

/// Whether there is only one.
pub(crate) fn is_alone() -> bool {
    IS_ALONE.load(Relaxed)
}

/// How long to spin: `wish_ns`, or 0 on a single processor.
pub(crate) fn spin(wish_ns: Nanos) -> Nanos {
    if is_alone() { 0 } else { wish_ns }
}
