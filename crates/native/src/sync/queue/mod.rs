//! Queue and its kinds.
//!
//! Must never: hold the core's mutex while Python code runs.

pub(in crate::sync) mod access;
pub(in crate::sync) mod awaitable;
pub(in crate::sync) mod batch;
pub(in crate::sync) mod calls;
pub(in crate::sync) mod end;
pub(in crate::sync) mod hooks;
pub(in crate::sync) mod items;
pub(in crate::sync) mod kinds;
pub(in crate::sync) mod methods;
pub(in crate::sync) mod priority;
pub(in crate::sync) mod state;
pub(in crate::sync) mod waits;
