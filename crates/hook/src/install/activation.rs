//! Puts the policy in charge of the GIL, and takes it out of charge again.
//!
//! Must never: write a slot; that is `redirection`'s. Invariant: `COND` is set last and cleared first,
//! with the GIL's mutex held, so every hook sees either the whole scheduler or none.

use super::probe::provoke_wait;
use super::python_api::PythonApi;
use crate::error::Unsupported;
use crate::gil::enter::with_mutex;
use crate::gil::state::{self, COND, MUTEX, SWITCH_COND};
use crate::gil::{deferred_wake, fork, sighting};
use crate::processors;
use crate::thread::{self, CAPACITY, kernel, parker, with_current};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;
use unsnarl_policy::{Config, Nanos, Policy};

/// Options of an installation.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Initial slice of CPU-bound threads (`sys.getswitchinterval()`).
    pub slice_ns: Nanos,
    /// Least share of the GIL of CPU-bound threads, in thousandths.
    pub batch_share_permille: u32,
    /// Whether the kernel is hinted which threads are CPU-bound.
    pub kernel_hints: bool,
}

/// Creates what the hooks need, before the first slot is written.
pub(super) fn prepare(options: &Options) -> Result<(), Unsupported> {
    // SAFETY: no hook is active, so no other thread uses the policy.
    if unsafe { state::policy() }.is_none() {
        let config = Config {
            slice_ns: options.slice_ns,
            ..Config::default()
        };
        // SAFETY: as above.
        unsafe { state::set_policy(Policy::new(config, CAPACITY)) };
    }
    thread::prepare()?;
    fork::register()?;
    processors::refresh();
    deferred_wake::prepare();
    kernel::enable(options.kernel_hints);
    Ok(())
}

/// Puts the policy in charge, and tests that it is.
pub(super) fn activate(api: &PythonApi, options: &Options) -> Result<(), Unsupported> {
    let seen = sighting::last();
    MUTEX.store(seen.mutex, Relaxed);
    SWITCH_COND.store(seen.switch_cond, Relaxed);
    with_mutex(|policy| {
        policy.set_slice(options.slice_ns);
        policy.set_batch_share(options.batch_share_permille);
        policy.set_alone(processors::is_bound_to_one());
        let thread = with_current(|current| current.register(policy));
        policy.resume(thread);
        // Relaxed is enough: the mutex publishes it, and every hook that reads it to use the
        // policy holds the mutex.
        COND.store(seen.cond, Relaxed);
    });
    let waits_before = with_mutex(|policy| total_waits(policy));
    if provoke_wait(api, || with_mutex(|policy| total_waits(policy)) > waits_before) {
        return Ok(());
    }
    Err(Unsupported::new(
        "the self-test failed: a thread that wanted the GIL did not reach the scheduler",
        "report it with the output of `python -VV`",
    ))
}

fn total_waits(policy: &Policy) -> u64 {
    policy.stats().classes.iter().map(|class| class.waits).sum()
}

/// Takes the policy out of charge; the waiters return to the interpreter.
pub(super) fn deactivate() {
    kernel::enable(false);
    deferred_wake::stop();
    if MUTEX.load(Relaxed).is_null() {
        return;
    }
    with_mutex(|policy| {
        COND.store(null_mut(), Relaxed);
        notify_all(policy);
    });
}

/// Wakes every thread that waits in the policy's queue: it finds that the hooks pass through.
fn notify_all(policy: &Policy) {
    policy.for_each_waiting(|thread| {
        parker::of(thread).notify(0);
    });
}
