//! Mechanism of the GIL scheduler: hooks the calls by which a running CPython waits for, drops
//! and takes its GIL, and has [`unsnarl_policy`] decide.
//!
//! The hooks are installed by writing the relocation slots (GOT) of a few functions in the one
//! ELF object that contains the interpreter, and in the one where `subprocess` starts programs.
//! There is no LD_PRELOAD, no other object is changed, and [`uninstall`] restores the slots. See
//! `docs/design/gil-mechanism.md`.
//!
//! Must never: decide anything (the policy does), call Python from a hook, allocate in a hook.
//! Once loaded the library is never unloaded: a thread may be inside a hook, or hang there for
//! ever at the end of the process.
//!
//! Arrows between the folders, each pointing to what it uses:
//!
//! ```text
//! install ──► hooked ──► gil ──► record ──► thread ──► clock, processors, error
//!    │           └──► spawn ──────────────────┘
//!    └──────────────► elf: slots, originals (used by every hook)
//! ```
//!
//! - `elf`: the interpreter's object, its slots, the functions behind them;
//! - `thread`: what is kept of each thread: state, parker, hint to the kernel, fork;
//! - `record`: the recorder;
//! - `gil`: the hooks of the GIL's and the locks' calls, and the state of the GIL;
//! - `spawn`: the hooks of the calls that start threads and programs;
//! - `hooked`: the list of hooked functions;
//! - `install`: installs, records, uninstalls.

#![cfg(target_os = "linux")]

mod clock;
pub mod elf;
mod error;
mod futex;
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

/// Sets the hint of the calling thread; returns the previous one.
pub fn hint(hint: Hint) -> Hint {
    let replace = |policy: &mut unsnarl_policy::Policy| {
        let thread = thread::with_current(|current| current.register(policy))?;
        let before = policy.hint(thread);
        policy.set_hint(thread, hint);
        Some(before)
    };
    with_mutex(replace).flatten().unwrap_or_default()
}
