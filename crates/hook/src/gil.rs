//! The hooks of the one GIL that is scheduled, and the state behind them.
//!
//! The GIL's own mutex is the queue's lock: the policy is only used with it held.
//! Must never: call Python, allocate, or take a second lock in a hook.
//! Arrows between the files: the hooks (`cond`, `sem`, `lock`) use `enter` and `deferred_wake`, `enter` uses
//! `fork` and `departed`, and all use `state`.

pub(crate) mod cond;
pub(crate) mod deferred_wake;
mod departed;
pub(crate) mod enter;
pub(crate) mod fork;
pub(crate) mod lock;
pub(crate) mod sem;
pub(crate) mod sighting;
mod slice;
pub(crate) mod state;
