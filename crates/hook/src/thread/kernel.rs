//! Hints to the kernel's scheduler about which threads are CPU-bound.
//!
//! A thread that the policy found CPU-bound becomes SCHED_BATCH with a long slice. It keeps
//! its share of the processor (both are about latency only). But a thread or process with the
//! default slice that wakes up on its processor runs immediately instead of after its slice
//! (EEVDF, Linux ≥ 6.12: `PREEMPT_SHORT` in `kernel/sched/features.h`). The hint is withdrawn
//! as soon as the thread is found interactive, has blocked while no other thread wanted the
//! GIL, or the hints are switched off.
//!
//! | writer | its entry in `HINTED` | the thread's scheduling |
//! |---|---|---|
//! | the thread, when CPU-bound | 0 → its id, before it is batch | batch |
//! | the thread, or its end | its id → 0 | normal |
//! | the thread that switches the hints off | its id → 0, with `IS_ENABLED` false | normal |
//!
//! Invariant: unsnarl has made a thread batch only while its entry is its id, or while the
//! thread is about to check the entry and `IS_ENABLED`.
//!
//! Must never: change a thread whose scheduling the program has chosen (anything but
//! SCHED_OTHER with the default slice); need a privilege.

use super::table::{CAPACITY, Table};
use crate::processors;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use unsnarl_policy::{Class, MICROSECOND, Nanos, ThreadId};

/// The longest slice the kernel accepts is 100 ms; the odd nanoseconds mark it
/// as ours.
const LONG_SLICE_NS: u64 = 99_000_017;

/// The slice on a single processor. The timekeeper of the waiters needs that processor too,
/// and as a CPU-bound thread it waits for the end of this slice.
const SLICE_ALONE_NS: u64 = 5_000_017;

/// The slice of a thread for which the program has chosen none; 0 where the kernel reports
/// none (before 6.12), `ANY` while it is unknown.
static DEFAULT_SLICE_NS: AtomicU64 = AtomicU64::new(ANY);
const ANY: u64 = u64::MAX;

/// Time off the GIL that counts as blocked while no thread waits; the policy is not called
/// then. The value is the policy's `block_ns`.
pub(super) const BLOCKED_NS: Nanos = 30 * MICROSECOND;

static IS_ENABLED: AtomicBool = AtomicBool::new(false);
/// The kernel's id of each thread that is hinted; 0 for the others.
static HINTED: Table<AtomicI32> = [const { AtomicI32::new(0) }; CAPACITY];
/// How many threads are hinted.
static HINTED_COUNT: AtomicU32 = AtomicU32::new(0);

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
    // ORDERING: SeqCst pairs with `announce`: either the loads below see the thread's id,
    // or the thread sees that the hints are off.
    let was_enabled = IS_ENABLED.swap(is_enabled, SeqCst);
    if is_enabled || !was_enabled {
        return;
    }
    // ORDERING: SeqCst, as above.
    if HINTED_COUNT.load(SeqCst) != 0 {
        for entry in &HINTED {
            let id = if entry.load(SeqCst) == 0 { 0 } else { clear(entry) };
            if id != 0 {
                become_normal(id);
            }
        }
    }
    // A thread that is made normal here may have started another one just before.
    while disinherit_all() {}
}

/// Makes every thread of the process normal that inherited its scheduling from a hinted thread: C code may start
/// threads that never wait for the GIL. Returns whether there was one. Limits: those of [`disinherit`].
fn disinherit_all() -> bool {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return false;
    };
    let mut has_found = false;
    for thread in threads.flatten() {
        let id = thread.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(id) = id
            && get(id).is_some_and(|attr| is_marked(&attr))
        {
            has_found |= become_normal(id);
        }
    }
    has_found
}

/// Learns the default slice from the calling thread, a new probe thread. It may have inherited
/// a slice that the program has chosen; it resets that.
pub(crate) fn learn_default() {
    let Some(mut attr) = get(0) else { return };
    attr.runtime = 0;
    if attr.policy == libc::SCHED_OTHER as u32 && set(0, &attr) {
        let slice_ns = get(0).map_or(ANY, |attr| attr.runtime);
        DEFAULT_SLICE_NS.store(slice_ns, Relaxed);
    }
}

/// Whether any thread is hinted: read at every call that releases the GIL.
#[inline]
pub(crate) fn has_hinted() -> bool {
    HINTED_COUNT.load(Relaxed) != 0
}

/// Hints the kernel that the calling thread, which is `thread`, is of this class, if that is new.
pub(super) fn hint(thread: ThreadId, class: Class) {
    let is_batch = class == Class::Batch && IS_ENABLED.load(Relaxed);
    if !is_batch {
        withdraw_own(thread);
    } else if !is_hinted(thread) {
        announce(thread);
    }
}

/// Makes the scheduling of the calling thread, which is `thread`, what it was.
pub(super) fn withdraw_own(thread: ThreadId) {
    if clear(&HINTED[thread.index()]) != 0 {
        become_normal(0);
    }
}

/// Forgets that a thread, which has ended, was hinted.
pub(super) fn forget_ended(thread: ThreadId) {
    clear(&HINTED[thread.index()]);
}

/// Makes the only thread of a forked child normal, and forgets the others.
pub(crate) fn restart_in_child(survivor: Option<ThreadId>) {
    if let Some(thread) = survivor {
        withdraw_own(thread);
    }
    if has_hinted() {
        HINTED
            .iter()
            .filter(|entry| entry.load(Relaxed) != 0)
            .for_each(|entry| entry.store(0, Relaxed));
        HINTED_COUNT.store(0, Relaxed);
    }
}

/// Whether this thread is hinted.
pub(super) fn is_hinted(thread: ThreadId) -> bool {
    HINTED[thread.index()].load(Relaxed) != 0
}

fn announce(thread: ThreadId) {
    // SAFETY: gettid has no preconditions.
    // glibc has it as a function only from 2.30 on.
    let id = unsafe { libc::syscall(libc::SYS_gettid) } as libc::pid_t;
    let entry = &HINTED[thread.index()];
    // Count first: the child of a fork in between counts one too many, and corrects that.
    // ORDERING: SeqCst pairs with `enable`: its store to `IS_ENABLED` precedes its loads of
    // the count and the entries, and these stores come before the load of `IS_ENABLED` below.
    HINTED_COUNT.fetch_add(1, SeqCst);
    entry.store(id, SeqCst);
    if !become_batch() {
        clear(entry);
        return;
    }
    // ORDERING: SeqCst, as above: `enable` may have cleared the entry, or will see it.
    let was_withdrawn = entry.load(SeqCst) == 0;
    if was_withdrawn || !IS_ENABLED.load(SeqCst) {
        clear(entry);
        become_normal(0);
    }
}

/// Clears an entry; returns the id that it held, or 0.
fn clear(entry: &AtomicI32) -> libc::pid_t {
    if entry.load(Relaxed) == 0 {
        return 0;
    }
    // ORDERING: SeqCst, as in `announce` and `enable`; one of two concurrent calls gets the id.
    let id = entry.swap(0, SeqCst);
    if id != 0 {
        HINTED_COUNT.fetch_sub(1, SeqCst);
    }
    id
}

/// Makes a new thread normal that inherited its scheduling from a hinted thread. Where the
/// kernel reports no slices (before 6.12) it cannot be distinguished from a thread that the
/// program made batch, and stays as it is.
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

/// Whether unsnarl has chosen this scheduling: the slice marks it.
fn is_marked(attr: &SchedAttr) -> bool {
    attr.policy == libc::SCHED_BATCH as u32 && [LONG_SLICE_NS, SLICE_ALONE_NS].contains(&attr.runtime)
}

/// Makes a hinted thread normal, unless the program has chosen another scheduling for it
/// since. `id` is the kernel's; 0 is the calling thread. Returns whether the thread has changed.
fn become_normal(id: libc::pid_t) -> bool {
    let Some(mut attr) = get(id) else { return false };
    let is_unreported = attr.policy == libc::SCHED_BATCH as u32 && attr.runtime == 0;
    if !is_marked(&attr) && !is_unreported {
        return false;
    }
    attr.policy = libc::SCHED_OTHER as u32;
    attr.runtime = 0;
    set(id, &attr)
}

fn get(id: libc::pid_t) -> Option<SchedAttr> {
    let mut attr = SchedAttr::default();
    let size = size_of::<SchedAttr>();
    // SAFETY: `attr` is writable and `size` bytes long.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, id, &raw mut attr, size, 0) };
    (result == 0).then_some(attr)
}

fn set(id: libc::pid_t, attr: &SchedAttr) -> bool {
    // SAFETY: `attr` is readable and holds its own size.
    unsafe { libc::syscall(libc::SYS_sched_setattr, id, std::ptr::from_ref(attr), 0) == 0 }
}
