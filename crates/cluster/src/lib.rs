//! Primitives between machines: stores behind one port, the thread that renews, and the Python bindings over both.
//!
//! Never takes the GIL on the native thread, and never decides by itself when a lease is lost: that is
//! `unsnarl_lease`'s. docs/design/cluster.md has the reasons.
//!
//! ```text
//! binding ─► client ─► engine ─► port ◄─ stores/{etcd, postgres, redis}
//!                 ▲        └─► unsnarl_lease
//!     operation, hold, doorbell: shared by the program's threads and the native one
//! ```

// Without the bindings, as in the tests, nothing calls what they call.
#![cfg_attr(not(feature = "python"), allow(dead_code))]

mod boottime;
mod client;
mod counts;
mod doorbell;
mod engine;
mod failure;
mod hold;
mod identity;
mod name;
mod operation;
mod port;
mod runner;
mod signals;
mod stores;
mod target;
mod tls;

#[cfg(feature = "python")]
mod binding;
