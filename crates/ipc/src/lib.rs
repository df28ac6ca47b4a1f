//! The primitives between processes, as protocols on words in shared memory.
//!
//! Everything here works on atomics that some other process may change at any
//! time, or may stop changing for ever because it was killed between any two
//! instructions. So there are no pointers in shared memory, every bit pattern of
//! every word has a meaning, and nothing is waited for inside of this crate: an
//! operation either is done or names the word to sleep on ([`Step`]).
//!
//! Must never: call the operating system, know Python, or read a clock. What it
//! needs of the kernel comes in through [`Kernel`].
//!
//! Invariant: an operation that a process did not live to finish leaves words
//! that the next one can finish, undo or report.
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

mod header;
mod kernel;
mod ownership;
mod primitive;
mod queue;
mod shim;
mod wake;

pub use header::{Expectations, HEADER_WORDS, Header, Kind, LAYOUT, Refusal};
pub use kernel::{Kernel, Slept, Step};
pub use ownership::{
    Account, Attempt, Books, DIED, Guarded, Ledger, TID_MASK, Threads, WAITERS, lock_or_sleep, release_guard,
    try_guard, try_lock, unlock,
};
pub use primitive::{
    Arrival, BarrierWords, ConditionCell, ConditionWords, CountdownWords, EventWords, RwWords, SemaphoreWords,
};
pub use queue::{PutAttempts, Ring, RingWords, Take};
pub use shim::{AtomicU32, AtomicU64, Ordering};
pub use wake::{ALL, Bell, Crowd, Standing, WakeAhead};
