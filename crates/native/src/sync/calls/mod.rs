//! How CPython calls a method, how its arguments are parsed, and how its result is returned.
//!
//! Must never: know a primitive, a waiter or a task.

pub(crate) mod arguments;
pub(in crate::sync) mod description;
pub(crate) mod fast;
pub(in crate::sync) mod ready;
pub(in crate::sync) mod stop;
