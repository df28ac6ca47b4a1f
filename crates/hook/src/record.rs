//! The recorder: writes to a mapped file what each thread does with the GIL and with locks.
//!
//! It observes the hooks (`cond`, `sem`) and two functions of its own (`record::calls`), whether
//! the scheduler or the interpreter's own code decides. Nothing that it does changes what those
//! functions do.
//!
//! Must never: call Python code, allocate, wait, or fail. Invariants: a thread writes only into
//! its own chunk. Only the thread that holds the GIL changes the shared tables (at a drop, a
//! take and a release of a lock), or a thread that is dropping or taking the GIL, with the GIL's
//! mutex held.

mod buffer;
pub(crate) mod calls;
mod counter;
mod frames;
mod lock_address;
mod processor;
mod tables;
mod writer;

pub use buffer::{Destination, mark_first_line};
pub(crate) use buffer::{create, finish};
pub use frames::{FrameApi, FrameLayout, calibrate};
pub(crate) use lock_address::lock_of;
pub use tables::{import_begins, import_ends, name_thread};

use crate::clock;
use libc::pthread_cond_t;
use std::sync::atomic::{AtomicPtr, AtomicU16, AtomicU64, AtomicUsize, Ordering::Relaxed};
use unsnarl_trace::layout::thread as total;
use unsnarl_trace::record::{Drop, Kind, Take};
use writer::{Writer, with_writer};

/// `gil->cond` while a recording is on; else null.
static GIL: AtomicPtr<pthread_cond_t> = AtomicPtr::new(std::ptr::null_mut());
/// `gil->switch_cond`, likewise.
static SWITCH: AtomicPtr<pthread_cond_t> = AtomicPtr::new(std::ptr::null_mut());
/// Threads that wait for the GIL; changed with its mutex held.
static WAITERS: AtomicU64 = AtomicU64::new(0);
/// The thread that took the GIL last, by the address of its writer; changed with the
/// GIL's mutex held.
static LAST_TAKER: AtomicUsize = AtomicUsize::new(0);
/// When the next stack may be taken (nanoseconds of CLOCK_MONOTONIC).
static NEXT_STACK: AtomicU64 = AtomicU64::new(0);
/// How many threads are blocked on a lock with an address of this hash.
static BLOCKED: [AtomicU16; 1024] = [const { AtomicU16::new(0) }; 1024];

/// A call that released the GIL for less than this, while no thread wanted it, is counted
/// instead of recorded: reading a cached file is such a call.
const SHORT_CALL_NS: u64 = 20_000;
/// A hold, a wait or a call is worth a stack from this length on.
const NOTABLE_NS: u64 = 1_000_000;
/// Computing is recorded if it took at least this part (one in so many) of such a call: a call
/// that waits takes some processor time, too.
const NOTABLE_SHARE: u64 = 16;
/// If a thread that was asked to drop the GIL takes more processor time than this, it has done
/// more than drop it.
const NOTABLE_CALL_NS: u64 = 200_000;
/// A wait for a lock is worth a stack from this length on.
const NOTABLE_LOCK_NS: u64 = 100_000;
/// If the next event is later than this after a wait for a lock, C code has run in between,
/// and the event does not mark the end of the wait. Some ticks of the kernel.
const LATE_NS: u64 = 20_000_000;
/// At most one stack in this time on average: some microseconds in 1,000, under half a percent. Notable
/// holds alone are never more frequent, since one follows the other. Calls of several threads overlap, and
/// waits for locks are notable sooner: some of those may have no stack, and are counted as such.
const STACK_INTERVAL_NS: u64 = 1_000_000;
/// How many stacks may be taken in a burst after a quiet time, as a time.
const STACK_BURST_NS: u64 = 100_000_000;
/// Likewise for releases of locks, which may be frequent: the rest is reserved for holds.
const POST_BURST_NS: u64 = STACK_BURST_NS / 2;
/// From this length on a wait or a call always has a stack, at most one a second of each thread: a join of a minute is
/// not left out because a thousand threads sleep.
const LONG_NS: u64 = 1_000_000_000;

/// Whether a recording is on.
#[must_use]
#[inline]
pub fn is_recording() -> bool {
    !GIL.load(Relaxed).is_null()
}

/// Begins to record. The calling thread holds the GIL.
pub(crate) fn begin(gil: *mut pthread_cond_t, switch: *mut pthread_cond_t) {
    WAITERS.store(0, Relaxed);
    LAST_TAKER.store(0, Relaxed); // after a fork it may be this thread, which the new file does not know yet
    frames::announce();
    SWITCH.store(switch, Relaxed);
    GIL.store(gil, Relaxed);
    taken();
}

/// Stops recording.
pub(crate) fn end() {
    GIL.store(std::ptr::null_mut(), Relaxed);
    SWITCH.store(std::ptr::null_mut(), Relaxed);
}

/// Stops in the child of a fork: the file belongs to the parent.
pub(crate) fn restart_in_child() {
    end();
    buffer::forget();
    counter::restart_in_child();
    for blocked in &BLOCKED {
        blocked.store(0, Relaxed);
    }
}

/// Notes that a condvar is signalled: the GIL has been dropped, or taken, or the condvar is
/// another one.
#[inline]
pub(crate) fn signalled(cond: *mut pthread_cond_t) {
    if cond == GIL.load(Relaxed) {
        dropped();
    } else if cond == SWITCH.load(Relaxed) {
        taken();
    }
}

/// Notes that a timed wait begins; returns whether it is for the GIL. The GIL's mutex is held.
#[inline]
pub(crate) fn wait_begins(cond: *mut pthread_cond_t) -> bool {
    if cond != GIL.load(Relaxed) {
        return false;
    }
    with_writer(|own| {
        if own.wait_began.get() == 0 {
            let now = counter::now();
            write_lock_end(own, now);
            note_preemption(own, now);
            own.wait_began.set(now);
            own.wakeups.set(0);
            WAITERS.fetch_add(1, Relaxed);
        }
    });
    true
}

/// Notes that a timed wait for the GIL has ended. The mutex is held; the GIL may be free or not.
pub(crate) fn wait_ends() {
    with_writer(|own| own.wakeups.set(own.wakeups.get() + 1));
}

/// Notes that a wait for a forced switch has ended. It does not show that the drop was forced:
/// a thread that starts I/O while others want the GIL waits here as well.
#[inline]
pub(crate) fn switched(cond: *mut pthread_cond_t) {
    if cond == SWITCH.load(Relaxed) {
        with_writer(|own| {
            own.just_dropped_at.set(0);
            if own.blocks_at_drop.get() != 0 {
                own.blocks_at_drop.set(blocks());
            }
        });
    }
}

/// How often the thread has blocked so far, plus one (`ru_nvcsw`).
fn blocks() -> u64 {
    switches().0 + 1
}

/// How often the thread has blocked so far, and how often it was preempted (`ru_nvcsw`, `ru_nivcsw`).
fn switches() -> (u64, u64) {
    // SAFETY: all zeros is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is writable.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    (usage.ru_nvcsw.cast_unsigned(), usage.ru_nivcsw.cast_unsigned())
}

/// Records that the thread, which requests the GIL, was made to drop it before. That is so if
/// it has neither blocked nor computed since: then it did nothing but return, however long that
/// took.
fn note_preemption(own: &Writer, now: u64) {
    let at_drop = own.blocks_at_drop.take();
    if at_drop != 0 && blocks() == at_drop && own.processor.since_reading() < NOTABLE_CALL_NS {
        own.is_forced.set(true);
        own.push(Kind::Forced, 0, now);
        own.add(total::FORCED, 1);
    }
}

/// Records that this thread has dropped the GIL, whose mutex is held.
///
/// Every call that releases the GIL passes through here and through [`taken`], so what does not
/// happen at each of them is out of line.
#[inline(never)]
fn dropped() {
    with_writer(|own| {
        let now = counter::now();
        let held = if own.is_held.replace(false) {
            now.saturating_sub(own.taken_at.get())
        } else {
            0
        };
        own.add(total::HELD, held);
        own.processor.spend(held);
        let is_wanted = WAITERS.load(Relaxed) > 0;
        own.write(Kind::Drop, own.drop_payload(is_wanted), now);
        own.dropped_at.set(now);
        own.just_dropped_at.set(now);
        own.lock_ns.set(0);
        own.was_wanted.set(is_wanted);
        if is_wanted {
            drop_wanted(own, held, now);
        } else {
            own.processor.before_call();
        }
    });
}

/// The same while another thread waits for it.
#[inline(never)]
fn drop_wanted(own: &Writer, held: u64, now: u64) {
    own.raise(total::LONGEST_HOLD, held);
    if held >= NOTABLE_NS {
        take_stack(own, now, STACK_BURST_NS);
        let switches = switches();
        own.blocks_at_drop.set(switches.0 + 1);
        let starved = own.processor.starved(held, switches);
        if starved >= NOTABLE_NS {
            own.push(Kind::Starved, starved, now);
        }
        own.processor.restart();
    } else {
        own.processor.before_call();
    }
}

/// Records that this thread has taken the GIL, whose mutex is held.
#[inline(never)]
fn taken() {
    with_writer(|own| {
        // If another thread held the GIL, that thread's drop is earlier.
        if !is_last_taker(own) {
            return take(own, counter::ordered_now());
        }
        let now = counter::now();
        let away = now.saturating_sub(own.dropped_at.get());
        let is_short = away < SHORT_CALL_NS && own.wait_began.get() == 0 && own.lock_end.get() == 0;
        // If a thread waits, two holds must not look like one that could not be ended.
        if is_short && !own.was_wanted.get() && own.unwrite_drop() {
            own.count_short_call(away);
            own.is_held.set(true);
            own.taken_at.set(now);
            own.just_dropped_at.set(0);
            if own.processor.is_stale() {
                own.processor.at_take(switches);
            }
        } else {
            take(own, now);
        }
    });
}

/// Records a take that ends more than a short call.
#[inline(never)]
fn take(own: &Writer, now: u64) {
    write_lock_end(own, now);
    let began = own.wait_began.take();
    let away = now.saturating_sub(own.dropped_at.get());
    own.is_held.set(true);
    own.add(total::TAKES, 1);
    if began == 0 {
        note_preemption(own, now);
    }
    let take = end_wait(own, began, now);
    let computed = note_computing(own, away, take.waited, now);
    own.push(Kind::Take, take.pack(), now);
    account(own, take.waited, away, computed);
    let is_notable = away >= NOTABLE_NS || own.lock_ns.get() >= NOTABLE_LOCK_NS;
    if is_notable && !own.is_forced.get() && own.dropped_at.get() != 0 {
        take_stack(own, now, if away >= LONG_NS { u64::MAX } else { STACK_BURST_NS });
    }
    own.start_hold(now);
    own.processor.at_take(switches);
}

/// Whether the thread that takes the GIL was the last taker; makes it the last taker.
fn is_last_taker(own: &Writer) -> bool {
    let address = std::ptr::from_ref(own) as usize;
    let is_last = LAST_TAKER.load(Relaxed) == address;
    if !is_last {
        LAST_TAKER.store(address, Relaxed);
        own.note_holder();
    }
    is_last
}

fn end_wait(own: &Writer, began: u64, now: u64) -> Take {
    if began == 0 {
        return Take {
            waiters: WAITERS.load(Relaxed),
            ..Take::default()
        };
    }
    // Threads that end while they wait have left without taking.
    let waiters = WAITERS.load(Relaxed).saturating_sub(1);
    WAITERS.store(waiters, Relaxed);
    let waited = now.saturating_sub(began);
    own.add(total::WAITS, 1);
    own.add(total::WAKEUPS, own.wakeups.get());
    own.raise(total::LONGEST_WAIT, waited);
    Take {
        waited,
        wakeups: own.wakeups.get(),
        waiters,
    }
}

/// Records, and returns, for how long the thread had a processor during a long time off the GIL.
/// If that was a good part of it, C code computed and the time was not I/O; else returns 0.
fn note_computing(own: &Writer, away: u64, waited: u64, now: u64) -> u64 {
    if own.dropped_at.get() == 0 {
        return 0;
    }
    let rest = away.saturating_sub(waited).saturating_sub(own.lock_ns.get());
    if own.is_forced.get() || rest < NOTABLE_NS {
        own.processor.after_short_call(away);
        return 0;
    }
    let computed = own.processor.after_long_call().min(rest);
    if computed < rest / NOTABLE_SHARE || own.is_asleep.get() {
        return 0;
    }
    own.push(Kind::Computed, computed, now);
    computed
}

/// Adds the time since the drop to the totals, by what it was spent on.
fn account(own: &Writer, waited: u64, away: u64, computed: u64) {
    if own.dropped_at.get() == 0 {
        own.add(total::WAITED, waited);
        return;
    }
    let on_lock = own.lock_ns.get();
    let rest = away.saturating_sub(waited).saturating_sub(on_lock);
    let (waited, rest) = if own.is_forced.get() {
        (waited + rest, 0)
    } else {
        (waited, rest)
    };
    own.add(total::WAITED, waited);
    own.add(total::ON_LOCK, on_lock);
    own.add(total::COMPUTED, computed);
    own.add(
        if own.is_asleep.get() {
            total::ASLEEP
        } else {
            total::IN_IO
        },
        rest - computed,
    );
}

/// Records the stack of the calling thread, which holds the GIL or is dropping or taking it,
/// unless too many stacks were taken lately: for more time than `burst_ns`.
#[inline(never)]
fn take_stack(own: &Writer, now: u64, burst_ns: u64) {
    let next = NEXT_STACK.load(Relaxed).max(now);
    if next - now > burst_ns {
        tables::leave_stack_out();
        return;
    }
    NEXT_STACK.store(next.min(now + STACK_BURST_NS) + STACK_INTERVAL_NS, Relaxed);
    match frames::own_stack() {
        0 => tables::leave_stack_out(),
        node => own.push(Kind::Stack, u64::from(node), now),
    }
}

fn blocked_on(address: usize) -> &'static AtomicU16 {
    let hash = (address as u64 >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
    &BLOCKED[hash as usize]
}

/// Records that the thread blocks on the lock with this address; returns whether it is recorded.
#[inline]
pub(crate) fn lock_begins(address: usize) -> bool {
    if !is_recording() {
        return false;
    }
    blocked_on(address).fetch_add(1, Relaxed);
    with_writer(|own| {
        let now = now_or_at_drop(own);
        write_lock_end(own, now);
        own.lock_began.set(now);
        own.push(Kind::LockBegin, address as u64, now);
    });
    true
}

/// The time now, or that of the drop if the thread has only just dropped the GIL, as it has
/// when the interpreter blocks on a lock. If C code has run for a tick in between, the coarse
/// clock shows it, at a quarter of the cost of the other clock.
fn now_or_at_drop(own: &Writer) -> u64 {
    let dropped_at = own.just_dropped_at.take();
    if dropped_at != 0 && clock::last_tick() <= dropped_at {
        dropped_at
    } else {
        counter::now()
    }
}

/// Notes that the wait for this lock has ended. A thread without the GIL requests it next, and the
/// end is written with the time of that event: one reading of the clock for both.
pub(crate) fn lock_ends(address: usize, has_it: bool) {
    blocked_on(address).fetch_sub(1, Relaxed);
    with_writer(|own| {
        own.lock_end.set(address as u64 & !1 | u64::from(has_it));
        own.lock_end_tick.set(clock::last_tick());
        if own.is_held.get() {
            write_lock_end(own, counter::now());
        }
    });
}

/// Writes the end of a wait for a lock, if it is still to be written.
fn write_lock_end(own: &Writer, now: u64) {
    let end = own.lock_end.take();
    if end != 0 {
        // Long after it, C code has run without the GIL: the tick is right to some milliseconds.
        let tick = own.lock_end_tick.get().max(own.lock_began.get());
        let now = if now.saturating_sub(tick) > LATE_NS { tick } else { now };
        let waited = now.saturating_sub(own.lock_began.get());
        own.lock_ns.set(own.lock_ns.get() + waited);
        own.add(total::LOCK_WAITS, 1);
        own.push(Kind::LockEnd, end, now);
    }
}

/// Records that a lock is released, if a thread is blocked on it.
#[inline]
pub(crate) fn posts(address: usize) {
    if is_recording() && blocked_on(address).load(Relaxed) > 0 {
        with_writer(|own| {
            let now = counter::now();
            write_lock_end(own, now);
            own.push(Kind::Post, address as u64, now);
            if own.is_held.get() {
                take_stack(own, now, POST_BURST_NS);
            }
        });
    }
}

/// Records that the thread goes to sleep.
pub(crate) fn sleeps() {
    if is_recording() {
        with_writer(|own| {
            let now = counter::now();
            write_lock_end(own, now);
            own.is_asleep.set(true);
            own.push(Kind::Sleep, 0, now);
        });
    }
}

impl Writer {
    /// The counts stay: this record may be withdrawn.
    fn drop_payload(&self, is_wanted: bool) -> u64 {
        Drop {
            short_ns: self.short_ns.get(),
            short_calls: self.short_calls.get(),
            is_wanted,
        }
        .pack()
    }

    fn count_short_call(&self, away: u64) {
        self.short_ns.set(self.short_ns.get() + away);
        self.short_calls.set(self.short_calls.get() + 1);
        self.add(total::TAKES, 1);
        self.add(total::IN_IO, away);
        self.processor.after_short_call(away);
    }

    fn start_hold(&self, now: u64) {
        self.taken_at.set(now);
        self.just_dropped_at.set(0);
        self.lock_ns.set(0);
        self.short_ns.set(0);
        self.short_calls.set(0);
        self.is_asleep.set(false);
        self.is_forced.set(false);
    }
}
