//! What the hooks remember of the calling thread, and the records of all.
//!
//! Invariants: thread-local state is plain data without a Rust destructor (a
//! thread may end inside `take_gil`, or hang there for ever in 3.14+); a record
//! is handed back through a lock-free list by a pthread key's destructor, which
//! takes no lock and calls nothing of Python.

use crate::clock;
use crate::error::Unsupported;
use crate::fork::Fork;
use crate::parker::Parker;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use unsnarl_policy::{Arrival, Nanos, Policy, ThreadId};

/// Threads that can be known at a time; Linux allows a process about as many by
/// default (`vm.max_map_count` / 2). A thread beyond them waits by polling.
pub(crate) const CAPACITY: usize = 32_768;

/// A thread wants the GIL right after it got a lock, unless the kernel takes the
/// processor away; older than this, the lock was for an uncontended take.
const FROM_LOCK_WITHIN_NS: Nanos = 1_000_000;

const NONE: u32 = u32::MAX;

/// State of the calling thread.
pub(crate) struct Own {
    id: Cell<u32>,
    /// When it last came out of a wait for a lock; 0 if that has been used.
    on_lock_until: Cell<Nanos>,
    switched_at: Cell<Nanos>,
    /// This is the helper thread that provokes waits during installation.
    pub(crate) is_probe: Cell<bool>,
    /// When it dropped the GIL, if the kernel has been told that it is CPU-bound; else 0.
    pub(crate) is_off_since: Cell<Nanos>,
    pub(crate) fork: Fork,
}

thread_local! {
    static OWN: Own = const {
        Own {
            id: Cell::new(NONE),
            on_lock_until: Cell::new(0),
            switched_at: Cell::new(0),
            is_probe: Cell::new(false),
            is_off_since: Cell::new(0),
            fork: Fork::none(),
        }
    };
}

static PARKERS: [Parker; CAPACITY] = [const { Parker::new() }; CAPACITY];
static RETIRED_NEXT: [AtomicU32; CAPACITY] = [const { AtomicU32::new(NONE) }; CAPACITY];
static RETIRED: AtomicU32 = AtomicU32::new(NONE);
static KEY: std::sync::OnceLock<libc::pthread_key_t> = std::sync::OnceLock::new();

/// Runs `f` with the calling thread's state.
pub(crate) fn with_own<R>(f: impl FnOnce(&Own) -> R) -> R {
    OWN.with(f)
}

/// The parker of a thread.
pub(crate) fn parker(thread: ThreadId) -> &'static Parker {
    &PARKERS[thread.index()]
}

/// Makes the key whose destructor notices the end of threads, once.
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
    // Nobody else is at it: the caller has the turn to install.
    KEY.get_or_init(|| key);
    Ok(())
}

impl Own {
    /// The calling thread's record, if it has one.
    pub(crate) fn id(&self) -> Option<ThreadId> {
        let id = self.id.get();
        (id != NONE).then(|| ThreadId::new(id as usize))
    }

    /// The calling thread's record, made if need be; the GIL's mutex is held.
    pub(crate) fn register(&self, policy: &mut Policy) -> Option<ThreadId> {
        if let Some(id) = self.id() {
            return Some(id);
        }
        drain_retired(policy);
        // SAFETY: pthread_self has no preconditions.
        let ident = unsafe { libc::pthread_self() };
        let thread = policy.register(ident as u64)?;
        parker(thread).reset();
        crate::kernel::disinherit();
        self.id.set(thread.index() as u32);
        if let Some(&key) = KEY.get() {
            // SAFETY: the key was created and is never deleted; the value is
            // the index plus one, so that it is not null.
            unsafe { libc::pthread_setspecific(key, std::ptr::without_provenance(thread.index() + 1)) };
        }
        Some(thread)
    }

    /// How the thread comes to want the GIL; asked once per wait.
    pub(crate) fn take_arrival(&self, now: Nanos) -> Arrival {
        let switched_at = self.switched_at.take();
        let on_lock_until = self.on_lock_until.take();
        Arrival {
            was_on_lock: now.saturating_sub(on_lock_until) < FROM_LOCK_WITHIN_NS,
            switched_at: (switched_at != 0).then_some(switched_at),
        }
    }

    /// Remembers that the thread has just blocked on a lock and got it.
    pub(crate) fn was_on_lock(&self) {
        self.on_lock_until.set(clock::now());
    }

    /// Remembers when the thread came out of a forced switch.
    pub(crate) fn switched(&self, now: Nanos) {
        self.switched_at.set(now);
        // It did not leave the GIL of its own accord.
        self.is_off_since.set(now);
    }
}

/// Gives the records of ended threads back to the policy.
fn drain_retired(policy: &mut Policy) {
    // ORDERING: Acquire pairs with the Release in `retire`, which publishes the
    // link before the index.
    let mut index = RETIRED.swap(NONE, Acquire);
    while index != NONE {
        let next = RETIRED_NEXT[index as usize].load(Relaxed);
        policy.retire(ThreadId::new(index as usize));
        index = next;
    }
}

/// Forgets ended threads in the child of a fork: the policy forgets them itself.
pub(crate) fn restart_in_child() {
    RETIRED.store(NONE, Release);
}

/// Destructor of the key: the thread that had this record has ended.
extern "C" fn retire(value: *mut libc::c_void) {
    let index = (value.addr() - 1) as u32;
    OWN.with(|own| own.id.set(NONE));
    crate::kernel::retire(ThreadId::new(index as usize));
    let mut head = RETIRED.load(Relaxed);
    loop {
        RETIRED_NEXT[index as usize].store(head, Relaxed);
        // ORDERING: Release publishes the link to `drain_retired`.
        match RETIRED.compare_exchange_weak(head, index, AcqRel, Relaxed) {
            Ok(_) => return,
            Err(current) => head = current,
        }
    }
}
