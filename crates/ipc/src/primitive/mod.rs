//! One file a primitive: its words in shared memory, and the attempts at each operation on them.
//!
//! Lock and RLock have no file here: their word is a robust word (`ownership`). The queue has a folder.
//!
//! Invariant: an attempt never waits; it is done, or names the word to sleep on.

mod barrier;
mod condition;
mod countdown;
mod event;
mod rwlock;
mod semaphore;

pub use barrier::{Arrival, BarrierWords};
pub use condition::{ConditionCell, ConditionWords};
pub use countdown::CountdownWords;
pub use event::EventWords;
pub use rwlock::RwWords;
pub use semaphore::SemaphoreWords;
