//! How many processors this process may use: on one, staying awake for another
//! thread only keeps it from running.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use unsnarl_policy::Nanos;

static IS_ALONE: AtomicBool = AtomicBool::new(true);

/// Looks at the affinity mask (again).
pub(crate) fn refresh() {
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    IS_ALONE.store(count < 2, Relaxed);
}

/// Whether there is only one.
pub(crate) fn is_alone() -> bool {
    IS_ALONE.load(Relaxed)
}

/// How long to stay awake: the wish, or nothing.
pub(crate) fn spin(wish_ns: Nanos) -> Nanos {
    if is_alone() { 0 } else { wish_ns }
}
