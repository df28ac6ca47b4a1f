//! Random numbers of the simulator: splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
//!
//! Five lines of our own instead of a dependency: a seed must give the same trace
//! with every version of every library.

/// A generator; the same seed gives the same numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator that starts from `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `most`, both included.
    pub const fn up_to(&mut self, most: u64) -> u64 {
        if most == 0 {
            return 0;
        }
        ((self.bits() as u128 * (most as u128 + 1)) >> 64) as u64
    }
}
