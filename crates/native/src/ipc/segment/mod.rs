//! The segment behind every object: how it is made, opened, handed to a child, listed and removed, and what
//! goes wrong with it.
//!
//! Must never look into a primitive's words.
//!
//! Invariant: an object has exactly one segment, from its construction to its end.

mod body;
pub(super) mod errors;
mod listing;

pub(super) use body::{Body, Inheritance};
pub(super) use listing::register;
