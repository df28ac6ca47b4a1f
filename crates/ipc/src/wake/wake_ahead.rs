//! Wake-ahead: how many sleepers a release of a lock wakes, one or more depending on how long a woken thread takes to
//! run.
//!
//! On an idle machine one is best: several woken threads would only contend. Where many processes run on few
//! processors, a woken thread queues behind all of them in the kernel's run queue. If each release wakes one sleeper,
//! every hand-over takes a whole round of that queue, and passing a lock along n running processes takes time that
//! grows with n². Several woken threads queue together, and each finds the lock released by the one before.
//!
//! The count doubles after each woken thread that took long to run, and decreases by one after each that did not. It
//! falls back to one as soon as a woken thread finds the lock busy. The primitives for threads (`unsnarl_sync`) use
//! the same rule on other inputs.
//!
//! Invariant: the count is only advice. Any value of the words, and any update lost between two concurrent writers,
//! costs time and nothing else.

use crate::shim::{AtomicU32, Ordering};

/// Upper bound of the waiters of one lock.
const MOST: u32 = 1 << 12;
/// Microseconds; several times what the kernel needs to schedule a process on an idle processor.
const LONG_US: u32 = 200;
/// Microseconds; a longer delay was a sleep before the wake-up: the clock's 32 bits wrap around.
const TOO_LONG_US: u32 = 10_000_000;

/// The words that releasers and woken threads share.
#[derive(Debug, Default)]
#[repr(C)]
pub struct WakeAhead {
    /// The number of sleepers to wake together, minus one.
    more: AtomicU32,
    /// The time of the last wake-up in microseconds; wraps around.
    called_us: AtomicU32,
}

impl WakeAhead {
    /// Returns how many sleepers to wake now.
    pub fn sleepers_to_wake(&self, now_us: u32) -> u32 {
        self.called_us.store(now_us, Ordering::Relaxed);
        self.more.load(Ordering::Relaxed).min(MOST - 1) + 1
    }

    /// Notes that a woken thread acquired the lock.
    pub fn acquired(&self, now_us: u32) {
        let delay_us = now_us.wrapping_sub(self.called_us.load(Ordering::Relaxed));
        let more = self.more.load(Ordering::Relaxed).min(MOST - 1);
        let then = if (LONG_US..TOO_LONG_US).contains(&delay_us) {
            (more * 2 + 1).min(MOST - 1)
        } else {
            more.saturating_sub(1)
        };
        if then != more {
            self.more.store(then, Ordering::Relaxed);
        }
    }

    /// Notes that a woken thread found the lock busy.
    pub fn found_busy(&self) {
        self.more.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_while_woken_threads_are_slow() {
        let wake_ahead = WakeAhead::default();
        let called: Vec<u32> = (0..4)
            .map(|round| {
                let count = wake_ahead.sleepers_to_wake(round * 1000);
                wake_ahead.acquired(round * 1000 + LONG_US);
                count
            })
            .collect();
        assert_eq!(called, [1, 2, 4, 8]);
        (0..100).for_each(|_| wake_ahead.acquired(3000 + LONG_US));
        assert_eq!(wake_ahead.sleepers_to_wake(0), MOST);
    }

    #[test]
    fn fast_threads_bring_it_back_one_by_one_and_a_busy_lock_immediately() {
        let wake_ahead = WakeAhead::default();
        wake_ahead.sleepers_to_wake(u32::MAX);
        (0..3).for_each(|_| wake_ahead.acquired(LONG_US)); // the clock has wrapped around
        assert_eq!(wake_ahead.sleepers_to_wake(0), 8);
        wake_ahead.acquired(LONG_US - 1);
        assert_eq!(wake_ahead.sleepers_to_wake(0), 7);
        wake_ahead.found_busy();
        assert_eq!(wake_ahead.sleepers_to_wake(0), 1);
    }

    #[test]
    fn any_word_is_advice() {
        let wake_ahead = WakeAhead {
            more: AtomicU32::new(u32::MAX),
            called_us: AtomicU32::new(u32::MAX),
        };
        assert_eq!(wake_ahead.sleepers_to_wake(7), MOST);
        wake_ahead.acquired(7 + TOO_LONG_US);
        assert_eq!(wake_ahead.sleepers_to_wake(7), MOST - 1);
    }
}
