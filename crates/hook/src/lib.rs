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
pub mod elf;
mod error;
mod gil;
mod hooked;
mod install;
mod processors;
pub mod record;
mod spawn;
mod thread;

pub use error::Unsupported;
pub use gil::lock::{LockWait, releases_lock};
pub use install::{Options, PythonApi, install, is_installed, start_recording, stop_recording, uninstall};
pub use unsnarl_policy::{Class, ClassStats, Hint, Histogram, LongestHold, Stats};

use gil::enter::with_mutex;

/// A copy of the scheduler's counters and the number of threads that wait now;
/// `None` if it has never been installed.
#[must_use]
pub fn stats() -> Option<(Stats, u32)> {
    with_mutex(|policy| (policy.stats().clone(), policy.waiting()))
}

/// Sets all counters to zero.
pub fn reset_stats() {
    with_mutex(unsnarl_policy::Policy::reset_stats);
}

/// Says what the calling thread is; returns what was said before.
pub fn hint(hint: Hint) -> Hint {
    let replace = |policy: &mut unsnarl_policy::Policy| {
        let thread = thread::with_current(|current| current.register(policy))?;
        let before = policy.hint(thread);
        policy.set_hint(thread, hint);
        Some(before)
    };
    with_mutex(replace).flatten().unwrap_or_default()
}
