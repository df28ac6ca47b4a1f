//! A histogram of durations with logarithmic buckets, eight per octave.
//!
//! Must never: divide or allocate in `record`, which is a shift and an increment. Invariant: a
//! quantile is exact to one part in eight, and the maximum is exact.

use crate::Nanos;

const SUB_BITS: u32 = 3;
const SUB: u64 = 1 << SUB_BITS;
/// Enough buckets for every 64-bit duration.
const BUCKETS: usize = (64 - SUB_BITS as usize + 1) * SUB as usize;

/// Counts of durations in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    counts: [u32; BUCKETS],
    total: u64,
    sum: u128,
    max: Nanos,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: [0; BUCKETS],
            total: 0,
            sum: 0,
            max: 0,
        }
    }
}

impl Histogram {
    /// Adds one duration.
    pub fn record(&mut self, duration: Nanos) {
        let bucket = &mut self.counts[bucket_of(duration)];
        *bucket = bucket.saturating_add(1);
        self.total += 1;
        self.sum += u128::from(duration);
        self.max = self.max.max(duration);
    }

    /// Number of durations recorded.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.total
    }

    /// Sum of all durations, in nanoseconds (saturating).
    #[must_use]
    pub fn sum(&self) -> Nanos {
        u64::try_from(self.sum).unwrap_or(u64::MAX)
    }

    /// Longest duration, in nanoseconds.
    #[must_use]
    pub const fn max(&self) -> Nanos {
        self.max
    }

    /// Number of durations below `1 << exponent` nanoseconds; exact, since a bucket begins at each power of two.
    /// A bucket that has counted 2³² - 1 durations counts no more.
    #[must_use]
    pub fn count_below(&self, exponent: u32) -> u64 {
        self.counts[..bucket_of(1 << exponent)]
            .iter()
            .map(|&count| u64::from(count))
            .sum()
    }

    /// Upper bound of the bucket that holds the quantile `per_mille`/1000
    /// (nearest rank), never above the maximum; 0 when empty.
    #[must_use]
    pub fn quantile(&self, per_mille: u32) -> Nanos {
        let rank = (self.total * u64::from(per_mille)).div_ceil(1000).max(1);
        let mut seen = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            seen += u64::from(count);
            if seen >= rank {
                return upper_bound(bucket).min(self.max);
            }
        }
        self.max
    }
}

const fn bucket_of(duration: Nanos) -> usize {
    if duration < SUB {
        return duration as usize;
    }
    let octave = 63 - duration.leading_zeros();
    let sub = (duration >> (octave - SUB_BITS)) & (SUB - 1);
    (((octave - SUB_BITS + 1) as u64) * SUB + sub) as usize
}

const fn upper_bound(bucket: usize) -> Nanos {
    let bucket = bucket as u64;
    if bucket < SUB {
        return bucket;
    }
    let octave = bucket / SUB - 1;
    let lowest = (SUB + bucket % SUB) << octave;
    lowest + ((1 << octave) - 1)
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, Histogram, bucket_of, upper_bound};
    use proptest::prelude::*;

    #[test]
    fn an_empty_histogram_has_zero_quantiles() {
        assert_eq!(Histogram::default().quantile(990), 0);
    }

    proptest! {
        #[test]
        fn every_duration_lies_within_an_eighth_of_its_bucket(duration: u64) {
            let bucket = bucket_of(duration);
            prop_assert!(bucket < BUCKETS);
            let upper = upper_bound(bucket);
            prop_assert!(duration <= upper);
            prop_assert!(upper - duration <= duration / 8);
        }

        #[test]
        fn counts_below_a_power_of_two_are_exact(durations in prop::collection::vec(any::<u64>(), 0..100), exponent in 0u32..64) {
            let mut histogram = Histogram::default();
            durations.iter().for_each(|&duration| histogram.record(duration));
            let below = durations.iter().filter(|&&duration| duration < 1 << exponent).count();
            prop_assert_eq!(histogram.count_below(exponent), below as u64);
        }

        #[test]
        fn quantiles_agree_with_a_sorted_list(mut durations in prop::collection::vec(0u64..1 << 40, 1..200), per_mille in 1u32..=1000) {
            let mut histogram = Histogram::default();
            durations.iter().for_each(|&duration| histogram.record(duration));
            durations.sort_unstable();
            let rank = (durations.len() * per_mille as usize).div_ceil(1000).max(1);
            let exact = durations[rank - 1];
            let found = histogram.quantile(per_mille);
            prop_assert!(found >= exact && found <= exact + exact / 8);
            prop_assert_eq!(histogram.max(), *durations.last().unwrap());
        }
    }
}
