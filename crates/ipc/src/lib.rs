//! Protocols of the primitives between processes, on atomic words in shared memory.
//!
//! Another process may change any word at any time. It may also be killed between any two instructions and never
//! finish a change. Therefore shared memory holds no pointers, every bit pattern of every word has a meaning, and no
//! operation waits inside this crate: an operation is done, or it names the word to sleep on ([`Step`]).
//!
//! Must never call the operating system, know Python, or read a clock. The kernel's services are passed in through
//! [`Kernel`]. Folders depend on each other in this order: `primitive` and `queue` → `ownership` → `wake` → `kernel`.
//!
//! Invariant: if a process dies in the middle of an operation, the next operation can finish, undo or report it.
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
    Account, Attempt, Books, DIED, Guarded, Ledger, TID_MASK, Threads, WAITERS, lock_or_sleep, observe, release_guard,
    try_guard, try_lock, unlock,
};
pub use primitive::{
    Arrival, BarrierWords, ConditionCell, ConditionWords, CountdownWords, EventWords, RwWords, SemaphoreWords,
};
pub use queue::{PutAttempts, Ring, RingWords, Take};
pub use shim::{AtomicU32, AtomicU64, Ordering};
pub use wake::{ALL, Bell, Crowd, Standing, WakeAhead};
