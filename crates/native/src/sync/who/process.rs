//! The process across forks: an epoch that each child increments, and a generation that counts deaths of parties.
//!
//! Must never: allocate, lock or call Python in the child's fork handler.
//!
//! Invariant: once a party can no longer run (its process was forked away, or its thread has ended), the generation
//! differs from every value that was read while that party lived.

use super::thread;
use pyo3::prelude::*;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering};

static EPOCH: AtomicU32 = AtomicU32::new(0);
static GENERATION: AtomicU32 = AtomicU32::new(0);
static SURVIVOR: AtomicUsize = AtomicUsize::new(NO_THREAD);
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// A number that no thread has.
const NO_THREAD: usize = usize::MAX;

/// A number that differs between a process and its forked children.
pub(in crate::sync) fn epoch() -> u32 {
    EPOCH.load(Ordering::Relaxed)
}

/// A number that changes whenever parties may have died, by a fork or with their thread.
pub(in crate::sync) fn generation() -> u32 {
    // ORDERING: pairs with the release in `count_deaths`; a thread that reads the new number sees which parties died.
    GENERATION.load(Ordering::Acquire)
}

/// Change the generation: some parties have died.
pub(in crate::sync) fn count_deaths() {
    // ORDERING: pairs with the acquire in `generation`.
    GENERATION.fetch_add(1, Ordering::Release);
}

/// The process's identity, without a system call.
#[cfg_attr(
    Py_3_12,
    allow(dead_code, reason = "asyncio's own answer costs no system call from 3.12 on")
)]
pub(in crate::sync) fn id() -> libc::pid_t {
    PROCESS.load(Ordering::Relaxed)
}

/// Whether the calling thread is the process's first one, which runs Python's signal handlers. Asked once per thread and
/// process: the two system calls would cost a wait a twentieth of its time.
pub(in crate::sync) fn is_in_main_thread() -> bool {
    thread_local! {
        static ANSWER: Cell<Option<(u32, bool)>> = const { Cell::new(None) };
    }
    match ANSWER.get() {
        Some((asked_in, answer)) if asked_in == epoch() => answer,
        _ => {
            // SAFETY: gettid(2) and getpid(2) always succeed.
            let answer = unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) };
            ANSWER.set(Some((epoch(), answer)));
            answer
        }
    }
}

/// The number of the only thread that the last fork left alive in this process.
pub(in crate::sync) fn survivor() -> usize {
    SURVIVOR.load(Ordering::Relaxed)
}

/// Treat the surviving thread's other greenlets as dead: like threads, they belong to the parent.
#[pyfunction]
pub(in crate::sync) fn leave_greenlets_behind() {
    SURVIVOR.store(NO_THREAD, Ordering::Relaxed);
    count_deaths();
}

/// Register the fork handler, which marks the waiters of the parent's threads as dead in the child. The handler also
/// calls `forget`, which must only write to atomics.
pub(in crate::sync) fn watch_forks(forget: fn()) {
    static FORGET: OnceLock<fn()> = OnceLock::new();
    extern "C" fn in_child() {
        SURVIVOR.store(thread::number(), Ordering::Relaxed);
        EPOCH.fetch_add(1, Ordering::Relaxed);
        count_deaths();
        note_process();
        if let Some(forget) = FORGET.get() {
            forget();
        }
    }
    fn note_process() {
        // SAFETY: getpid(2) always succeeds.
        PROCESS.store(unsafe { libc::getpid() }, Ordering::Relaxed);
    }
    note_process();
    if FORGET.set(forget).is_ok() {
        // SAFETY: pthread_atfork(3): the handler only writes to atomics, and the library
        // that contains it is never unloaded (extension modules are not).
        unsafe {
            libc::pthread_atfork(None, None, Some(in_child));
        }
    }
}
