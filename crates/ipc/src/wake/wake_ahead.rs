//! How many sleepers a release of a lock calls: one, or more where each is long on its way.
//!
//! One is right where the way is free: more of them would stand in each other's. Where many
//! processes run on few processors, the one that is called first stands in the kernel's line behind
//! all that run; with one at a time, each hand-over takes a whole round of that line, and passing
//! a lock along n processes that run on grows with n². Many stand in that line together, and each
//! finds the lock given back by the one before. So the number doubles with each that was long on its
//! way, goes down by one with each that was not, and falls back to one as soon as one comes in vain.
//! It is the rule of the primitives for threads (`unsnarl_sync`), with what is known here in the
//! place of what is known there.
//!
//! Invariant: advice alone. Any value of the words, and any loss between two that change them at
//! once, costs time and nothing else.

use crate::shim::{AtomicU32, Ordering};

/// As many as can wait for anything here.
const MOST: u32 = 1 << 12;
/// Several times what the kernel needs to give a process a processor.
const LONG_US: u32 = 200;
/// More than this is no way but a sleep before it: the clock's 32 bits go round.
const TOO_LONG_US: u32 = 10_000_000;

/// What those that give a lock back and those that come for it tell each other.
#[derive(Debug, Default)]
#[repr(C)]
pub struct WakeAhead {
    /// One less than are called together.
    more: AtomicU32,
    /// When somebody was called last, in microseconds that go round.
    called_us: AtomicU32,
}

impl WakeAhead {
    /// How many to call now.
    pub fn sleepers_to_wake(&self, now_us: u32) -> u32 {
        self.called_us.store(now_us, Ordering::Relaxed);
        self.more.load(Ordering::Relaxed).min(MOST - 1) + 1
    }

    /// One that was called has the lock.
    pub fn acquired(&self, now_us: u32) {
        let way_us = now_us.wrapping_sub(self.called_us.load(Ordering::Relaxed));
        let more = self.more.load(Ordering::Relaxed).min(MOST - 1);
        let then = if (LONG_US..TOO_LONG_US).contains(&way_us) {
            (more * 2 + 1).min(MOST - 1)
        } else {
            more.saturating_sub(1)
        };
        if then != more {
            self.more.store(then, Ordering::Relaxed);
        }
    }

    /// One that was called came in vain.
    pub fn found_busy(&self) {
        self.more.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_while_the_way_is_long() {
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
    fn a_free_way_brings_it_back_one_by_one_and_a_vain_one_at_once() {
        let wake_ahead = WakeAhead::default();
        wake_ahead.sleepers_to_wake(u32::MAX);
        (0..3).for_each(|_| wake_ahead.acquired(LONG_US)); // the clock has gone round
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
