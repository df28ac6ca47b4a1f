//! Scheduling policy of the GIL.
#![forbid(unsafe_code)]

mod class;
mod config;
mod histogram;
mod predictor;
mod queue;
mod scheduler;
mod spin;
mod stats;
mod thread;

pub use class::{Class, Hint};
pub use config::{Config, MICROSECOND, MILLISECOND};
pub use histogram::Histogram;
pub use scheduler::{Arrival, Grant, Policy, Taken, Verdict};
pub use stats::{ClassStats, LongestHold, Stats};
pub use thread::ThreadId;

/// Time in nanoseconds, of whatever monotonic clock the caller uses.
pub type Nanos = u64;
