//! Mechanism of the GIL scheduler: redirects what a running CPython does when it
//! waits for, drops and takes its GIL to [`unsnarl_policy`].
//!
//! How: by writing the relocation slots (GOT) of a few functions in the one ELF
//! object that contains the interpreter (and in the one where `subprocess` starts
//! programs). No LD_PRELOAD, no other object touched, undone by [`uninstall`]. See `docs/design/gil-mechanism.md`.
//!
//! Must never: decide anything (that is the policy's), call Python from a hook,
//! allocate in a hook. Once loaded the library is never unloaded: a thread may be
//! inside a hook, or hang there for ever at the end of the process.

#![cfg(target_os = "linux")]

mod clock;
/// The interpreter's ELF object and its relocation slots.
pub mod elf {
    pub(crate) mod object;
    pub(crate) mod original;
    pub(crate) mod slots;
    mod tables;
    pub use tables::{Malformed, Tables, slot_offsets};
}
mod error;
mod gil {
    pub(crate) mod cond;
    pub(crate) mod departed;
    pub(crate) mod fork;
    pub(crate) mod lock;
    pub(crate) mod sem;
    pub(crate) mod slice;
    mod state;
    pub(crate) use state::*;
}
mod hooked;
mod install;
mod processors;
pub mod record;
mod spawn;
mod thread {
    pub(crate) mod kernel;
    pub(crate) mod parker;
    mod per_thread;
    pub(crate) use per_thread::*;
}

use elf::{object, slots};
use gil::{cond, departed, fork, lock, slice};
use thread::{kernel, parker};

pub use error::Unsupported;
pub use install::{Options, PythonApi, install, is_installed, start_recording, stop_recording, uninstall};
pub use lock::{LockWait, releases_lock};
pub use unsnarl_policy::{Class, ClassStats, Hint, Histogram, LongestHold, Stats};

/// A copy of the scheduler's counters and the number of threads that wait now;
/// `None` if it has never been installed.
#[must_use]
pub fn stats() -> Option<(Stats, u32)> {
    cond::with_mutex(|policy| (policy.stats().clone(), policy.waiting()))
}

/// Sets all counters to zero.
pub fn reset_stats() {
    cond::with_mutex(unsnarl_policy::Policy::reset_stats);
}

/// Says what the calling thread is; returns what was said before.
pub fn hint(hint: Hint) -> Hint {
    let replace = |policy: &mut unsnarl_policy::Policy| {
        let thread = thread::with_own(|own| own.register(policy))?;
        let before = policy.hint(thread);
        policy.set_hint(thread, hint);
        Some(before)
    };
    cond::with_mutex(replace).flatten().unwrap_or_default()
}
