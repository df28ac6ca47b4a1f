//! Queue, LifoQueue, PriorityQueue and SimpleQueue.
//!
//! | file | holds |
//! |---|---|
//! | `state`, `items`, `hooks` | what a queue consists of: its items, or the Python container in their place |
//! | `access`, `batch`, `end` | putting and getting one item, or many in one call; emptying and shutting down |
//! | `waits` | the wait to put, to get, to join |
//! | `methods`, `kinds` | the classes as Python sees them |
//! | `calls`, `awaitable`, `priority` | the fast paths of `put`, `get`, `async_put`, `async_get` |
//!
//! Must never: run Python code while the core's mutex is held.

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
