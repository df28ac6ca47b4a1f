//! How many heirs may be on their way where a permit is free, beyond one for each.
//!
//! None is right where calls do not have to stand in line for a lock (the GIL): there a second heir only comes in
//! vain. Where they do, nobody can look while another one does, so a second heir finds the
//! permit put back by the first, unless that one keeps it while it gives up the GIL; and its way,
//! some ten microseconds from its wake-up to a processor, is over in the meantime. One more is enough
//! for that: two wake-ups overlap, and what `notify_all` wakes passes the lock along a third faster.
//!
//! Where others run, an heir first stands in the GIL's own line: with one heir at a time each hand-over then takes a
//! whole round of that line, and passing a lock along n threads that all run on grows
//! with n². Many heirs stand in it together. So the number doubles with each heir that was
//! held up on its way (the shell says so, [`crate::Waiter::note_way`]), and goes down by one
//! with each that was not.
//!
//! It falls back to none as soon as one comes in vain: somebody keeps the permit for longer than it takes the
//! next to come. From then on each that comes in vain costs two context switches; so one more is tried only
//! after [`CALM`] were served.
//!
//! Things that don't work: to double while heirs find what they came for, however they
//! came. Threads that hold a lock for a moment, as those that `notify_all` wakes, were
//! then all called at once, and slept a second time each, for the GIL. Three or four on their
//! way at all times are worse than two, on two processors.
//!
//! Nor to halve with each that was not held up: of those that stand in the GIL's line
//! together some overtake the rest, and a lock was passed along half as fast.
//!
//! Invariant: after one came in vain, none is called beyond one for each permit until one was held up or [`CALM`] were
//! served.

/// More heirs at once than any program has waiters.
const MOST: u32 = 1 << 20;

/// As many as are on their way where all goes well.
const USUAL: u32 = 2;

/// Heirs to be served one at a time after one has come in vain.
const CALM: u32 = 64;

/// How eagerly to call waiters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Eagerness {
    /// On their way to one free permit.
    heirs: u32,
    /// Served since there is one heir only.
    calm: u32,
}

impl Default for Eagerness {
    fn default() -> Self {
        Self { heirs: USUAL, calm: 0 }
    }
}

impl Eagerness {
    /// How many may be on their way to so many free permits.
    pub(crate) fn heirs(self, free: usize) -> usize {
        free.saturating_add(self.heirs as usize - 1)
    }

    /// An heir came and found a permit.
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

    /// An heir came in vain.
    pub(crate) fn in_vain(&mut self) {
        *self = Self { heirs: 1, calm: 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_while_heirs_are_held_up() {
        let mut eagerness = Eagerness::default();
        (0..100).for_each(|_| eagerness.served(true));
        assert_eq!(eagerness.heirs(1), MOST as usize);
    }

    #[test]
    fn of_those_whose_way_is_free_two_are_called_at_a_time() {
        let mut eagerness = Eagerness::default();
        (0..2).for_each(|_| eagerness.served(true));
        assert_eq!(eagerness.heirs(1), 8);
        (0..100).for_each(|_| eagerness.served(false));
        assert_eq!(eagerness.heirs(1), 2);
        assert_eq!(eagerness.heirs(3), 4);
    }

    #[test]
    fn one_that_comes_in_vain_ends_it_for_a_while() {
        let mut eagerness = Eagerness::default();
        (0..100).for_each(|_| eagerness.served(true));
        eagerness.in_vain();
        for _ in 0..CALM {
            assert_eq!(eagerness.heirs(1), 1);
            eagerness.served(false);
        }
        assert_eq!(eagerness.heirs(1), 2);
    }

    #[test]
    fn one_that_is_held_up_ends_the_calm() {
        let mut eagerness = Eagerness::default();
        eagerness.in_vain();
        eagerness.served(true);
        assert_eq!(eagerness.heirs(1), 2);
    }
}
