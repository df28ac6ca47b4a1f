//! Decides whether the release of a contended lock wakes a waiter now or at the next drop of the GIL.
//!
//! A thread that waits for a lock of the interpreter needs the GIL as well, and the thread that releases the lock
//! has the GIL. A waiter that is woken at the release finds the lock taken again, or becomes the lock's owner while
//! it has no GIL: then the releaser blocks on the lock at its next use, and each use costs a hand-over (a convoy).
//!
//! ```text
//! deferred if    the lock was held, a waiter watches, the last wake-up was less than `AT_MOST_NS` ago, and
//!                two or more threads wait for the lock; or
//!                one thread waits, contended releases follow each other within `BUSY_NS`, and this thread
//!                usually blocks on a lock within `SOON_NS` of such a release
//! ```
//!
//! The second case is `Condition`, `Event` and `Queue`, which wake a thread by a lock of its own, and every lock of
//! CPython 3.14 and later: there each waiting thread has a semaphore. Invariant: a deferred wake-up is late by no more
//! than the releaser's hold of the GIL or [`WATCH_NS`] (4.5 ms: [`WatchPace`]), whichever is shorter.

use crate::Nanos;
use crate::config::{LATE_NS, MICROSECOND};

/// Wake-ups are deferred for at most this long, if the lock is released again and again. It is a few hand-overs
/// between two processors (40 to 60 µs each), so that their cost is a fraction of the work between them.
pub const AT_MOST_NS: Nanos = 200 * MICROSECOND;
/// How often the watching waiter looks for a deferred wake-up: the delay if the releaser computes and keeps the GIL.
/// The standard interpreter makes such a waiter wait for the switch interval, 5 ms.
pub const WATCH_NS: Nanos = 1_000 * MICROSECOND;
/// A waiter stops watching after so many looks in a row between which nothing was deferred.
pub const IDLE_LOOKS: u32 = 2;

/// How often the watching waiter looks at present.
///
/// A timer that expires before the kernel's next tick costs more than the rest of a wait in some virtual machines, and is
/// of no use where releasers drop the GIL before it. So the interval is [`WATCH_NS`] at first and after a look that found
/// a wake-up to be made, and 4.5 ms after several waits in a row without such a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WatchPace(u8);

impl WatchPace {
    const CALM: u8 = 8;

    /// Before the first wait.
    pub const UNKNOWN: Self = Self(0);

    /// The time from now until the watching waiter looks, in nanoseconds.
    #[must_use]
    pub const fn interval_ns(self) -> Nanos {
        if self.0 < Self::CALM { WATCH_NS } else { LATE_NS }
    }

    /// The pace after a wait: whether a look of the watching waiter made a wake-up that was due.
    #[must_use]
    pub const fn after(self, was_needed: bool) -> Self {
        if was_needed {
            Self(0)
        } else if self.0 < Self::CALM {
            Self(self.0 + 1)
        } else {
            self
        }
    }

    /// The pace as a number, for an atomic variable.
    #[must_use]
    pub const fn as_u8(self) -> u8 {
        self.0
    }

    /// The pace of a number from [`as_u8`](Self::as_u8).
    #[must_use]
    pub const fn of_u8(number: u8) -> Self {
        Self(number)
    }
}

/// Contended releases that follow each other within this time are those of a lock in heavy use: a few sections of
/// some ten microseconds.
pub const BUSY_NS: Nanos = 100 * MICROSECOND;
/// A thread that blocks on a lock within this time of a release does so about when a woken waiter is on a processor (40
/// to 60 µs); or the waiter has displaced it from its own processor meanwhile.
pub const SOON_NS: Nanos = 100 * MICROSECOND;

/// A contended release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContendedPost {
    /// Permits of the semaphore before it.
    pub value: u32,
    /// Threads that wait for it.
    pub waiters: u32,
    /// Time since a waiter was last woken.
    pub since_wake_ns: Nanos,
    /// Time since the last contended release, of any semaphore.
    pub since_release_ns: Nanos,
    /// Whether the thread is expected to block on a lock soon.
    pub blocks_soon: bool,
}

/// Whether a release defers its wake-up, if a waiter watches.
#[must_use]
pub const fn is_deferred(release: ContendedPost) -> bool {
    let is_in_heavy_use = release.since_release_ns < BUSY_NS && release.blocks_soon;
    release.value == 0
        && release.since_wake_ns < AT_MOST_NS
        && (release.waiters >= 2 || (release.waiters == 1 && is_in_heavy_use))
}

/// Whether a thread usually blocks on a lock soon after a contended release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockExpectation(u8);

impl BlockExpectation {
    const BEST: u8 = 7;
    const EXPECTED: u8 = 4;

    /// Before the first release: not expected.
    pub const UNKNOWN: Self = Self(0);

    /// Whether the thread is expected to block soon after the next release.
    #[must_use]
    pub const fn is_soon(self) -> bool {
        self.0 >= Self::EXPECTED
    }

    /// The expectation after one more release: whether the thread's next drop of the GIL was to block on a lock, and soon.
    /// A wrong expectation counts as much as three that were right, since it delays a thread.
    #[must_use]
    pub const fn after(self, has_blocked_soon: bool) -> Self {
        if !has_blocked_soon {
            Self(self.0.saturating_sub(3))
        } else if self.0 < Self::BEST {
            Self(self.0 + 1)
        } else {
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AT_MOST_NS, BUSY_NS, BlockExpectation, ContendedPost, WATCH_NS, WatchPace, is_deferred};
    use crate::config::LATE_NS;

    const USUAL: ContendedPost = ContendedPost {
        value: 0,
        waiters: 2,
        since_wake_ns: 0,
        since_release_ns: BUSY_NS,
        blocks_soon: false,
    };

    #[test]
    fn a_single_waiter_is_woken_at_once_unless_the_lock_is_in_heavy_use_and_the_thread_blocks_soon() {
        let single = ContendedPost { waiters: 1, ..USUAL };
        let heavy = ContendedPost {
            since_release_ns: BUSY_NS - 1,
            ..single
        };
        assert!(!is_deferred(ContendedPost { waiters: 0, ..USUAL }));
        assert!(!is_deferred(single));
        assert!(!is_deferred(heavy));
        assert!(!is_deferred(ContendedPost {
            blocks_soon: true,
            ..single
        }));
        assert!(is_deferred(ContendedPost {
            blocks_soon: true,
            ..heavy
        }));
    }

    #[test]
    fn several_waiters_are_woken_at_the_drop() {
        assert!(is_deferred(USUAL));
    }

    #[test]
    fn a_lock_that_is_free_already_is_no_lock_in_use() {
        assert!(!is_deferred(ContendedPost { value: 1, ..USUAL }));
    }

    #[test]
    fn a_lock_that_is_released_again_and_again_wakes_a_waiter_now_and_then() {
        assert!(is_deferred(ContendedPost {
            since_wake_ns: AT_MOST_NS - 1,
            ..USUAL
        }));
        assert!(!is_deferred(ContendedPost {
            since_wake_ns: AT_MOST_NS,
            ..USUAL
        }));
    }

    #[test]
    fn a_thread_that_computes_after_a_release_loses_its_expectation_faster_than_it_gains_it() {
        let mut expectation = BlockExpectation::UNKNOWN;
        for _ in 0..4 {
            assert!(!expectation.is_soon());
            expectation = expectation.after(true);
        }
        assert!(expectation.is_soon());
        assert!(!expectation.after(false).is_soon());
    }

    #[test]
    fn a_watcher_looks_late_after_waits_that_needed_no_look_and_soon_after_one_that_did() {
        let mut pace = WatchPace::UNKNOWN;
        for _ in 0..8 {
            assert_eq!(pace.interval_ns(), WATCH_NS);
            pace = pace.after(false);
        }
        assert_eq!(pace.after(false).interval_ns(), LATE_NS);
        assert_eq!(WatchPace::of_u8(pace.as_u8()), pace);
        assert_eq!(pace.after(true).interval_ns(), WATCH_NS);
    }
}
