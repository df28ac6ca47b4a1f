//! Hooks of the condition variable calls by which the interpreter waits for the GIL, drops
//! it, takes it, and switches threads.
//!
//! | call | in CPython (`Python/ceval_gil.c`) | here |
//! |---|---|---|
//! | `pthread_cond_timedwait(gil.cond)` | `take_gil`, the GIL is held | wait in the policy's queue |
//! | `pthread_cond_signal(gil.cond)` | `drop_gil_impl` | dropped: notify the heir |
//! | `pthread_cond_signal(gil.switch_cond)` | `take_gil`, done | taken |
//! | `pthread_cond_wait(gil.switch_cond)` | `drop_gil`, a drop was requested | spin for the hand-over, else the original wait |
//!
//! The interpreter makes all four calls with the mutex of their condvar held. `gil.mutex` is
//! the queue's lock. Must never: call Python, allocate, take another lock, return anything
//! but 0 or ETIMEDOUT for the GIL's condvar. Every other condvar passes through.
//!
//! ETIMEDOUT makes `take_gil` set the holder's drop request, but only if no other thread has
//! taken the GIL since `take_gil` last checked. So a thread that has slept returns 0 first (a
//! spurious wake-up, which the standard allows). It returns ETIMEDOUT from the call that
//! follows immediately, under the same hold of the mutex: no request is ever ignored.

use super::enter::{enter, lock, with_mutex};
use super::state::{self, SWITCHING};
use super::{deferred_wake, departed, sighting, slice};
use crate::elf::original::Original;
use crate::thread::parker::{self, Outcome};
use crate::thread::{PerThread, kernel, with_current};
use crate::{clock, processors, record};
use libc::{pthread_cond_t, pthread_mutex_t, timespec};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use unsnarl_policy::{Nanos, Policy, ThreadId, Verdict};

type Signal = unsafe extern "C" fn(*mut pthread_cond_t) -> libc::c_int;
type Wait = unsafe extern "C" fn(*mut pthread_cond_t, *mut pthread_mutex_t) -> libc::c_int;
type TimedWait = unsafe extern "C" fn(*mut pthread_cond_t, *mut pthread_mutex_t, *const timespec) -> libc::c_int;

pub(crate) static REAL_SIGNAL: Original<Signal> = Original::new(libc::pthread_cond_signal);
pub(crate) static REAL_WAIT: Original<Wait> = Original::new(libc::pthread_cond_wait);
pub(crate) static REAL_TIMEDWAIT: Original<TimedWait> = Original::new(libc::pthread_cond_timedwait);

/// How long a thread in a forced switch spins if the heir is awake: a hand-over between two
/// processors takes a microsecond or two.
const SWITCH_SPIN_NS: Nanos = 20_000;
/// Set by a drop whose heir is awake: the forced switch will end soon.
static IS_HEIR_AWAKE: AtomicU32 = AtomicU32::new(0);

/// Replaces `pthread_cond_signal`.
///
/// Every call that releases the GIL passes through here twice. So while no thread waits, this
/// path makes only tail calls, and only to functions that cannot unwind: no register has to be
/// saved for them.
pub(crate) unsafe extern "C" fn signal(cond: *mut pthread_cond_t) -> libc::c_int {
    if record::is_recording() {
        // SAFETY: the caller's argument, unchanged.
        return unsafe { recorded_signal(cond) };
    }
    // SAFETY: as above.
    unsafe { scheduled_signal(cond) }
}

#[inline(never)]
unsafe extern "C" fn recorded_signal(cond: *mut pthread_cond_t) -> libc::c_int {
    record::signalled(cond);
    // SAFETY: the caller's argument, unchanged.
    unsafe { scheduled_signal(cond) }
}

#[inline(always)]
unsafe fn scheduled_signal(cond: *mut pthread_cond_t) -> libc::c_int {
    if state::is_gil_cond(cond) {
        if deferred_wake::is_drop_awaited() {
            // SAFETY: the caller's argument, unchanged.
            return unsafe { signal_after_release(cond) };
        }
        // SAFETY: `drop_gil_impl` signals this condvar with its mutex held.
        if let Some(policy) = unsafe { state::policy() } {
            if policy.has_waiters() {
                // SAFETY: the caller's argument, unchanged.
                return unsafe { signal_heir(cond) };
            }
            policy.dropped_uncontended(None);
            if kernel::has_hinted() {
                // SAFETY: the caller's argument, unchanged.
                return unsafe { signal_heir_with_hints(cond) };
            }
        }
    } else if state::is_switch_cond(cond) {
        // SAFETY: `take_gil` signals this condvar with the GIL's mutex held.
        if let Some(policy) = unsafe { state::policy() } {
            if !policy.is_uncontended() {
                // SAFETY: the caller's argument, unchanged.
                return unsafe { signal_switch(cond) };
            }
            policy.taken_uncontended(None);
            if kernel::has_hinted() {
                // SAFETY: the caller's argument, unchanged.
                return unsafe { signal_switch_with_hints(cond) };
            }
        }
        state::count_take();
        if SWITCHING.load(Relaxed) == 0 {
            return 0;
        }
    } else {
        // SAFETY: the caller's argument, unchanged.
        return unsafe { signal_another(cond) };
    }
    // SAFETY: the caller's argument, unchanged.
    unsafe { REAL_SIGNAL.get()(cond) }
}

/// `drop_gil` after the release of a contended lock: a wake-up that is owed is made, and the rest follows.
#[inline(never)]
unsafe extern "C" fn signal_after_release(cond: *mut pthread_cond_t) -> libc::c_int {
    let owed = deferred_wake::dropped_gil();
    // SAFETY: the caller's argument, unchanged. No second drop is awaited.
    let result = unsafe { scheduled_signal(cond) };
    if let Some(owed) = owed {
        // SAFETY: `drop_gil_impl` holds the mutex.
        unsafe { without_mutex(|| owed.make()) };
    }
    result
}

/// Runs `wake` with the GIL's mutex released. `drop_gil_impl` has nothing left to do but to unlock it. A thread that is
/// woken under the mutex often runs at once, on this processor, only to block on the mutex: two switches more.
///
/// # Safety
/// The calling thread holds the GIL's mutex, and keeps no reference to the policy.
unsafe fn without_mutex(wake: impl FnOnce()) {
    let mutex = state::MUTEX.load(Relaxed);
    // SAFETY: the caller holds it.
    unsafe { libc::pthread_mutex_unlock(mutex) };
    wake();
    lock(mutex);
}

/// `drop_gil` while a thread waits in the policy's queue.
#[inline(never)]
unsafe extern "C" fn signal_heir(cond: *mut pthread_cond_t) -> libc::c_int {
    let notified = with_current(|current| {
        // SAFETY: as for the caller, the GIL's mutex is held, and this reference ends here.
        if unsafe { state::policy() }.is_some_and(|policy| policy.dropped_quickly(current.id())) {
            return Notified::Awake;
        }
        // SAFETY: as for the caller, the GIL's mutex is held.
        unsafe { enter(current) }.map_or(Notified::Nobody, |policy| dropped(current, policy))
    });
    match notified {
        Notified::Awake => return 0,
        Notified::Asleep(heir) => {
            // SAFETY: as for the caller; the reference to the policy is gone.
            unsafe { without_mutex(|| parker::of(heir).wake()) };
            return 0;
        }
        Notified::Nobody => {}
    }
    // SAFETY: the caller's argument, unchanged.
    unsafe { REAL_SIGNAL.get()(cond) }
}

/// The end of `take_gil` while a thread waits or is about to return.
#[inline(never)]
unsafe extern "C" fn signal_switch(cond: *mut pthread_cond_t) -> libc::c_int {
    with_current(|current| {
        // SAFETY: as for the caller, the GIL's mutex is held, and this reference ends here.
        let is_quick = unsafe { state::policy() }
            .is_some_and(|policy| !current.comes_from_lock() && policy.taken_quickly(current.id()));
        // SAFETY: as for the caller, the GIL's mutex is held.
        if !is_quick && let Some(policy) = unsafe { enter(current) } {
            taken(current, policy);
        }
    });
    state::count_take();
    if SWITCHING.load(Relaxed) == 0 {
        return 0;
    }
    // SAFETY: the caller's argument, unchanged.
    unsafe { REAL_SIGNAL.get()(cond) }
}

/// `drop_gil` while no thread waits and some thread is hinted to the kernel as CPU-bound.
#[inline(never)]
unsafe extern "C" fn signal_heir_with_hints(cond: *mut pthread_cond_t) -> libc::c_int {
    with_current(|current| current.dropped_gil(clock::now));
    // SAFETY: the caller's argument, unchanged.
    unsafe { REAL_SIGNAL.get()(cond) }
}

/// The end of `take_gil`, likewise.
#[inline(never)]
unsafe extern "C" fn signal_switch_with_hints(cond: *mut pthread_cond_t) -> libc::c_int {
    with_current(PerThread::took_uncontended);
    state::count_take();
    if SWITCHING.load(Relaxed) == 0 {
        return 0;
    }
    // SAFETY: the caller's argument, unchanged.
    unsafe { REAL_SIGNAL.get()(cond) }
}

/// A condvar that is not the scheduled GIL's; a sighting may be on.
#[inline(never)]
unsafe extern "C" fn signal_another(cond: *mut pthread_cond_t) -> libc::c_int {
    sighting::notice_signal(cond);
    // SAFETY: the caller's argument, unchanged.
    unsafe { REAL_SIGNAL.get()(cond) }
}

/// Which waiter of the policy a drop has notified.
enum Notified {
    /// None; a thread may still wait on the original condvar, from before the installation.
    Nobody,
    Awake,
    /// It has to be woken.
    Asleep(ThreadId),
}

/// Reports a drop to the policy and notifies the heir.
fn dropped(current: &PerThread, policy: &mut Policy) -> Notified {
    let now = clock::now();
    current.dropped_gil(|| now);
    let Some(grant) = policy.dropped(current.id(), now) else {
        return Notified::Nobody;
    };
    if !grant.wakes {
        parker::of(grant.heir).notify_if_awake(grant.not_before);
        return Notified::Awake;
    }
    let was_asleep = parker::of(grant.heir).mark_notified(grant.not_before);
    IS_HEIR_AWAKE.store(u32::from(!was_asleep), Relaxed);
    if was_asleep {
        Notified::Asleep(grant.heir)
    } else {
        Notified::Awake
    }
}

/// Reports a take to the policy, and does what follows from it.
fn taken(current: &PerThread, policy: &mut Policy) {
    let (thread, now) = (current.register(policy), clock::now());
    let taken = policy.taken(thread, now, current.take_arrival(now, deferred_wake::is_drop_awaited()));
    if let Some(thread) = thread {
        current.took_contended(policy.class(thread));
    }
    if let Some(revoked) = taken.revoked {
        let parker = parker::of(revoked);
        if let Some(thread) = thread
            && processors::is_alone()
            && parker.is_notified()
        {
            policy.allow_quick_returns(thread);
        }
        parker.revoke(now);
    }
    if let Some(appointed) = taken.appoint {
        parker::of(appointed).notify(0);
    }
}

/// Replaces `pthread_cond_timedwait`.
pub(crate) unsafe extern "C" fn timedwait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> libc::c_int {
    let is_recorded = record::wait_begins(cond);
    // SAFETY: the caller's arguments, unchanged.
    let result = unsafe { scheduled_timedwait(cond, mutex, until) };
    if is_recorded {
        record::wait_ends();
    }
    result
}

unsafe fn scheduled_timedwait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> libc::c_int {
    if !state::is_gil_cond(cond) {
        sighting::notice_wait(cond, mutex);
        // SAFETY: the caller's arguments, unchanged.
        return unsafe { REAL_TIMEDWAIT.get()(cond, mutex, until) };
    }
    // SAFETY: `take_gil` waits with the GIL's mutex held, and passes a valid deadline.
    with_current(|current| unsafe { wait_in_queue(current, mutex, &*until) })
}

/// Waits for the GIL in the policy's queue.
///
/// # Safety
/// `mutex` is the GIL's, and the calling thread, which is `current`, holds it at both ends.
unsafe fn wait_in_queue(current: &PerThread, mutex: *mut pthread_mutex_t, until: &timespec) -> libc::c_int {
    // SAFETY: the mutex is held.
    let Some(mut policy) = (unsafe { enter(current) }) else {
        return 0;
    };
    let Some(thread) = current.register(policy) else {
        // SAFETY: the mutex is held.
        return unsafe { wait_by_polling(mutex) };
    };
    let mut now = clock::now();
    let mut has_slept = false;
    let takes = state::takes();
    let parker = parker::of(thread);
    loop {
        if !state::is_active() {
            policy.cancel(thread);
            return 0;
        }
        parker.reset();
        let verdict = if has_slept {
            policy.look(thread, now)
        } else {
            slice::observe(policy, clock::nanos(until).saturating_sub(now));
            policy.wait(thread, now, current.take_arrival(now, deferred_wake::is_drop_awaited()))
        };
        match verdict {
            Verdict::Go => {
                departed::sent_back(thread);
                return 0;
            }
            Verdict::Ask => {
                departed::sent_back(thread);
                if has_slept && state::takes() != takes {
                    policy.retract_ask(thread);
                    return 0;
                }
                return libc::ETIMEDOUT;
            }
            Verdict::Park { until, spin_ns } => {
                let class = policy.class(thread);
                // SAFETY: the mutex is held by this thread.
                unsafe { libc::pthread_mutex_unlock(mutex) };
                current.hint_kernel(class);
                let outcome = parker.park(now, processors::spin(spin_ns), until);
                lock(mutex);
                (now, has_slept) = (clock::now(), true);
                // SAFETY: the mutex is held again, and the reference from before the park is replaced.
                let Some(entered) = (unsafe { enter(current) }) else {
                    return 0;
                };
                policy = entered;
                policy.stayed_awake(thread, outcome == Outcome::NotifiedAwake);
            }
        }
    }
}

/// Waits by polling, for a thread beyond the table's capacity: a short sleep, then a request
/// to drop. Both are legal at any time, so no wake-up can be lost.
///
/// # Safety
/// The calling thread holds `mutex`.
unsafe fn wait_by_polling(mutex: *mut pthread_mutex_t) -> libc::c_int {
    // SAFETY: the caller holds the mutex.
    unsafe { libc::pthread_mutex_unlock(mutex) };
    std::thread::sleep(std::time::Duration::from_millis(1));
    lock(mutex);
    libc::ETIMEDOUT
}

/// Replaces `pthread_cond_wait`.
pub(crate) unsafe extern "C" fn wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> libc::c_int {
    // SAFETY: the caller's arguments, unchanged.
    let result = unsafe { scheduled_wait(cond, mutex) };
    record::switched(cond);
    result
}

unsafe fn scheduled_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> libc::c_int {
    if !state::is_switch_cond(cond) {
        // SAFETY: the caller's arguments, unchanged.
        return unsafe { REAL_WAIT.get()(cond, mutex) };
    }
    let takes = state::takes();
    if IS_HEIR_AWAKE.load(Relaxed) != 0 && processors::spin(SWITCH_SPIN_NS) > 0 {
        // SAFETY: `drop_gil` waits with this mutex held.
        unsafe { libc::pthread_mutex_unlock(mutex) };
        spin_until_taken(takes);
        lock(mutex);
    }
    if state::takes() == takes {
        // `take_gil` signals with this mutex held: it either counts a take
        // before the load above, or finds SWITCHING set.
        SWITCHING.fetch_add(1, Relaxed);
        // SAFETY: the caller's arguments, unchanged.
        unsafe { REAL_WAIT.get()(cond, mutex) };
        SWITCHING.fetch_sub(1, Relaxed);
    }
    if processors::is_alone() {
        // SAFETY: the caller's arguments, with this mutex held.
        with_current(|current| unsafe { let_heir_pass(current, cond, mutex) });
    }
    with_current(|current| current.switched(clock::now()));
    0
}

/// Prolongs the forced switch on a single processor while the policy wants the heir to take
/// the GIL first: until the next take, or until the time that the policy returns. Also hints
/// the kernel, since a thread that always finds the GIL free when it returns never parks.
///
/// # Safety
/// `mutex` is `gil.switch_mutex`, held. `take_gil` locks it inside of the GIL's, so it is
/// released while this function uses the policy.
unsafe fn let_heir_pass(current: &PerThread, cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) {
    let Some(id) = current.id() else { return };
    while state::is_active() {
        // SAFETY: held by this thread.
        unsafe { libc::pthread_mutex_unlock(mutex) };
        let read = |policy: &mut Policy| (policy.class(id), policy.lets_pass(id, clock::now()), state::takes());
        let seen = with_mutex(read);
        if let Some((class, ..)) = seen {
            current.hint_kernel(class);
        }
        lock(mutex);
        let Some((_, Some(until), takes)) = seen else { return };
        if state::takes() != takes {
            return;
        }
        SWITCHING.fetch_add(1, Relaxed);
        // SAFETY: the caller's arguments; CPython's condvars use this clock.
        unsafe { REAL_TIMEDWAIT.get()(cond, mutex, &clock::timespec(until)) };
        SWITCHING.fetch_sub(1, Relaxed);
    }
}

fn spin_until_taken(takes: u32) {
    let deadline = clock::now() + SWITCH_SPIN_NS;
    loop {
        for _ in 0..32 {
            if state::takes() != takes {
                return;
            }
            std::hint::spin_loop();
        }
        if clock::now() >= deadline {
            return;
        }
    }
}
