//! How many heirs a free permit may have on their way to it.
//!
//! One is right where a waiter that comes in vain costs two context switches for
//! nothing. Where calls are serialised by one lock (the GIL), every heir first stands
//! in that lock's own line: with one heir at a time each hand-over then takes a whole
//! round of that line, and passing a lock along n threads that all run on grows with
//! n². Many heirs stand in it together, and each finds the permit put back by the one
//! before. So the number doubles while heirs find what they were called for, and falls
//! back to one as soon as one comes in vain: somebody keeps the permit for longer than
//! it takes the next to come.
//!
//! Invariant: at least [`TRIALS`] heirs in a row are served between two that come in
//! vain, unless they were called together.

/// Heirs in a row that must be served before two are called together.
const TRIALS: u32 = 8;

/// More heirs at once than any program has waiters.
const MOST: u32 = 1 << 20;

/// How eagerly to call waiters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Eagerness {
    heirs: u32,
    served: u32,
}

impl Default for Eagerness {
    fn default() -> Self {
        Self { heirs: 1, served: 0 }
    }
}

impl Eagerness {
    /// How many may be on their way to one free permit.
    pub(crate) fn heirs(self) -> usize {
        self.heirs as usize
    }

    /// An heir came and found a permit.
    pub(crate) fn served(&mut self) {
        self.served += 1;
        if self.served >= self.heirs.max(TRIALS) {
            self.served = 0;
            self.heirs = (self.heirs * 2).min(MOST);
        }
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
    fn it_doubles_while_heirs_are_served() {
        let mut eagerness = Eagerness::default();
        let mut rounds = 0;
        while eagerness.heirs() < 1000 {
            eagerness.served();
            rounds += 1;
        }
        assert!(rounds < 2 * 1024, "each heir is called a bounded number of times");
    }

    #[test]
    fn one_that_comes_in_vain_ends_it() {
        let mut eagerness = Eagerness::default();
        (0..100).for_each(|_| eagerness.served());
        assert!(eagerness.heirs() > 1);
        eagerness.in_vain();
        (1..TRIALS).for_each(|_| eagerness.served());
        assert_eq!(eagerness.heirs(), 1);
    }
}
