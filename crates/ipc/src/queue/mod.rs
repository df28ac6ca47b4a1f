//! The queue: a ring of records, the shortest record that waits for room, and what `join` waits for.
//!
//! Invariant: a record is in the ring whole or not at all, whichever process is killed.

mod ring;
mod shortest;
mod unfinished;

pub use ring::{Ring, RingWords, Take};
pub use shortest::PutAttempts;
