//! A lease as a pure state machine: its holder stops believing in it before the store may give it away.
//!
//! Never reads a clock, waits or sends: the caller passes times in, and does what `next_step` names. Times are
//! nanoseconds of one clock of the holder that also counts while the machine is suspended (Linux: CLOCK_BOOTTIME).
//!
//! Invariant: `Lease::is_held` is true only at times when the store has not yet ended the lease, whatever was
//! delayed, lost, repeated or paused, as long as the two clocks' rates differ by no more than `Rules::drift_ppm`.
//! The reason is in docs/design/cluster.md; `tests/simulator` tries to break it.

#![forbid(unsafe_code)]

mod lease;
mod rules;

pub use lease::{Attempt, Lease, Loss, State, Step};
pub use rules::{Rules, RulesError};
