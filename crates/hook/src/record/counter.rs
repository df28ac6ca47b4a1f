//! The recorder's clock: CLOCK_MONOTONIC computed from the processor's counter.
//!
//! libc's clock reads the same counter where the kernel uses it as its clock source, but first
//! waits until all earlier instructions have completed. After a system call that is most of the
//! cost of a reading. The recorder needs that order only where another thread had the GIL last
//! ([`ordered_now`]).
//!
//! The counter is read only where the kernel itself relies on it, since the kernel knows whether
//! it runs steadily and is the same on all processors. Elsewhere, and whenever a check fails,
//! each reading is one of libc's clock. The arithmetic is `unsnarl_trace::pace`. A reading of
//! libc's clock while a line is ahead of it may be earlier than the line's reading before it;
//! the writer keeps each thread's records in order.
//!
//! Must never: allocate, wait. Invariants: two lines alternate; a reader uses the line that
//! `GENERATION` names, and detects that it was overwritten meanwhile; one thread at a time
//! renews, and the others do not wait for it.

use crate::clock;
use std::cell::UnsafeCell;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, fence,
};
use unsnarl_policy::Nanos;
use unsnarl_trace::pace::{APART_NS, Follower, Line, Sample};

/// How often both clocks are read for one sample; the closest pair is used.
const TRIES: u32 = 4;
/// Clocks read further apart than this make no sample: the thread was interrupted.
const CLOSE_NS: Nanos = 2_000;

/// A [`Line`] that is read while it may be written to.
struct Shared {
    ticks: AtomicU64,
    nanos: AtomicU64,
    scale: AtomicU64,
    due: AtomicU64,
}

impl Shared {
    const fn new() -> Self {
        Self {
            ticks: AtomicU64::new(0),
            nanos: AtomicU64::new(0),
            scale: AtomicU64::new(0),
            due: AtomicU64::new(0),
        }
    }
}

/// The line in use and the one to be written next, alternating.
static LINES: [Shared; 2] = [const { Shared::new() }; 2];
/// Lines written so far; the lowest bit is the index of the line in use.
static GENERATION: AtomicUsize = AtomicUsize::new(0);
/// Whether a thread is writing a line.
static IS_RENEWING: AtomicBool = AtomicBool::new(false);

struct Followed(UnsafeCell<Option<Follower>>);
// SAFETY: only the thread that has set `IS_RENEWING` reaches the cell.
unsafe impl Sync for Followed {}
static FOLLOWED: Followed = Followed(UnsafeCell::new(None));

/// Now, but perhaps some tens of nanoseconds too early where the processor runs ahead.
#[inline]
pub(super) fn now() -> Nanos {
    // ORDERING: Acquire pairs with the Release store in `publish`: the line is there.
    let generation = GENERATION.load(Acquire);
    let shared = &LINES[generation & 1];
    let line = Line {
        ticks: shared.ticks.load(Relaxed),
        nanos: shared.nanos.load(Relaxed),
        scale: shared.scale.load(Relaxed),
        due: shared.due.load(Relaxed),
    };
    // ORDERING: Acquire pairs with the fence in `publish`: if the line was overwritten meanwhile, the
    // generation that freed it is seen here.
    fence(Acquire);
    if line.due == 0 || GENERATION.load(Relaxed) != generation {
        return by_libc();
    }
    let ticks = processor::ticks();
    if line.is_overdue(ticks) {
        renewed()
    } else {
        line.at(ticks)
    }
}

#[cold]
#[inline(never)]
fn by_libc() -> Nanos {
    clock::now()
}

/// Now, and not before anything that this thread has observed of others.
#[inline]
pub(super) fn ordered_now() -> Nanos {
    processor::order();
    now()
}

/// The time, after writing a new line for later readers. Reads libc's clock instead while another thread
/// writes a line, or if no line can be made.
#[cold]
#[inline(never)]
fn renewed() -> Nanos {
    // ORDERING: Acquire pairs with the Release store of false, here and in `begin`: this thread sees the
    // follower that the last writer left.
    if IS_RENEWING.swap(true, Acquire) {
        return clock::now();
    }
    // SAFETY: this thread has set `IS_RENEWING`.
    let followed = unsafe { &mut *FOLLOWED.0.get() };
    let sample = sample();
    *followed = followed.and_then(|follower| match sample {
        Some(sample) => follower.renewed(sample),
        None => follower.failed(),
    });
    let line = followed.map(|follower| follower.line());
    publish(line);
    // ORDERING: Release pairs with the Acquire of the swaps here and in `begin`.
    IS_RENEWING.store(false, Release);
    let now = line.zip(sample).map(|(line, sample)| line.at(sample.ticks));
    now.unwrap_or_else(clock::now)
}

/// Puts a line into use; without one, libc's clock is read from now on.
fn publish(line: Option<Line>) {
    let line = line.unwrap_or_default();
    let generation = GENERATION.load(Relaxed);
    let shared = &LINES[generation.wrapping_add(1) & 1];
    // ORDERING: Release pairs with the Acquire fence in `now`.
    fence(Release);
    shared.ticks.store(line.ticks, Relaxed);
    shared.nanos.store(line.nanos, Relaxed);
    shared.scale.store(line.scale, Relaxed);
    shared.due.store(line.due, Relaxed);
    // ORDERING: Release pairs with the Acquire in `now`.
    GENERATION.store(generation.wrapping_add(1), Release);
}

/// Both clocks at one moment, as nearly as possible; `None` if the thread was interrupted each time.
fn sample() -> Option<Sample> {
    let mut closest = u64::MAX;
    let mut result = None;
    for _ in 0..TRIES {
        let before = clock::now();
        processor::order();
        let ticks = processor::ticks();
        processor::order();
        let apart = clock::now().saturating_sub(before);
        if apart < closest {
            closest = apart;
            let nanos = before + apart / 2;
            result = Some(Sample { ticks, nanos });
        }
    }
    result.filter(|_| closest < CLOSE_NS)
}

/// Begins to read the counter if the kernel does and `is_wanted`; returns whether it does. Called at the
/// start of a recording; waits for some microseconds.
pub(super) fn begin(is_wanted: bool) -> bool {
    // ORDERING: Acquire, as in `renewed`; a thread of an earlier recording may still renew.
    while IS_RENEWING.swap(true, Acquire) {
        std::thread::yield_now();
    }
    let follower = (is_wanted && is_kernel_clock()).then(first_samples).flatten();
    // SAFETY: this thread has set `IS_RENEWING`.
    unsafe { *FOLLOWED.0.get() = follower };
    publish(follower.map(|follower| follower.line()));
    // ORDERING: Release, as in `renewed`.
    IS_RENEWING.store(false, Release);
    follower.is_some()
}

fn first_samples() -> Option<Follower> {
    let first = sample()?;
    while clock::now().saturating_sub(first.nanos) < APART_NS {
        std::hint::spin_loop();
    }
    Follower::new(first, sample()?)
}

/// Lets the child of a fork renew, even if another thread of the parent was renewing.
pub(super) fn restart_in_child() {
    IS_RENEWING.store(false, Relaxed);
}

/// Whether the kernel's clock is the counter that [`processor`] reads.
fn is_kernel_clock() -> bool {
    processor::KERNEL_NAME.is_some_and(|name| {
        std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .is_ok_and(|current| current.trim_end() == name)
    })
}

/// The processor's counter.
#[cfg(target_arch = "x86_64")]
mod processor {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};

    /// The kernel's name of it as a clock source (`arch/x86/kernel/tsc.c`).
    pub(super) const KERNEL_NAME: Option<&str> = Some("tsc");

    #[inline]
    pub(super) fn ticks() -> u64 {
        // SAFETY: every x86-64 processor has it; the kernel, which takes its time from it, lets
        // programs read it as its own vDSO does.
        unsafe { _rdtsc() }
    }

    /// Waits until all earlier instructions have completed.
    #[inline]
    pub(super) fn order() {
        // SAFETY: part of SSE2, which every x86-64 processor has.
        unsafe { _mm_lfence() };
    }
}

/// The processor's counter.
#[cfg(target_arch = "aarch64")]
mod processor {
    /// The kernel's name of it as a clock source (`drivers/clocksource/arm_arch_timer.c`).
    pub(super) const KERNEL_NAME: Option<&str> = Some("arch_sys_counter");

    #[inline]
    pub(super) fn ticks() -> u64 {
        let ticks;
        // SAFETY: reads a register that Linux lets programs read, as its own vDSO does.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
        ticks
    }

    /// Waits until all earlier instructions have completed.
    #[inline]
    pub(super) fn order() {
        // SAFETY: only waits.
        unsafe { std::arch::asm!("isb", options(nostack, preserves_flags)) };
    }
}

/// No counter is known.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod processor {
    pub(super) const KERNEL_NAME: Option<&str> = None;

    pub(super) fn ticks() -> u64 {
        0
    }

    pub(super) fn order() {}
}
