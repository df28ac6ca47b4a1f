//! Tells the kernel's scheduler which threads are CPU-bound.
//!
//! A thread that the policy found CPU-bound becomes SCHED_BATCH with a long
//! slice: it keeps its share of the processor (both are about latency only),
//! but a thread or process with the default slice that wakes up on its
//! processor runs at once instead of after its slice (EEVDF, Linux ≥ 6.12:
//! `PREEMPT_SHORT` in `kernel/sched/features.h`). Undone as soon as the thread is
//! found interactive, has blocked while nobody else wanted the GIL, or the hints are
//! switched off.
//!
//! | who                         | changes `TOLD` of a thread        | and the kernel's idea of it |
//! |-----------------------------|-----------------------------------|------------------------------|
//! | the thread, CPU-bound       | 0 → its id, before it is batch    | batch                        |
//! | the thread, or its end      | its id → 0                        | normal                       |
//! | who switches the hints off  | its id → 0, with `IS_ENABLED` false | normal                     |
//!
//! Invariant: a thread is batch by our doing only while its entry is its id, or it is
//! about to look at the entry and at `IS_ENABLED`.
//!
//! Must never: change a thread whose scheduling somebody has chosen (anything but
//! SCHED_OTHER with the default slice); need a privilege.

use crate::thread::{CAPACITY, Own};
use crate::{clock, processors};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use unsnarl_policy::{Class, MICROSECOND, Nanos, ThreadId};

/// The longest slice the kernel accepts is 100 ms; the odd nanoseconds mark it
/// as ours.
const LONG_SLICE_NS: u64 = 99_000_017;

/// On a single processor: whoever watches the clock for the others needs it too,
/// and as a CPU-bound thread it waits for the end of this slice.
const SLICE_ALONE_NS: u64 = 5_000_017;

/// The slice of a thread for which nobody has chosen one; 0 where the kernel reports none
/// (before 6.12), `ANY` while it is not known.
static DEFAULT_SLICE_NS: AtomicU64 = AtomicU64::new(ANY);
const ANY: u64 = u64::MAX;

/// Time off the GIL that counts as blocked when nobody waits (the policy is not asked
/// then): its `block_ns`.
const BLOCKED_NS: Nanos = 30 * MICROSECOND;

static IS_ENABLED: AtomicBool = AtomicBool::new(false);
/// The kernel's ids of the threads that it has been told of, by record; else 0.
static TOLD: [AtomicI32; CAPACITY] = [const { AtomicI32::new(0) }; CAPACITY];
/// How many there are.
static TOLD_COUNT: AtomicU32 = AtomicU32::new(0);

/// `struct sched_attr` of Linux 4.20 and later (include/uapi/linux/sched/types.h).
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
    util_min: u32,
    util_max: u32,
}

/// Switches the hints on, or off for all threads.
pub(crate) fn enable(is_enabled: bool) {
    // ORDERING: SeqCst, as in `announce`: either this sees the thread's id, or the
    // thread sees that the hints are off.
    IS_ENABLED.store(is_enabled, SeqCst);
    if !is_enabled && TOLD_COUNT.load(SeqCst) != 0 {
        for told in &TOLD {
            let id = if told.load(SeqCst) == 0 { 0 } else { withdraw(told) };
            if id != 0 {
                become_normal(id);
            }
        }
    }
}

/// Learns the default slice, from the calling thread: a new one of ours, which may have
/// inherited a chosen one and gives it up.
pub(crate) fn learn_default() {
    let Some(mut attr) = get(0) else { return };
    attr.runtime = 0;
    if attr.policy == libc::SCHED_OTHER as u32 && set(0, &attr) {
        let slice_ns = get(0).map_or(ANY, |attr| attr.runtime);
        DEFAULT_SLICE_NS.store(slice_ns, Relaxed);
    }
}

/// Whether the kernel has been told of any thread: asked by every call that releases
/// the GIL.
#[inline]
pub(crate) fn has_told() -> bool {
    TOLD_COUNT.load(Relaxed) != 0
}

/// Tells the kernel about the calling thread, if there is news.
pub(crate) fn tell(own: &Own, class: Class) {
    let is_batch = class == Class::Batch && IS_ENABLED.load(Relaxed);
    match own.id() {
        Some(thread) if is_batch && !is_told(own) => announce(thread),
        _ if !is_batch => forget(own),
        _ => {}
    }
}

/// The calling thread has dropped the GIL.
pub(crate) fn dropped(own: &Own) {
    if is_told(own) {
        own.is_off_since.set(clock::now());
    }
}

/// The calling thread has taken the GIL, and nobody else wanted it.
pub(crate) fn taken(own: &Own) {
    let since = own.is_off_since.take();
    if since != 0 && is_told(own) && clock::now().saturating_sub(since) >= BLOCKED_NS {
        forget(own);
    }
}

/// The calling thread has taken the GIL as one of this class: it may have found it free,
/// and not come by [`tell`].
pub(crate) fn taken_from_others(own: &Own, class: Class) {
    own.is_off_since.set(0);
    if class != Class::Batch {
        forget(own);
    }
}

/// Makes the calling thread what it was: it is not CPU-bound any more, or about to end
/// up in other hands.
pub(crate) fn forget(own: &Own) {
    if own.id().is_some_and(retire) {
        become_normal(0);
    }
}

/// The thread that had this record has ended, or is to be told something else; whether
/// the kernel had been told of it.
pub(crate) fn retire(thread: ThreadId) -> bool {
    withdraw(&TOLD[thread.index()]) != 0
}

/// Makes the only thread of a forked child normal, and forgets the others.
pub(crate) fn restart_in_child(own: &Own) {
    forget(own);
    if has_told() {
        TOLD.iter()
            .filter(|told| told.load(Relaxed) != 0)
            .for_each(|told| told.store(0, Relaxed));
        TOLD_COUNT.store(0, Relaxed);
    }
}

fn is_told(own: &Own) -> bool {
    own.id().is_some_and(|thread| TOLD[thread.index()].load(Relaxed) != 0)
}

fn announce(thread: ThreadId) {
    // SAFETY: gettid has no preconditions.
    let id = unsafe { libc::gettid() };
    let told = &TOLD[thread.index()];
    // In this order: a child of a fork in between counts one too many, which it finds out.
    TOLD_COUNT.fetch_add(1, SeqCst);
    told.store(id, SeqCst);
    if !become_batch() {
        withdraw(told);
        return;
    }
    // ORDERING: SeqCst pairs with `enable`, which looks at the entries after its store.
    let was_withdrawn = told.load(SeqCst) == 0;
    if was_withdrawn || !IS_ENABLED.load(SeqCst) {
        withdraw(told);
        become_normal(0);
    }
}

/// Takes an entry back; the id in it, or 0.
fn withdraw(told: &AtomicI32) -> libc::pid_t {
    if told.load(Relaxed) == 0 {
        return 0;
    }
    let id = told.swap(0, SeqCst);
    if id != 0 {
        TOLD_COUNT.fetch_sub(1, SeqCst);
    }
    id
}

/// Makes a new thread normal that a thread found CPU-bound has started: Linux
/// lets it inherit what that one was told. Where the kernel reports no slices
/// (before 6.12) it cannot be told from a thread that somebody else made batch.
pub(crate) fn disinherit() {
    if IS_ENABLED.load(Relaxed) && get(0).is_some_and(|attr| is_marked(&attr)) {
        become_normal(0);
    }
}

fn become_batch() -> bool {
    let Some(mut attr) = get(0) else { return false };
    let default_ns = DEFAULT_SLICE_NS.load(Relaxed);
    if attr.policy != libc::SCHED_OTHER as u32 || (attr.runtime != default_ns && default_ns != ANY) {
        return false;
    }
    attr.policy = libc::SCHED_BATCH as u32;
    attr.runtime = if processors::is_alone() {
        SLICE_ALONE_NS
    } else {
        LONG_SLICE_NS
    };
    set(0, &attr)
}

/// Whether this is what we tell the kernel, and nobody else does.
fn is_marked(attr: &SchedAttr) -> bool {
    attr.policy == libc::SCHED_BATCH as u32 && [LONG_SLICE_NS, SLICE_ALONE_NS].contains(&attr.runtime)
}

/// Makes a thread normal of which the kernel was told, unless somebody has chosen something
/// else for it since; by the kernel's id, 0: the calling one.
fn become_normal(id: libc::pid_t) {
    let Some(mut attr) = get(id) else { return };
    let is_unreported = attr.policy == libc::SCHED_BATCH as u32 && attr.runtime == 0;
    if !is_marked(&attr) && !is_unreported {
        return;
    }
    attr.policy = libc::SCHED_OTHER as u32;
    attr.runtime = 0;
    set(id, &attr);
}

fn get(id: libc::pid_t) -> Option<SchedAttr> {
    let mut attr = SchedAttr::default();
    let size = size_of::<SchedAttr>();
    // SAFETY: `attr` is writable and `size` bytes long.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, id, &raw mut attr, size, 0) };
    (result == 0).then_some(attr)
}

fn set(id: libc::pid_t, attr: &SchedAttr) -> bool {
    // SAFETY: `attr` is readable and says its own size.
    unsafe { libc::syscall(libc::SYS_sched_setattr, id, std::ptr::from_ref(attr), 0) == 0 }
}
