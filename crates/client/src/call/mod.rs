//! One warm call: the conversation with a server, and relaying signals while the worker runs.
//!
//! Must never depend on `server`: this folder gets a socket path and a key, not the reasons for them.
//!
//! Invariant: before `GO` is sent the caller may still run the plain command; after it, never.

mod connection;
pub(crate) mod handover;
pub(crate) mod inherited;
mod relay;

pub(crate) use connection::Declined;
