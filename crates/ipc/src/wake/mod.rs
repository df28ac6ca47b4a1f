//! Wake-ups: the word that sleepers are woken through, how many are woken, and how a crowd of sleepers is kept from
//! stalling the holder.
//!
//! Must never know which process holds what; that is `ownership`.
//!
//! Invariant: a change of a word that a sleeper waits for is followed by a wake-up, or the sleeper sees the change.

mod bell;
mod crowd;
mod wake_ahead;

pub use bell::{ALL, Bell};
pub use crowd::{Crowd, Standing};
pub use wake_ahead::WakeAhead;
