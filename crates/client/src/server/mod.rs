//! Which server may take a call, where its files are, and how one is started.
//!
//! Must never talk to a server (`call` does), nor wait for one.
//!
//! Invariant: two calls get the same key only if a worker of one server can stand in for both processes.

pub(crate) mod account;
pub(crate) mod against;
pub(crate) mod calls;
pub(crate) mod economy;
pub(crate) mod facts;
pub(crate) mod key;
pub(crate) mod parts;
pub(crate) mod plan;
pub(crate) mod process_state;
pub(crate) mod runtime_directory;
pub(crate) mod start;
