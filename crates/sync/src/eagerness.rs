//! How many heirs a free permit may have on their way to it.
//!
//! One is right where heirs find the way free: more of them only stand in each other's,
//! and each costs two context switches more. Where calls are serialised by one lock (the
//! GIL) and others run, an heir first stands in that lock's own line: with one heir at a
//! time each hand-over then takes a whole round of that line, and passing a lock along n
//! threads that all run on grows with n². Many heirs stand in it together, and each finds
//! the permit put back by the one before. So the number doubles with each heir that was
//! held up on its way (the shell says so, [`crate::Waiter::note_way`]), goes down by one
//! with each that was not, and falls back to one as soon as one comes in vain: somebody keeps the
//! permit for longer than it takes the next to come.
//!
//! Things that don't work: to double while heirs find what they came for, however they
//! came. Threads that hold a lock for a moment, as those that `notify_all` wakes, were
//! then all called at once, and slept a second time each, for the GIL.
//!
//! Nor to halve with each that was not held up: of those that stand in the GIL's line
//! together some overtake the rest, and a lock was passed along half as fast.
//!
//! Invariant: two are called together only after one was held up since the last that
//! came in vain.

/// More heirs at once than any program has waiters.
const MOST: u32 = 1 << 20;

/// How eagerly to call waiters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Eagerness {
    heirs: u32,
}

impl Default for Eagerness {
    fn default() -> Self {
        Self { heirs: 1 }
    }
}

impl Eagerness {
    /// How many may be on their way to one free permit.
    pub(crate) fn heirs(self) -> usize {
        self.heirs as usize
    }

    /// An heir came and found a permit.
    pub(crate) fn served(&mut self, was_held_up: bool) {
        self.heirs = if was_held_up {
            (self.heirs * 2).min(MOST)
        } else {
            (self.heirs - 1).max(1)
        };
    }

    /// An heir came in vain.
    pub(crate) fn in_vain(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_while_heirs_are_held_up() {
        let mut eagerness = Eagerness::default();
        (0..100).for_each(|_| eagerness.served(true));
        assert_eq!(eagerness.heirs(), MOST as usize);
    }

    #[test]
    fn those_whose_way_is_free_are_called_one_at_a_time() {
        let mut eagerness = Eagerness::default();
        (0..3).for_each(|_| eagerness.served(true));
        assert_eq!(eagerness.heirs(), 8);
        (0..100).for_each(|_| eagerness.served(false));
        assert_eq!(eagerness.heirs(), 1);
    }

    #[test]
    fn one_that_comes_in_vain_ends_it() {
        let mut eagerness = Eagerness::default();
        (0..100).for_each(|_| eagerness.served(true));
        eagerness.in_vain();
        assert_eq!(eagerness.heirs(), 1);
    }
}
