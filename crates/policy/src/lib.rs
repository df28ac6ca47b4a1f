//! The scheduling policy of the GIL: events in, decisions out.
//!
//! Pure: it knows no clock, no thread, no libc and no Python, so it can be simulated in virtual
//! time ([`sim`]). The mechanism calls it in the order of events, with one lock held.
//!
//! # The policy
//!
//! A thread waits in the best class that applies, first come first served. *away* is the time
//! since it dropped the GIL, *burst* its GIL time since it last blocked (less short times away),
//! *mean* the mean of its bursts:
//!
//! ```text
//! Handed   new; or blocked on a lock, mean ≤ burst_cap
//! Io       away ≥ block, mean ≤ burst_cap; or a short call, burst ≤ burst_cap
//! Yielded  was CPU-bound, asked to drop, burst < batch_after
//! Batch    asked to drop, burst ≥ batch_after; or mean or burst > burst_cap
//! ```
//!
//! At a drop the heir is:
//!
//! ```text
//! the first of the best class,   but unless a Batch holder was asked to drop
//! the first of Batch             if credit ≥ batch_quantum, or
//! the longest waiting head       at one pick in aged_pick_every, if wait ≥ age
//!
//! credit = Σ GIL time of better classes while Batch waits × share / (1 − share)
//!          − Σ GIL time of Batch,    within ± 2 batch_quantum
//! ```
//!
//! The holder is asked to drop, on behalf of the most urgent head, once it has held the GIL for:
//!
//! ```text
//! waiter better, holder Batch     0; or the moderation, if the holder itself has woken the waiter
//! waiter better, holder better    max(patience, 2 max(mean of both)), at most slice
//! waiter Batch                    what is left of the holder's slice
//! ```
//!
//! The moderation is the rest, since the last request of this kind, of `moderation`, or of `moderation_each` times the number of waiting threads if that is more, at most
//! slice. The patience is `burst_cap` if the holder is interactive with a known mean, no Batch thread waits, and no head has
//! waited for `age`; else it is `grace`.
//!
//! A used-up slice is renewed when its owner queues; a Batch thread that barges instead has no
//! slice.
//!
//! An awake Batch heir does not take the GIL for `linger` if the dropper, or another interactive
//! thread, is predicted to return within `short`; but never if the heir itself is overdue.
//!
//! # Bounds
//!
//! With n runnable threads each thread gets the GIL within 50 ms × n / 2, plus the calls that
//! cannot be interrupted; CPU-bound threads alone wait for n − 1 slices. Waiting CPU-bound
//! threads keep `batch_share_permille` thousandths of the time for which the GIL is held, and delay
//! an interactive thread by at most a `batch_quantum` for it. The argument and its assumptions
//! are in `docs/design/gil-policy.md`;
//! the constants, with their origins, in [`Config`].
#![forbid(unsafe_code)]

mod class;
mod classify;
mod config;
pub mod deferral;
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
