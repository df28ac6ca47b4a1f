//! Decides whether to spin for a hand-over, by a score of recent successes.
//!
//! Invariant: after enough failures only one try in [`RETRY`] is made. So a thread whose
//! hand-overs are slow pays almost nothing, and still detects that they have become fast.

/// One try in this many while spinning does not pay.
const RETRY: u8 = 16;
const BEST: u8 = 7;
const INITIAL: u8 = 4;
const WORTH_IT: u8 = 2;

/// Success score of one thread for one kind of wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpinScore {
    score: u8,
    skipped: u8,
}

impl Default for SpinScore {
    fn default() -> Self {
        Self {
            score: INITIAL,
            skipped: 0,
        }
    }
}

impl SpinScore {
    /// Whether to spin this time.
    pub(crate) const fn is_worth_it(&mut self) -> bool {
        if self.score >= WORTH_IT {
            return true;
        }
        self.skipped = (self.skipped + 1) % RETRY;
        self.skipped == 0
    }

    /// Records whether the hand-over came while the thread spun.
    pub(crate) const fn record(&mut self, came: bool) {
        if !came {
            self.score = self.score.saturating_sub(1);
        } else if self.score < BEST {
            self.score += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RETRY, SpinScore};

    #[test]
    fn failures_reduce_tries_to_one_in_sixteen_and_successes_restore_them() {
        let mut score = SpinScore::default();
        for _ in 0..100 {
            if score.is_worth_it() {
                score.record(false);
            }
        }
        let tries = (0..u32::from(RETRY) * 10).filter(|_| score.is_worth_it()).count();
        assert_eq!(tries, 10);
        score.record(true);
        score.record(true);
        assert!(score.is_worth_it() && score.is_worth_it());
    }
}
