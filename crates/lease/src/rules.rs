//! How long a holder may believe in a lease, and when it renews; lengths only, no times.
//!
//! Invariant: `belief_ns` is shorter than the time to live by the drift of both clocks and a margin.

use core::fmt;

/// A holder's clock and the store's may differ in rate by this many parts per million, together.
///
/// NTP slews a clock by at most 500 ppm (ntpd, adjtimex(2)); twice that, for two machines, and again as much in hand.
const DRIFT_PPM: u64 = 2_000;

/// Nanoseconds that a check may be older than the call that it is meant to protect: one of Linux's slowest timer ticks.
const MARGIN_NS: u64 = 10_000_000;

/// Renewals in one time to live: two may be lost before the lease is.
const RENEWALS_PER_TTL: u64 = 3;

/// A renewal without an answer for this fraction of the time to live is sent again.
const RETRIES_PER_TTL: u64 = 10;

/// The shortest time to live, in nanoseconds, that leaves room for the margin and a renewal.
const SHORTEST_NS: u64 = 100_000_000;

/// The longest one: a day.
const LONGEST_NS: u64 = 86_400_000_000_000;

/// The lengths that follow from a time to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    ttl_ns: u64,
    drift_ppm: u64,
    margin_ns: u64,
}

/// A time to live that no lease can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RulesError {
    ttl_ns: u64,
}

impl fmt::Display for RulesError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.ttl_ns / 1_000_000;
        write!(
            formatter,
            "a lease's ttl is 0.1 s to 86400 s, not {}.{:03} s",
            millis / 1000,
            millis % 1000
        )
    }
}

impl core::error::Error for RulesError {}

impl Rules {
    /// Returns the rules for leases of `ttl_ns` nanoseconds.
    ///
    /// # Errors
    ///
    /// The time to live is shorter than 0.1 s or longer than a day.
    pub fn new(ttl_ns: u64) -> Result<Self, RulesError> {
        if !(SHORTEST_NS..=LONGEST_NS).contains(&ttl_ns) {
            return Err(RulesError { ttl_ns });
        }
        Ok(Self {
            ttl_ns,
            drift_ppm: DRIFT_PPM,
            margin_ns: MARGIN_NS,
        })
    }

    /// The time to live, as the store is asked for it.
    #[must_use]
    pub fn ttl_ns(&self) -> u64 {
        self.ttl_ns
    }

    /// By how many parts per million the two clocks' rates may differ.
    #[must_use]
    pub fn drift_ppm(&self) -> u64 {
        self.drift_ppm
    }

    /// How long after it *sent* a request the holder may believe in what the request brought.
    #[must_use]
    pub fn belief_ns(&self) -> u64 {
        // At most 8.64e13 × 2e3: far below 2^64.
        let drift_ns = self.ttl_ns * self.drift_ppm / 1_000_000;
        self.ttl_ns - drift_ns - self.margin_ns
    }

    /// How long after it sent a request that was confirmed the holder sends the next one.
    #[must_use]
    pub fn renewal_ns(&self) -> u64 {
        self.ttl_ns / RENEWALS_PER_TTL
    }

    /// How long the holder waits for an answer before it sends again.
    #[must_use]
    pub fn retry_ns(&self) -> u64 {
        self.ttl_ns / RETRIES_PER_TTL
    }
}
