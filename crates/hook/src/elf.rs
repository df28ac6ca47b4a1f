//! The interpreter's ELF object: its relocation slots, and the functions behind them.
//!
//! Must never: know what a hook does. Arrows between the files: `slots` uses `object` and
//! `original`, `object` uses `tables`.

pub(crate) mod object;
pub(crate) mod original;
pub(crate) mod slots;
mod tables;

pub use tables::{Malformed, Tables, slot_offsets};
