//! Waking sleepers: through which word, how many, and what keeps a crowd of them from stalling the holder.
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
