//! Scheduling policy of the GIL.
#![forbid(unsafe_code)]

mod class;
mod classify;
mod config;
mod histogram;
mod ports;
mod predictor;
mod queue;
mod scheduler;
pub mod sim;
mod spin;
mod stats;
mod thread;

pub use class::{Class, Hint};
pub use config::{Config, MICROSECOND, MILLISECOND};
pub use histogram::Histogram;
pub use ports::{Arrival, Grant, Taken, Verdict};
pub use scheduler::Policy;
pub use stats::{ClassStats, LongestHold, Stats};
pub use thread::ThreadId;

/// Time in nanoseconds, of whatever monotonic clock the caller uses.
pub type Nanos = u64;
