//! Decides whether the release of a contended lock wakes a waiter now or at the next drop of the GIL.
//!
//! A thread that waits for a lock of the interpreter needs the GIL as well, and the thread that releases the lock
//! has the GIL. A waiter that is woken at the release finds the lock taken again, or becomes the lock's owner while
//! it has no GIL: then the releaser blocks on the lock at its next use, and each use costs a hand-over (a convoy).
//!
//! ```text
//! deferred if    the lock was held, two or more threads wait for it, a waiter watches, and
//!                the last wake-up was less than `AT_MOST_NS` ago
//! ```
//!
//! With a single waiter nothing is deferred: a lock on which one thread waits is how `Condition`, `Event` and
//! `Queue` wake that thread. Invariant: a deferred wake-up is late by no more than the releaser's hold of the GIL
//! or [`WATCH_NS`], whichever is shorter.

use crate::Nanos;
use crate::config::MICROSECOND;

/// Wake-ups are deferred for at most this long, if the lock is released again and again. It is a few hand-overs
/// between two processors (40 to 60 µs each), so that their cost is a fraction of the work between them.
pub const AT_MOST_NS: Nanos = 200 * MICROSECOND;
/// How often the watching waiter looks for a deferred wake-up: the delay if the releaser computes and keeps the GIL.
/// The standard interpreter makes such a waiter wait for the switch interval, 5 ms.
pub const WATCH_NS: Nanos = 1_000 * MICROSECOND;
/// A waiter stops watching after so many looks in a row between which nothing was deferred.
pub const IDLE_LOOKS: u32 = 2;

/// Whether a release of a semaphore with `value` permits and `waiters` waiting threads defers its wake-up.
#[must_use]
pub const fn is_deferred(value: u32, waiters: u32, since_wake_ns: Nanos) -> bool {
    value == 0 && waiters >= 2 && since_wake_ns < AT_MOST_NS
}

#[cfg(test)]
mod tests {
    use super::{AT_MOST_NS, is_deferred};

    #[test]
    fn a_single_waiter_is_woken_at_once() {
        assert!(!is_deferred(0, 0, 0));
        assert!(!is_deferred(0, 1, 0));
        assert!(is_deferred(0, 2, 0));
    }

    #[test]
    fn a_lock_that_is_free_already_is_no_lock_in_use() {
        assert!(!is_deferred(1, 5, 0));
    }

    #[test]
    fn a_lock_that_is_released_again_and_again_wakes_a_waiter_now_and_then() {
        assert!(is_deferred(0, 5, AT_MOST_NS - 1));
        assert!(!is_deferred(0, 5, AT_MOST_NS));
    }
}
