//! Tells the kernel's scheduler which threads are CPU-bound.
//!
//! A thread that the policy found CPU-bound becomes SCHED_BATCH with a long
//! slice: it keeps its share of the processor (both are about latency only),
//! but a thread or process with the default slice that wakes up on its
//! processor runs at once instead of after its slice (EEVDF, Linux ≥ 6.12:
//! `PREEMPT_SHORT` in `kernel/sched/features.h`). Undone as soon as the thread is
//! found interactive.
//!
//! Must never: change a thread whose scheduling somebody has chosen (anything but
//! SCHED_OTHER with the default slice); need a privilege.

use crate::processors;
use crate::thread::Own;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use unsnarl_policy::Class;

/// The longest slice the kernel accepts is 100 ms; the odd nanoseconds mark it
/// as ours.
const LONG_SLICE_NS: u64 = 99_000_017;

/// On a single processor: whoever watches the clock for the others needs it too,
/// and as a CPU-bound thread it waits for the end of this slice.
const SLICE_ALONE_NS: u64 = 5_000_017;

static IS_ENABLED: AtomicBool = AtomicBool::new(false);

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

/// Switches the hints on or off for threads that are classified from now on.
pub(crate) fn enable(is_enabled: bool) {
    IS_ENABLED.store(is_enabled, Relaxed);
}

/// Tells the kernel about the calling thread, if there is news.
pub(crate) fn tell(own: &Own, class: Class) {
    let is_batch = class == Class::Batch && IS_ENABLED.load(Relaxed);
    if is_batch != own.is_kernel_batch.get() {
        own.is_kernel_batch
            .set(if is_batch { become_batch() } else { !become_normal() });
    }
}

/// Makes a new thread normal that a thread found CPU-bound has started: Linux
/// lets it inherit what that one was told. Where the kernel reports no slices
/// (before 6.12) it cannot be told from a thread that somebody else made batch.
pub(crate) fn disinherit() {
    let is_ours = |attr: SchedAttr| {
        attr.policy == libc::SCHED_BATCH as u32 && [LONG_SLICE_NS, SLICE_ALONE_NS].contains(&attr.runtime)
    };
    if IS_ENABLED.load(Relaxed) && get().is_some_and(is_ours) {
        become_normal();
    }
}

/// Makes the calling thread what it was, before it ends up in other hands.
pub(crate) fn forget(own: &Own) {
    if own.is_kernel_batch.get() {
        own.is_kernel_batch.set(!become_normal());
    }
}

fn become_batch() -> bool {
    let Some(mut attr) = get() else { return false };
    if attr.policy != libc::SCHED_OTHER as u32 {
        return false;
    }
    attr.policy = libc::SCHED_BATCH as u32;
    attr.runtime = if processors::is_alone() {
        SLICE_ALONE_NS
    } else {
        LONG_SLICE_NS
    };
    set(&attr)
}

fn become_normal() -> bool {
    let Some(mut attr) = get() else { return false };
    if attr.policy != libc::SCHED_BATCH as u32 {
        return true;
    }
    attr.policy = libc::SCHED_OTHER as u32;
    attr.runtime = 0;
    set(&attr)
}

fn get() -> Option<SchedAttr> {
    let mut attr = SchedAttr::default();
    let size = size_of::<SchedAttr>();
    // SAFETY: `attr` is writable and `size` bytes long; 0 is this thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attr, size, 0) };
    (result == 0).then_some(attr)
}

fn set(attr: &SchedAttr) -> bool {
    // SAFETY: `attr` is readable and says its own size; 0 is this thread.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, std::ptr::from_ref(attr), 0) == 0 }
}
