//! Wake-ahead: the number of heirs beyond one for each free permit, adapted to what they find.
//!
//! Where calls are not serialised by a lock (the GIL), no extra heir is right: it would only find the permit
//! taken. Where they are, no party can re-check while another one does. A second heir then finds the permit
//! put back by the first, unless the first keeps the permit while it releases the GIL. The second heir's way
//! from its wake-up to a processor, some ten microseconds, passes in the meantime. One extra heir is enough
//! for that: two wake-ups overlap, and the threads that `notify_all` wakes pass the lock along a third
//! faster.
//!
//! Where other threads run, an heir first waits for the GIL. With one heir at a time each hand-over then
//! takes a whole round of the GIL's queue, and passing a lock along n running threads grows with n². Many
//! heirs wait in that queue together. So the number doubles with each heir that was held up
//! ([`crate::Waiter::note_delay`]), and decreases by one with each that was not.
//!
//! The number falls back to none as soon as one heir acquires nothing: then some thread keeps the permit for
//! longer than the next heir needs. From then on each spurious wake-up costs two context switches, so one
//! extra heir is tried again only after [`CALM`] heirs acquired.
//!
//! Things that don't work:
//!
//! - Doubling while heirs acquire, whether held up or not. Threads that hold a lock for a moment, such as
//!   those that `notify_all` wakes, were then all woken together, and each slept a second time, for the GIL.
//! - Three or four heirs at all times: slower than two, on two processors.
//! - Halving with each heir that was not held up. Of the heirs in the GIL's queue some overtake the rest, and
//!   a lock was passed along half as fast.
//!
//! Invariant: after an heir acquired nothing, there is no extra heir until one was held up or [`CALM`] have
//! acquired.

/// More heirs than any program has waiters.
const MOST: u32 = 1 << 20;

/// The number of heirs for one permit where none is held up.
const USUAL: u32 = 2;

/// The number of heirs that must acquire, one at a time, after a spurious wake-up.
const CALM: u32 = 64;

/// How many waiters to wake ahead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WakeAhead {
    /// Heirs for one free permit.
    heirs: u32,
    /// Heirs that acquired since the number fell to one.
    calm: u32,
}

impl Default for WakeAhead {
    fn default() -> Self {
        Self { heirs: USUAL, calm: 0 }
    }
}

impl WakeAhead {
    /// The number of heirs for `free` permits.
    pub(crate) fn heirs(self, free: usize) -> usize {
        free.saturating_add(self.heirs as usize - 1)
    }

    /// An heir acquired a permit.
    pub(crate) fn served(&mut self, was_held_up: bool) {
        if was_held_up {
            self.heirs = (self.heirs * 2).min(MOST);
        } else if self.heirs > USUAL {
            self.heirs -= 1;
        } else if self.heirs < USUAL {
            self.calm += 1;
            if self.calm >= CALM {
                *self = Self::default();
            }
        }
    }

    /// An heir found no permit: its wake-up was spurious.
    pub(crate) fn spurious(&mut self) {
        *self = Self { heirs: 1, calm: 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_doubles_while_heirs_are_held_up() {
        let mut wake_ahead = WakeAhead::default();
        (0..100).for_each(|_| wake_ahead.served(true));
        assert_eq!(wake_ahead.heirs(1), MOST as usize);
    }

    #[test]
    fn without_delay_there_are_two_heirs_at_a_time() {
        let mut wake_ahead = WakeAhead::default();
        (0..2).for_each(|_| wake_ahead.served(true));
        assert_eq!(wake_ahead.heirs(1), 8);
        (0..100).for_each(|_| wake_ahead.served(false));
        assert_eq!(wake_ahead.heirs(1), 2);
        assert_eq!(wake_ahead.heirs(3), 4);
    }

    #[test]
    fn a_spurious_wake_up_ends_it_for_a_while() {
        let mut wake_ahead = WakeAhead::default();
        (0..100).for_each(|_| wake_ahead.served(true));
        wake_ahead.spurious();
        for _ in 0..CALM {
            assert_eq!(wake_ahead.heirs(1), 1);
            wake_ahead.served(false);
        }
        assert_eq!(wake_ahead.heirs(1), 2);
    }

    #[test]
    fn an_heir_that_is_held_up_ends_the_calm() {
        let mut wake_ahead = WakeAhead::default();
        wake_ahead.spurious();
        wake_ahead.served(true);
        assert_eq!(wake_ahead.heirs(1), 2);
    }
}
