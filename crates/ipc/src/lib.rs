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

mod barrier;
mod bell;
mod condition;
mod countdown;
mod crowd;
mod eagerness;
mod event;
mod header;
mod kernel;
mod ledger;
mod ring;
mod robust;
mod rwlock;
mod semaphore;
mod shim;
mod shortest;
mod unfinished;

pub use barrier::{Arrival, BarrierWords};
pub use bell::{ALL, Bell};
pub use condition::{ConditionCell, ConditionWords};
pub use countdown::CountdownWords;
pub use crowd::{Crowd, Standing};
pub use eagerness::Eagerness;
pub use event::EventWords;
pub use header::{Facts, HEADER_WORDS, Header, Kind, LAYOUT, Refusal};
pub use kernel::{Kernel, Slept, Step};
pub use ledger::{Account, Books, Ledger, Threads};
pub use ring::{Ring, RingWords, Take};
pub use robust::{
    Attempt, DIED, Guarded, TID_MASK, WAITERS, lock_or_sleep, release_guard, try_guard, try_lock, unlock,
};
pub use rwlock::RwWords;
pub use semaphore::SemaphoreWords;
pub use shim::{AtomicU32, AtomicU64, Ordering};
pub use shortest::Effort;
