//! The replacements of the condition variable calls: where the interpreter
//! waits for the GIL, drops it, takes it, and switches.
//!
//! | call | in CPython (`Python/ceval_gil.c`) | here |
//! |---|---|---|
//! | `pthread_cond_timedwait(gil.cond)` | `take_gil`, the GIL is held | wait in the policy's queue |
//! | `pthread_cond_signal(gil.cond)` | `drop_gil_impl` | dropped: notify the heir |
//! | `pthread_cond_signal(gil.switch_cond)` | `take_gil`, done | taken |
//! | `pthread_cond_wait(gil.switch_cond)` | `drop_gil`, a drop was requested | stay awake for the hand-over, else the real wait |
//!
//! All four arrive with the mutex of their condvar held: that is the queue's
//! lock. Must never: call Python, allocate, take another lock, return anything
//! but 0 or ETIMEDOUT for the GIL's condvar. Every other condvar passes through.
//!
//! ETIMEDOUT makes `take_gil` set the holder's drop request, but only if no other
//! thread took the GIL since it last looked. So a thread that has slept returns
//! 0 first (a spurious wake-up, which the standard allows), and ETIMEDOUT from
//! the call that follows at once under the same hold of the mutex: no request is
//! ever ignored.

use crate::elf::original::Original;
use crate::gil::{self, MUTEX, SWITCHING};
use crate::parker::Outcome;
use crate::thread::{Own, parker, with_own};
use crate::{clock, departed, fork, install, kernel, processors, record};
use libc::{pthread_cond_t, pthread_mutex_t, timespec};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use unsnarl_policy::{Nanos, Policy, ThreadId, Verdict};

type Signal = unsafe extern "C" fn(*mut pthread_cond_t) -> libc::c_int;
type Wait = unsafe extern "C" fn(*mut pthread_cond_t, *mut pthread_mutex_t) -> libc::c_int;
type TimedWait = unsafe extern "C" fn(*mut pthread_cond_t, *mut pthread_mutex_t, *const timespec) -> libc::c_int;

pub(crate) static REAL_SIGNAL: Original<Signal> = Original::new(libc::pthread_cond_signal);
pub(crate) static REAL_WAIT: Original<Wait> = Original::new(libc::pthread_cond_wait);
pub(crate) static REAL_TIMEDWAIT: Original<TimedWait> = Original::new(libc::pthread_cond_timedwait);

/// How long a thread in a forced switch stays awake when the one it switches to
/// is awake: a hand-over between two processors takes a microsecond or two.
const SWITCH_SPIN_NS: Nanos = 20_000;
/// How often the mutex is tried before the thread sleeps for it: it is held for
/// a few hundred nanoseconds, and for a wake call at the most.
const MUTEX_TRIES: u32 = 200;

/// Set by a drop whose heir is awake: the switch will be over soon.
static IS_HEIR_AWAKE: AtomicU32 = AtomicU32::new(0);

/// Takes the place of `pthread_cond_signal`.
///
/// Every call that releases the GIL comes through here twice. So what happens while
/// nobody waits calls nothing but as its last act, and only what cannot unwind: no register
/// has to be saved for it.
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
    if gil::is_gil_cond(cond) {
        // SAFETY: `drop_gil_impl` signals this condvar with its mutex held.
        if let Some(policy) = unsafe { gil::policy() } {
            if policy.has_waiters() {
                // SAFETY: the caller's argument, unchanged.
                return unsafe { signal_heir(cond) };
            }
            policy.dropped_uncontended(None);
            if kernel::has_told() {
                // SAFETY: the caller's argument, unchanged.
                return unsafe { signal_heir_beside_told(cond) };
            }
        }
    } else if gil::is_switch_cond(cond) {
        // SAFETY: `take_gil` signals this condvar with the GIL's mutex held.
        if let Some(policy) = unsafe { gil::policy() } {
            if !policy.is_uncontended() {
                // SAFETY: the caller's argument, unchanged.
                return unsafe { signal_switch(cond) };
            }
            policy.taken_uncontended(None);
            if kernel::has_told() {
                // SAFETY: the caller's argument, unchanged.
                return unsafe { signal_switch_beside_told(cond) };
            }
        }
        gil::count_take();
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

/// `drop_gil`, and somebody waits in the policy's queue.
#[inline(never)]
unsafe extern "C" fn signal_heir(cond: *mut pthread_cond_t) -> libc::c_int {
    with_own(fork::notice);
    // SAFETY: as for the caller.
    if unsafe { gil::policy() }.is_some_and(dropped) {
        return 0;
    }
    // SAFETY: the caller's argument, unchanged.
    unsafe { REAL_SIGNAL.get()(cond) }
}

/// The end of `take_gil`, and somebody waits or is about to come back.
#[inline(never)]
unsafe extern "C" fn signal_switch(cond: *mut pthread_cond_t) -> libc::c_int {
    with_own(fork::notice);
    // SAFETY: as for the caller.
    if let Some(policy) = unsafe { gil::policy() } {
        taken(policy);
    }
    gil::count_take();
    if SWITCHING.load(Relaxed) == 0 {
        return 0;
    }
    // SAFETY: the caller's argument, unchanged.
    unsafe { REAL_SIGNAL.get()(cond) }
}

/// `drop_gil`; nobody waits, and the kernel believes of some thread that it is CPU-bound.
#[inline(never)]
unsafe extern "C" fn signal_heir_beside_told(cond: *mut pthread_cond_t) -> libc::c_int {
    with_own(kernel::dropped);
    // SAFETY: the caller's argument, unchanged.
    unsafe { REAL_SIGNAL.get()(cond) }
}

/// The end of `take_gil`, likewise.
#[inline(never)]
unsafe extern "C" fn signal_switch_beside_told(cond: *mut pthread_cond_t) -> libc::c_int {
    with_own(kernel::taken);
    gil::count_take();
    if SWITCHING.load(Relaxed) == 0 {
        return 0;
    }
    // SAFETY: the caller's argument, unchanged.
    unsafe { REAL_SIGNAL.get()(cond) }
}

/// Of no concern to the scheduler, but perhaps to an installation.
#[inline(never)]
unsafe extern "C" fn signal_another(cond: *mut pthread_cond_t) -> libc::c_int {
    install::notice_signal(cond);
    // SAFETY: the caller's argument, unchanged.
    unsafe { REAL_SIGNAL.get()(cond) }
}

/// The GIL has been dropped; whether a waiter of ours was notified. If not, one
/// may be left in the real condvar from before the installation.
fn dropped(policy: &mut Policy) -> bool {
    let (thread, now) = with_own(|own| {
        kernel::dropped(own);
        (own.id(), clock::now())
    });
    departed::notice(policy, thread);
    let Some(grant) = policy.dropped(thread, now) else {
        return false;
    };
    if grant.not_before > now {
        parker(grant.heir).notify_if_awake(grant.not_before);
        return true;
    }
    let was_asleep = parker(grant.heir).notify(grant.not_before);
    IS_HEIR_AWAKE.store(u32::from(!was_asleep), Relaxed);
    true
}

/// The GIL has been taken.
fn taken(policy: &mut Policy) {
    with_own(|own| {
        departed::notice(policy, own.id());
        let (thread, now) = (own.register(policy), clock::now());
        let taken = policy.taken(thread, now, own.take_arrival(now));
        if let Some(thread) = thread {
            kernel::taken_from_others(own, policy.class(thread));
        }
        if let Some(revoked) = taken.revoked {
            parker(revoked).revoke(now);
        }
        if let Some(appointed) = taken.appoint {
            parker(appointed).notify(0);
        }
    });
}

/// Takes the place of `pthread_cond_timedwait`.
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
    if !gil::is_gil_cond(cond) {
        install::notice_wait(cond, mutex);
        // SAFETY: the caller's arguments, unchanged.
        return unsafe { REAL_TIMEDWAIT.get()(cond, mutex, until) };
    }
    with_own(|own| {
        fork::notice(own);
        // SAFETY: `take_gil` waits with the GIL's mutex held.
        let Some(policy) = (unsafe { gil::policy() }) else {
            return 0;
        };
        departed::notice(policy, own.id());
        match own.register(policy) {
            Some(thread) => {
                // SAFETY: `take_gil` passes a valid deadline.
                wait_in_queue(own, thread, mutex, unsafe { &*until })
            }
            // SAFETY: as above, the mutex is held.
            None => unsafe { wait_by_polling(mutex) },
        }
    })
}

/// Waits for the GIL in the policy's queue, with `mutex` held at both ends.
fn wait_in_queue(own: &Own, thread: ThreadId, mutex: *mut pthread_mutex_t, until: &timespec) -> libc::c_int {
    let mut now = clock::now();
    let mut has_slept = false;
    let takes = gil::takes();
    let parker = parker(thread);
    loop {
        // SAFETY: the mutex is held here in every round.
        let Some(policy) = (unsafe { gil::policy() }) else {
            return 0;
        };
        departed::notice(policy, Some(thread));
        if !gil::is_active() {
            policy.cancel(thread);
            return 0;
        }
        parker.reset();
        if !has_slept {
            install::observe_slice(policy, clock::nanos(until).saturating_sub(now));
        }
        let verdict = if has_slept {
            policy.look(thread, now)
        } else {
            policy.wait(thread, now, own.take_arrival(now))
        };
        match verdict {
            Verdict::Go => {
                departed::sent_back(thread);
                return 0;
            }
            Verdict::Ask => {
                departed::sent_back(thread);
                if has_slept && gil::takes() != takes {
                    policy.retract_ask(thread);
                    return 0;
                }
                return libc::ETIMEDOUT;
            }
            Verdict::Park { until, spin_ns } => {
                let class = policy.class(thread);
                let spin_ns = processors::spin(spin_ns);
                // SAFETY: the mutex is held by this thread.
                unsafe { libc::pthread_mutex_unlock(mutex) };
                kernel::tell(own, class);
                let outcome = parker.park(now, spin_ns, until);
                lock(mutex);
                now = clock::now();
                has_slept = true;
                note_outcome(thread, outcome);
            }
        }
    }
}

fn note_outcome(thread: ThreadId, outcome: Outcome) {
    // SAFETY: called with the mutex held.
    if let Some(policy) = unsafe { gil::policy() } {
        policy.stayed_awake(thread, outcome == Outcome::NotifiedAwake);
    }
}

/// Waits as one thread too many: a short sleep, then a request to drop. Both
/// are legal at any time, so nothing can be lost.
unsafe fn wait_by_polling(mutex: *mut pthread_mutex_t) -> libc::c_int {
    // SAFETY: the caller holds the mutex.
    unsafe { libc::pthread_mutex_unlock(mutex) };
    std::thread::sleep(std::time::Duration::from_millis(1));
    lock(mutex);
    libc::ETIMEDOUT
}

fn lock(mutex: *mut pthread_mutex_t) {
    for _ in 0..MUTEX_TRIES {
        // SAFETY: the GIL's mutex is valid as long as threads wait for the GIL.
        if unsafe { libc::pthread_mutex_trylock(mutex) } == 0 {
            return;
        }
        std::hint::spin_loop();
    }
    // SAFETY: as above.
    unsafe { libc::pthread_mutex_lock(mutex) };
}

/// Takes the place of `pthread_cond_wait`.
pub(crate) unsafe extern "C" fn wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> libc::c_int {
    // SAFETY: the caller's arguments, unchanged.
    let result = unsafe { scheduled_wait(cond, mutex) };
    record::switched(cond);
    result
}

unsafe fn scheduled_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> libc::c_int {
    if !gil::is_switch_cond(cond) {
        // SAFETY: the caller's arguments, unchanged.
        return unsafe { REAL_WAIT.get()(cond, mutex) };
    }
    let takes = gil::takes();
    if IS_HEIR_AWAKE.load(Relaxed) != 0 && processors::spin(SWITCH_SPIN_NS) > 0 {
        // SAFETY: `drop_gil` waits with this mutex held.
        unsafe { libc::pthread_mutex_unlock(mutex) };
        spin_until_taken(takes);
        lock(mutex);
    }
    if gil::takes() == takes {
        // `take_gil` signals with this mutex held: it either counts a take
        // before the load above, or finds SWITCHING set.
        SWITCHING.fetch_add(1, Relaxed);
        // SAFETY: the caller's arguments, unchanged.
        unsafe { REAL_WAIT.get()(cond, mutex) };
        SWITCHING.fetch_sub(1, Relaxed);
    }
    if processors::is_alone() {
        // SAFETY: the caller's arguments, with this mutex held.
        with_own(|own| unsafe { let_heir_pass(own, cond, mutex) });
    }
    with_own(|own| own.switched(clock::now()));
    0
}

/// On one processor: waits on in the forced switch while the policy wants the heir
/// to come first, until the next take or for the short time that the policy says.
/// Tells the kernel, too: a thread that always finds the GIL free when it comes
/// back never parks.
///
/// # Safety
/// `mutex` is `gil.switch_mutex`, held. `take_gil` locks it inside of the GIL's, so
/// it is given up for the look at the policy.
unsafe fn let_heir_pass(own: &Own, cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) {
    let Some(id) = own.id() else { return };
    while gil::is_active() {
        // SAFETY: held by this thread.
        unsafe { libc::pthread_mutex_unlock(mutex) };
        let look = |policy: &mut Policy| (policy.class(id), policy.lets_pass(id, clock::now()), gil::takes());
        let seen = with_mutex(look);
        if let Some((class, ..)) = seen {
            kernel::tell(own, class);
        }
        lock(mutex);
        let Some((_, Some(until), takes)) = seen else { return };
        if gil::takes() != takes {
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
            if gil::takes() != takes {
                return;
            }
            std::hint::spin_loop();
        }
        if clock::now() >= deadline {
            return;
        }
    }
}

/// Wakes every thread that waits in our queue: it finds the hooks passive, or
/// looks again.
pub(crate) fn notify_all(policy: &Policy) {
    policy.for_each_waiting(|thread| {
        parker(thread).notify(0);
    });
}

/// Locks the GIL's mutex for `f`, from outside of `take_gil` and `drop_gil`.
pub(crate) fn with_mutex<R>(f: impl FnOnce(&mut Policy) -> R) -> Option<R> {
    let mutex = MUTEX.load(Relaxed);
    if mutex.is_null() {
        return None;
    }
    lock(mutex);
    let by = with_own(|own| {
        fork::notice(own);
        own.id()
    });
    // SAFETY: the mutex is held.
    let result = unsafe { gil::policy() }.map(|policy| {
        departed::notice(policy, by);
        f(policy)
    });
    // SAFETY: locked above.
    unsafe { libc::pthread_mutex_unlock(mutex) };
    result
}
