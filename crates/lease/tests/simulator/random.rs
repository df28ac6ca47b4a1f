//! A small generator (splitmix64), so that a run is a function of its seed.

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(crate) fn is_chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A clock that runs a little too fast or too slow, and is set to anything.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    offset: u64,
    rate_ppm: u64,
}

impl Clock {
    pub(crate) fn new(random: &mut Random, drift_ppm: u64) -> Self {
        Self {
            offset: random.below(1_000_000_000_000),
            rate_ppm: 1_000_000 - drift_ppm + random.below(2 * drift_ppm + 1),
        }
    }

    pub(crate) fn read(self, now: u64) -> u64 {
        self.offset + (u128::from(now) * u128::from(self.rate_ppm) / 1_000_000) as u64
    }

    /// The first true time at which the clock shows `reading` or more.
    pub(crate) fn when(self, reading: u64) -> u64 {
        let elapsed = u128::from(reading.saturating_sub(self.offset));
        (elapsed * 1_000_000).div_ceil(u128::from(self.rate_ppm)) as u64
    }
}
