//! A parker for each thread: one futex word, on which its owner spins and then sleeps until it
//! is notified.
//!
//! | word     | meaning                                   | transitions |
//! |----------|-------------------------------------------|-------------------|
//! | `AWAKE`  | not notified; the owner is on a processor | owner → `ASLEEP`, others → `NOTIFIED` |
//! | `ASLEEP` | the owner is in, or about to enter, FUTEX_WAIT | owner → `AWAKE`, others → `NOTIFIED` + FUTEX_WAKE |
//! | `NOTIFIED` | notified, not yet noticed               | owner → `AWAKE`, `revoke` → `AWAKE` |
//!
//! Must never: be taken for the decision itself. A notification is a hint to re-check; the
//! policy decides, under the GIL's mutex.
//! Invariant: a word is `ASLEEP` only while its owner is committed to sleep, and the thread that
//! changes it from `ASLEEP` to `NOTIFIED` makes the one wake call. So a notification is never
//! lost, and costs a system call only if the owner sleeps.

use super::table::{CAPACITY, Table};
use crate::{clock, futex};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use unsnarl_policy::{Nanos, ThreadId};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;
const NOTIFIED: u32 = 2;

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Notified before it went to sleep.
    NotifiedAwake,
    /// Notified in its sleep.
    Notified,
    /// The deadline passed.
    TimedOut,
}

/// The parker of one thread, aligned so that no two share a cache line.
#[repr(align(64))]
#[derive(Debug)]
pub(crate) struct Parker {
    word: AtomicU32,
    /// An awake owner does not take the GIL before this time.
    not_before: AtomicU64,
}

static PARKERS: Table<Parker> = [const { Parker::new() }; CAPACITY];

/// The parker of a thread.
pub(crate) fn of(thread: ThreadId) -> &'static Parker {
    &PARKERS[thread.index()]
}

impl Parker {
    const fn new() -> Self {
        Self {
            word: AtomicU32::new(AWAKE),
            not_before: AtomicU64::new(0),
        }
    }

    /// Clears an earlier notification. The owner calls it with the GIL's mutex held, before the
    /// policy decides whether it waits.
    pub(crate) fn reset(&self) {
        self.word.store(AWAKE, Relaxed);
    }

    /// Waits for a notification: spins for `spin_ns`, then sleeps until `until`.
    pub(crate) fn park(&self, start: Nanos, spin_ns: Nanos, until: Nanos) -> Outcome {
        if spin_ns > 0 && self.spin(start + spin_ns) {
            self.reset();
            return Outcome::NotifiedAwake;
        }
        let outcome = self.sleep(until);
        self.reset();
        outcome
    }

    fn spin(&self, deadline: Nanos) -> bool {
        loop {
            for _ in 0..32 {
                // ORDERING: Acquire pairs with the Release in `notify`, here and below: `not_before`
                // was written before it.
                if self.word.load(Acquire) == NOTIFIED {
                    break;
                }
                std::hint::spin_loop();
            }
            let now = clock::now();
            // ORDERING: Acquire, as above.
            if self.word.load(Acquire) == NOTIFIED {
                if now >= self.not_before.load(Relaxed) {
                    return true;
                }
            } else if now >= deadline {
                return false;
            }
        }
    }

    fn sleep(&self, until: Nanos) -> Outcome {
        // ORDERING: Acquire on failure pairs with the Release in `notify`.
        if self.word.compare_exchange(AWAKE, ASLEEP, Relaxed, Acquire).is_err() {
            return Outcome::NotifiedAwake;
        }
        loop {
            let is_late = futex::wait(self.word.as_ptr(), ASLEEP, until) == libc::ETIMEDOUT;
            // Anything but ASLEEP: notified, and perhaps revoked since.
            // ORDERING: Acquire pairs with the Release in `notify`, here and in the exchange.
            if self.word.load(Acquire) != ASLEEP {
                return Outcome::Notified;
            }
            if is_late {
                // The exchange sees a notification that arrives after the load.
                // ORDERING: as above.
                return match self.word.compare_exchange(ASLEEP, AWAKE, Relaxed, Acquire) {
                    Ok(_) => Outcome::TimedOut,
                    Err(_) => Outcome::Notified,
                };
            }
        }
    }

    /// Notifies the owner; returns whether it had to be woken from its sleep.
    ///
    /// An earlier notification that is still unnoticed keeps its urgency. The caller holds the
    /// GIL's mutex, which serialises all notifications.
    pub(crate) fn notify(&self, not_before: Nanos) -> bool {
        let was_asleep = self.mark_notified(not_before);
        if was_asleep {
            self.wake();
        }
        was_asleep
    }

    /// As [`notify`](Self::notify), but the caller makes the wake call, by [`wake`](Self::wake), if this returns true.
    pub(crate) fn mark_notified(&self, not_before: Nanos) -> bool {
        let is_pending = self.word.load(Relaxed) == NOTIFIED;
        let earliest = if is_pending {
            self.not_before.load(Relaxed).min(not_before)
        } else {
            not_before
        };
        self.not_before.store(earliest, Relaxed);
        // ORDERING: Release pairs with the Acquire loads of the owner.
        self.word.swap(NOTIFIED, Release) == ASLEEP
    }

    /// Wakes the owner, which was asleep when it was notified.
    pub(crate) fn wake(&self) {
        futex::wake(self.word.as_ptr());
    }

    /// Whether the owner has been notified, and has not noticed it yet.
    pub(crate) fn is_notified(&self) -> bool {
        self.word.load(Relaxed) == NOTIFIED
    }

    /// Notifies the owner to take the GIL at `not_before` if it is awake; else lets it sleep.
    pub(crate) fn notify_if_awake(&self, not_before: Nanos) {
        if self.word.load(Relaxed) != ASLEEP {
            self.notify(not_before);
        }
    }

    /// Revokes a notification whose `not_before` has not passed. Any other notification stays: the
    /// owner re-checks, and parks again.
    pub(crate) fn revoke(&self, now: Nanos) {
        if now >= self.not_before.load(Relaxed) {
            return;
        }
        let _ = self.word.compare_exchange(NOTIFIED, AWAKE, Relaxed, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Parker};
    use crate::clock;
    use std::sync::Arc;

    const LONG: u64 = 60_000_000_000;

    #[test]
    fn a_notification_before_the_wait_ends_it_at_once() {
        let parker = Parker::new();
        assert!(!parker.notify(0));
        assert_eq!(
            parker.park(clock::now(), 0, clock::now() + LONG),
            Outcome::NotifiedAwake
        );
    }

    #[test]
    fn a_wait_without_notification_times_out() {
        let parker = Parker::new();
        assert_eq!(
            parker.park(clock::now(), 1_000, clock::now() + 100_000),
            Outcome::TimedOut
        );
    }

    #[test]
    fn a_revoked_notification_is_not_seen() {
        let parker = Parker::new();
        parker.notify(LONG);
        parker.revoke(0);
        assert_eq!(parker.park(clock::now(), 0, clock::now()), Outcome::TimedOut);
    }

    #[test]
    fn only_a_notification_for_later_can_be_revoked() {
        let parker = Parker::new();
        parker.notify(0);
        parker.notify(LONG);
        parker.revoke(0);
        assert_eq!(parker.park(clock::now(), 0, clock::now()), Outcome::NotifiedAwake);
    }

    #[test]
    fn no_notification_is_lost_between_two_threads() {
        let pair = Arc::new((Parker::new(), Parker::new()));
        let other = Arc::clone(&pair);
        let partner = std::thread::spawn(move || {
            for round in 0..20_000 {
                assert_ne!(
                    other.1.park(clock::now(), round % 3 * 1_000, clock::now() + LONG),
                    Outcome::TimedOut
                );
                other.0.notify(0);
            }
        });
        for round in 0..20_000 {
            pair.1.notify(0);
            assert_ne!(
                pair.0.park(clock::now(), round % 2 * 1_000, clock::now() + LONG),
                Outcome::TimedOut
            );
        }
        partner.join().unwrap();
    }
}
