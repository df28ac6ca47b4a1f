//! Predicts whether a thread that drops the GIL returns immediately.
//!
//! A two-level adaptive predictor (Yeh & Patt, MICRO-24, 1991): the outcomes of
//! the last four drops select one of 16 two-bit saturating counters. It learns
//! patterns such as "send is short, recv is long" exactly, per thread, in eight
//! bytes.
//!
//! Invariant: an untrained predictor predicts "long"; after one wrong "short" in a context it takes
//! two right outcomes until "short" is predicted there again.

const HISTORY_MASK: u8 = 0b1111;
const STRONGLY_SHORT: u32 = 3;
/// From this counter value on, "short" is predicted.
const BELIEVE: u32 = 2;

/// Outcome history and counters of one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Predictor {
    counters: u32,
    history: u8,
}

impl Predictor {
    /// Whether the next off-GIL period is expected to be short.
    #[must_use]
    pub(crate) const fn is_short_expected(&self) -> bool {
        self.counter() >= BELIEVE
    }

    /// Records whether the last period was short.
    pub(crate) const fn record(&mut self, was_short: bool) {
        let counter = self.counter();
        let next = if was_short {
            if counter < STRONGLY_SHORT { counter + 1 } else { counter }
        } else {
            counter.saturating_sub(2)
        };
        let shift = self.shift();
        self.counters = (self.counters & !(0b11 << shift)) | (next << shift);
        self.history = ((self.history << 1) | was_short as u8) & HISTORY_MASK;
    }

    const fn shift(&self) -> u32 {
        (self.history as u32) * 2
    }

    const fn counter(&self) -> u32 {
        (self.counters >> self.shift()) & 0b11
    }
}

#[cfg(test)]
mod tests {
    use super::Predictor;

    fn hits(pattern: &[bool], rounds: usize) -> usize {
        let mut predictor = Predictor::default();
        let mut hits = 0;
        for round in 0..rounds {
            for &short in pattern {
                if round >= rounds / 2 && predictor.is_short_expected() == short {
                    hits += 1;
                }
                predictor.record(short);
            }
        }
        hits
    }

    #[test]
    fn says_long_before_it_has_seen_anything() {
        assert!(!Predictor::default().is_short_expected());
    }

    #[test]
    fn learns_a_send_recv_alternation_exactly() {
        assert_eq!(hits(&[true, false], 20), 20);
    }

    #[test]
    fn learns_patterns_of_up_to_its_history() {
        assert_eq!(hits(&[true, true, true, false], 20), 40);
    }

    #[test]
    fn one_long_period_withdraws_belief() {
        let mut predictor = Predictor::default();
        for _ in 0..10 {
            predictor.record(true);
        }
        assert!(predictor.is_short_expected());
        predictor.record(false);
        for _ in 0..4 {
            predictor.record(true);
        }
        assert!(!predictor.is_short_expected());
    }
}
