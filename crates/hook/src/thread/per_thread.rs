//! Thread-local state of the calling thread, and its registration with the policy.
//!
//! Must never: have a Rust destructor. A thread may end inside `take_gil`, or hang there for
//! ever from CPython 3.14 on.
//! Invariant: the end of a thread is noticed by a pthread key's destructor, which takes no
//! lock and calls no Python; it pushes the thread's entry on the list of retired ones.

use super::fork::Fork;
use super::{kernel, parker, retired};
use crate::clock;
use crate::error::Unsupported;
use std::cell::Cell;
use unsnarl_policy::deferral::{BlockExpectation, SOON_NS};
use unsnarl_policy::{Arrival, Class, Nanos, Policy, ThreadId};

/// A thread requests the GIL immediately after it acquired a lock, unless the kernel preempts
/// it. If the wait for the lock ended earlier than this, the take that followed was uncontended.
const FROM_LOCK_WITHIN_NS: Nanos = 1_000_000;

const NONE: u32 = u32::MAX;

/// State of one thread, of which only that thread reads and writes the cells.
pub(crate) struct PerThread {
    id: Cell<u32>,
    /// When its last wait for a lock ended; 0 once that has been used.
    on_lock_until: Cell<Nanos>,
    switched_at: Cell<Nanos>,
    /// When it dropped the GIL, if it is hinted to the kernel as CPU-bound; else 0.
    is_off_since: Cell<Nanos>,
    /// When it released a contended lock, if it has not dropped the GIL since; else 0.
    released_at: Cell<Nanos>,
    /// It dropped the GIL soon after that, and has neither blocked on a lock nor released one since.
    has_dropped_soon: Cell<bool>,
    block_expectation: Cell<BlockExpectation>,
    /// It is the probe thread, which provokes waits during installation.
    pub(crate) is_probe: Cell<bool>,
    pub(crate) fork: Fork,
}

thread_local! {
    static CURRENT: PerThread = const {
        PerThread {
            id: Cell::new(NONE),
            on_lock_until: Cell::new(0),
            switched_at: Cell::new(0),
            is_off_since: Cell::new(0),
            released_at: Cell::new(0),
            has_dropped_soon: Cell::new(false),
            block_expectation: Cell::new(BlockExpectation::UNKNOWN),
            is_probe: Cell::new(false),
            fork: Fork::none(),
        }
    };
}

static KEY: std::sync::OnceLock<libc::pthread_key_t> = std::sync::OnceLock::new();

/// Runs `f` with the calling thread's state.
pub(crate) fn with_current<R>(f: impl FnOnce(&PerThread) -> R) -> R {
    CURRENT.with(f)
}

/// Creates the key whose destructor notices the end of threads, once.
///
/// # Errors
/// [`Unsupported`] if the process has no key left.
pub(crate) fn prepare() -> Result<(), Unsupported> {
    if KEY.get().is_some() {
        return Ok(());
    }
    let mut key = 0;
    // SAFETY: `key` is writable; the destructor has the C ABI and stays
    // loaded (the library is never unloaded).
    if unsafe { libc::pthread_key_create(&raw mut key, Some(retire)) } != 0 {
        return Err(Unsupported::new(
            "this process has used up its keys for thread-local storage (PTHREAD_KEYS_MAX)",
            "load fewer libraries, or run without the scheduler",
        ));
    }
    // No other thread creates it: the caller holds the installation guard.
    KEY.get_or_init(|| key);
    Ok(())
}

impl PerThread {
    /// The thread's entry in the policy's table, if it has one.
    pub(crate) fn id(&self) -> Option<ThreadId> {
        let id = self.id.get();
        (id != NONE).then(|| ThreadId::new(id as usize))
    }

    /// The thread's entry, made on first use, if the table has room; the GIL's mutex is held.
    pub(crate) fn register(&self, policy: &mut Policy) -> Option<ThreadId> {
        if let Some(id) = self.id() {
            return Some(id);
        }
        retired::drain(policy);
        // SAFETY: pthread_self has no preconditions.
        let ident = unsafe { libc::pthread_self() };
        let thread = policy.register(ident as u64)?;
        parker::of(thread).reset();
        kernel::disinherit();
        self.id.set(thread.index() as u32);
        if let Some(&key) = KEY.get() {
            // SAFETY: the key was created and is never deleted; the value is
            // the index plus one, so that it is not null.
            unsafe { libc::pthread_setspecific(key, std::ptr::without_provenance(thread.index() + 1)) };
        }
        Some(thread)
    }

    /// How the thread came to request the GIL; read once per wait. `holder_has_woken`: see [`Arrival`].
    pub(crate) fn take_arrival(&self, now: Nanos, holder_has_woken: bool) -> Arrival {
        let switched_at = self.switched_at.take();
        let on_lock_until = self.on_lock_until.take();
        Arrival {
            was_on_lock: now.saturating_sub(on_lock_until) < FROM_LOCK_WITHIN_NS,
            holder_has_woken,
            switched_at: (switched_at != 0).then_some(switched_at),
        }
    }

    /// Whether it has blocked on a lock since it last took the GIL.
    pub(crate) fn comes_from_lock(&self) -> bool {
        self.on_lock_until.get() != 0
    }

    /// The thread has blocked on a lock, and has just acquired it.
    pub(crate) fn was_on_lock(&self) {
        self.on_lock_until.set(clock::now());
    }

    /// The thread releases a contended lock; returns whether it is expected to block on a lock soon.
    pub(crate) fn releases_lock(&self, now: Nanos) -> bool {
        if self.has_dropped_soon.take() {
            self.learn_block(false);
        }
        self.released_at.set(now);
        self.block_expectation.get().is_soon()
    }

    /// The thread drops the GIL, perhaps after the release of a contended lock.
    pub(crate) fn drops_after_release(&self, now: Nanos) {
        let since = self.released_at.take();
        if since != 0 {
            let is_soon = now.saturating_sub(since) < SOON_NS;
            self.has_dropped_soon.set(is_soon);
            if !is_soon {
                self.learn_block(false);
            }
        }
    }

    /// The thread is about to block on a lock.
    pub(crate) fn blocks_on_lock(&self) {
        if self.has_dropped_soon.take() {
            self.learn_block(true);
        }
    }

    fn learn_block(&self, has_blocked_soon: bool) {
        self.block_expectation
            .set(self.block_expectation.get().after(has_blocked_soon));
    }

    /// The thread's forced switch has ended.
    pub(crate) fn switched(&self, now: Nanos) {
        self.switched_at.set(now);
        // It was made to drop the GIL; it has not blocked.
        self.is_off_since.set(now);
    }

    /// The thread has dropped the GIL. `now` is asked for only if it matters.
    pub(crate) fn dropped_gil(&self, now: impl FnOnce() -> Nanos) {
        if self.is_hinted() {
            self.is_off_since.set(now());
        }
    }

    /// The thread has taken the GIL, and no other thread requested it.
    pub(crate) fn took_uncontended(&self) {
        let since = self.is_off_since.take();
        if since != 0 && self.is_hinted() && clock::now().saturating_sub(since) >= kernel::BLOCKED_NS {
            self.withdraw_hint();
        }
    }

    /// The thread has taken the GIL as one of this class. It may have found the GIL free, and
    /// so not have passed by [`hint_kernel`](Self::hint_kernel).
    pub(crate) fn took_contended(&self, class: Class) {
        self.is_off_since.set(0);
        if class != Class::Batch {
            self.withdraw_hint();
        }
    }

    /// Hints the kernel that the thread is of this class, if that is new.
    pub(crate) fn hint_kernel(&self, class: Class) {
        if let Some(thread) = self.id() {
            kernel::hint(thread, class);
        }
    }

    /// Makes the thread's scheduling normal: it is no longer CPU-bound, or is about to start
    /// a thread or program that would inherit its scheduling.
    pub(crate) fn withdraw_hint(&self) {
        if let Some(thread) = self.id() {
            kernel::withdraw_own(thread);
        }
    }

    fn is_hinted(&self) -> bool {
        self.id().is_some_and(kernel::is_hinted)
    }
}

/// Destructor of the key: the thread with this entry has ended.
extern "C" fn retire(value: *mut libc::c_void) {
    let thread = ThreadId::new(value.addr() - 1);
    CURRENT.with(|current| current.id.set(NONE));
    kernel::forget_ended(thread);
    retired::push(thread);
}
