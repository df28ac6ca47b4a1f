//! Releases a contended semaphore without waking a waiter, and wakes it when the GIL is dropped.
//!
//! `unsnarl_policy::deferral` has the reason and the rule. The semaphore is glibc's (`sysdeps/nptl/internaltypes.h`,
//! `struct new_sem`, 2.21 and later, 64 bits): a word with the value in its low half and the number of waiters in its
//! high half, and then a word that is 0 if the semaphore is private to the process. A release adds one to the value; any
//! thread that tries finds it. Only the call of FUTEX_WAKE is owed:
//!
//! | who | when | what |
//! |---|---|---|
//! | the releaser | it releases | adds one, and notes the semaphore in `OWED` |
//! | the releaser | it drops the GIL | wakes a waiter if the semaphore still is available |
//! | the watcher | every millisecond, or every 4.5 ms where that was enough | wakes a waiter, for a releaser that computes |
//!
//! The watcher is a thread that waits for some semaphore. It sleeps on the futex itself, with a timeout. There is at
//! most one, and without one nothing is deferred; a release that would have been makes the next waiter watch.
//!
//! Must never: read a semaphore that may have been freed. The watcher only passes the address to FUTEX_WAKE, which
//! checks it. The releaser reads a semaphore on which several threads wait, at its next drop of the GIL: until then no
//! thread that waited has been able to drop its reference to the lock. A semaphore with one waiter may be on that thread's
//! stack (`Python/parking_lot.c`), and is not read.
//! Invariant: if a semaphore is available and threads sleep on it, it is in `OWED`, or a thread that has been woken is
//! on its way to it.

use crate::thread::with_current;
use crate::{clock, futex};
use libc::{c_int, sem_t};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};
use unsnarl_policy::{
    Nanos,
    deferral::{self, ContendedPost, WatchPace},
};

/// Whether the layout of the C library's semaphores is the expected one.
static IS_KNOWN: AtomicBool = AtomicBool::new(false);
/// Whether a thread watches.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);
/// The semaphore that is available, and of which a waiter has not been woken yet.
static OWED: AtomicPtr<sem_t> = AtomicPtr::new(null_mut());
/// The thread that noted it and may look at it later, by the address of its state; written after `OWED`.
static RELEASER: AtomicUsize = AtomicUsize::new(0);
/// When a waiter was last woken.
static WOKEN_AT: AtomicU64 = AtomicU64::new(0);
/// When a contended semaphore was last released.
static RELEASED_AT: AtomicU64 = AtomicU64::new(0);
/// Whether a contended semaphore was released since the GIL was last dropped.
static IS_DROP_AWAITED: AtomicBool = AtomicBool::new(false);
/// Whether a release would have been deferred if a thread had watched.
static IS_WATCHER_WANTED: AtomicBool = AtomicBool::new(false);
/// How often the watcher looks, as a [`WatchPace`].
static PACE: AtomicU8 = AtomicU8::new(WatchPace::UNKNOWN.as_u8());
/// Number of deferred wake-ups so far: the watcher sees whether there are any.
static DEFERRED: AtomicU32 = AtomicU32::new(0);

const ONE_WAITER: u64 = 1 << 32;
const BYTES_OF_PRIVATE: usize = 8;

const fn value(word: u64) -> u32 {
    word as u32
}

const fn waiters(word: u64) -> u32 {
    (word >> 32) as u32
}

/// The value and the number of waiters.
///
/// # Safety
/// `sem` is a semaphore of the known layout, and outlives the reference.
const unsafe fn word<'a>(sem: *mut sem_t) -> &'a AtomicU64 {
    // SAFETY: the layout begins with this word, aligned as `sem_t` is; glibc too uses it by atomic operations only.
    unsafe { &*sem.cast::<AtomicU64>() }
}

/// # Safety
/// As for [`word`].
const unsafe fn is_private(sem: *mut sem_t) -> bool {
    // SAFETY: a word of the structure, which nothing changes after `sem_init`.
    unsafe { sem.byte_add(BYTES_OF_PRIVATE).cast::<u32>().read() == 0 }
}

/// Finds out whether the layout is the known one. The calling thread holds the installation guard.
pub(crate) fn prepare() {
    IS_KNOWN.store(is_layout_known(), Relaxed);
}

#[cfg(all(target_pointer_width = "64", target_endian = "little", target_env = "gnu"))]
fn is_layout_known() -> bool {
    // SAFETY: the C library returns a static string.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    let minor = version
        .to_str()
        .ok()
        .and_then(|text| text.strip_prefix("2.")?.split('.').next()?.parse().ok());
    if minor.is_none_or(|minor: u32| minor < 21) {
        return false;
    }
    let look = |shared: c_int| {
        let mut sem = std::mem::MaybeUninit::<sem_t>::zeroed();
        let sem = sem.as_mut_ptr();
        // SAFETY: `sem` is writable memory of a semaphore's size, and is initialised first.
        unsafe {
            let made = libc::sem_init(sem, shared, 5) == 0;
            let at_first = word(sem).load(Relaxed);
            let posted = libc::sem_post(sem) == 0;
            let seen = (made && posted, at_first, word(sem).load(Relaxed), is_private(sem));
            libc::sem_destroy(sem);
            seen
        }
    };
    look(0) == (true, 5, 6, true) && look(1) == (true, 5, 6, false)
}

#[cfg(not(all(target_pointer_width = "64", target_endian = "little", target_env = "gnu")))]
const fn is_layout_known() -> bool {
    false
}

/// Releases `sem` without a wake-up if the rule says so; returns whether it has.
///
/// # Safety
/// `sem` is an initialised semaphore that the calling thread may release.
#[inline]
pub(super) unsafe fn release(sem: *mut sem_t) -> bool {
    // SAFETY: as for the caller, and the layout is known.
    IS_KNOWN.load(Relaxed) && unsafe { waiters(word(sem).load(Relaxed)) > 0 && release_contended(sem) }
}

/// # Safety
/// As for [`release`], with the known layout.
#[inline(never)]
unsafe fn release_contended(sem: *mut sem_t) -> bool {
    // SAFETY: as for the caller.
    let (word, is_private) = unsafe { (word(sem), is_private(sem)) };
    if !is_private {
        return false;
    }
    let now = clock::now();
    let since_release_ns = now.saturating_sub(RELEASED_AT.load(Relaxed));
    RELEASED_AT.store(now, Relaxed);
    let blocks_soon = with_current(|current| current.releases_lock(now));
    IS_DROP_AWAITED.store(true, Relaxed);
    let mut seen = word.load(Relaxed);
    loop {
        let release = ContendedPost {
            value: value(seen),
            waiters: waiters(seen),
            since_wake_ns: now.saturating_sub(WOKEN_AT.load(Relaxed)),
            since_release_ns,
            blocks_soon,
        };
        let is_deferred = deferral::is_deferred(release);
        if !is_deferred || !IS_WATCHED.load(Relaxed) {
            if is_deferred {
                IS_WATCHER_WANTED.store(true, Relaxed);
            }
            WOKEN_AT.store(now, Relaxed);
            return false;
        }
        // ORDERING: the release of a lock, so Release pairs with the Acquire of the thread that acquires it. SeqCst also
        // pairs with `dropped_gil`: a thread that has removed the semaphore from OWED after we saw it there sees the new value.
        match word.compare_exchange_weak(seen, seen + 1, SeqCst, Relaxed) {
            Ok(_) => break,
            Err(other) => seen = other,
        }
    }
    DEFERRED.store(DEFERRED.load(Relaxed).wrapping_add(1), Relaxed);
    // ORDERING: SeqCst, as above, and pairs with `stop_watching`: either this thread sees that nobody watches, or the
    // thread that stops sees what is owed.
    match OWED.compare_exchange(null_mut(), sem, SeqCst, SeqCst) {
        Err(owed) if owed != sem => {
            wake(sem);
            return true;
        }
        _ => RELEASER.store(if waiters(seen) > 1 { this_thread() } else { 0 }, Relaxed),
    }
    // ORDERING: SeqCst, as above.
    if !IS_WATCHED.load(SeqCst) {
        wake_owed();
    }
    true
}

/// Whether a contended semaphore was released since the GIL was last dropped; read at each drop.
#[inline(always)]
pub(super) fn is_drop_awaited() -> bool {
    IS_DROP_AWAITED.load(Relaxed)
}

/// The calling thread drops the GIL: returns the wake-up that is owed, and learns when the thread blocks.
#[inline(never)]
pub(super) fn dropped_gil() -> Option<OwedWake> {
    IS_DROP_AWAITED.store(false, Relaxed);
    with_current(|current| current.drops_after_release(clock::now()));
    // ORDERING: SeqCst pairs with `release_contended`.
    let sem = OWED.swap(null_mut(), SeqCst);
    if sem.is_null() {
        return None;
    }
    if RELEASER.load(Relaxed) == this_thread() {
        // SAFETY: the calling thread has held the GIL since the release, so whoever waited for the lock then still has a
        // reference to it (head of this file). Between the two stores of another releaser, that one still uses the lock.
        // ORDERING: SeqCst, as above: what `release_contended` added before it found the semaphore owed is seen.
        let seen = unsafe { word(sem) }.load(SeqCst);
        if value(seen) == 0 || waiters(seen) == 0 {
            return None;
        }
    }
    // Otherwise it has a single waiter, is another interpreter's, or was released without the GIL.
    WOKEN_AT.store(clock::now(), Relaxed);
    Some(OwedWake(sem))
}

/// A wake-up to make.
pub(super) struct OwedWake(*mut sem_t);

impl OwedWake {
    pub(super) fn make(self) {
        wake(self.0);
    }
}

fn this_thread() -> usize {
    with_current(|current| std::ptr::from_ref(current).addr())
}

/// Makes the wake-up that is owed, from any thread, without a look at the semaphore; returns whether there was one.
fn wake_owed() -> bool {
    // ORDERING: SeqCst pairs with `release_contended`.
    let sem = OWED.swap(null_mut(), SeqCst);
    if !sem.is_null() {
        wake(sem);
    }
    !sem.is_null()
}

/// Pays and forgets, at the end of the scheduler.
pub(crate) fn stop() {
    IS_KNOWN.store(false, Relaxed);
    IS_WATCHER_WANTED.store(false, Relaxed);
    wake_owed();
}

/// In the child of a fork no other thread waits or watches.
pub(super) fn restart_in_child() {
    OWED.store(null_mut(), Relaxed);
    IS_WATCHED.store(false, Relaxed);
    IS_WATCHER_WANTED.store(false, Relaxed);
    IS_DROP_AWAITED.store(false, Relaxed);
}

/// Waits for `sem` as `call` does, which makes the original call; watches meanwhile if that is wanted and no other
/// thread does. `until` is the time of the caller's own timeout, of CLOCK_MONOTONIC.
///
/// # Safety
/// `sem` is an initialised semaphore that outlives the call.
pub(super) unsafe fn wait(sem: *mut sem_t, until: Nanos, call: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: as for the caller; a watcher is only wanted if the layout is known.
    let is_wanted = IS_WATCHER_WANTED.load(Relaxed) && !IS_WATCHED.load(Relaxed) && unsafe { is_private(sem) };
    // ORDERING: SeqCst pairs with `release_contended`, which reads it before and after it defers.
    if !is_wanted || IS_WATCHED.swap(true, SeqCst) {
        return call();
    }
    let mut was_needed = false;
    // SAFETY: as for the caller.
    let waited = unsafe { watch(sem, until, &mut was_needed) };
    let pace = WatchPace::of_u8(PACE.load(Relaxed)).after(was_needed);
    PACE.store(pace.as_u8(), Relaxed);
    stop_watching();
    match waited {
        Waited::Acquired => 0,
        Waited::Failed(error) => {
            // SAFETY: errno is this thread's.
            unsafe { *libc::__errno_location() = error };
            -1
        }
        Waited::Idle => call(),
    }
}

fn stop_watching() {
    // ORDERING: SeqCst pairs with `release_contended`: what it defers before it sees this is paid here.
    IS_WATCHED.store(false, SeqCst);
    wake_owed();
}

enum Waited {
    Acquired,
    /// With this value of errno.
    Failed(c_int),
    /// There is nothing to watch.
    Idle,
}

/// Waits for `sem` by its own futex, as glibc's `__new_sem_wait_slow64` does, and wakes for a releaser that computes:
/// `was_needed` is set then.
///
/// # Safety
/// As for [`wait`].
unsafe fn watch(sem: *mut sem_t, until: Nanos, was_needed: &mut bool) -> Waited {
    // SAFETY: as for the caller.
    let word = unsafe { word(sem) };
    word.fetch_add(ONE_WAITER, Relaxed);
    let mut interval_ns = WatchPace::of_u8(PACE.load(Relaxed)).interval_ns();
    let (mut idle_looks, mut deferred) = (0, DEFERRED.load(Relaxed));
    loop {
        let mut seen = word.load(Relaxed);
        while value(seen) > 0 {
            // ORDERING: Acquire pairs with the Release of the release.
            match word.compare_exchange_weak(seen, seen - 1 - ONE_WAITER, Acquire, Relaxed) {
                Ok(_) => return Waited::Acquired,
                Err(other) => seen = other,
            }
        }
        let look_at = clock::now() + interval_ns;
        // The futex is the low half of the word, the value, which comes first.
        match futex::wait(word.as_ptr().cast(), 0, until.min(look_at)) {
            0 | libc::EAGAIN => {}
            libc::ETIMEDOUT if until > look_at => {
                if wake_owed() {
                    *was_needed = true;
                    interval_ns = deferral::WATCH_NS;
                }
                let now_deferred = DEFERRED.load(Relaxed);
                idle_looks = if now_deferred == deferred { idle_looks + 1 } else { 0 };
                deferred = now_deferred;
                if idle_looks == deferral::IDLE_LOOKS {
                    IS_WATCHER_WANTED.store(false, Relaxed);
                    word.fetch_sub(ONE_WAITER, Relaxed);
                    return Waited::Idle;
                }
            }
            error => {
                word.fetch_sub(ONE_WAITER, Relaxed);
                return Waited::Failed(error);
            }
        }
    }
}

/// Wakes a thread that sleeps on the semaphore at this address, if there is one. errno stays as it was.
fn wake(sem: *mut sem_t) {
    // SAFETY: errno is this thread's.
    let errno = unsafe { &mut *libc::__errno_location() };
    let before = *errno;
    futex::wake(sem.cast());
    *errno = before;
}

#[cfg(all(test, target_pointer_width = "64", target_endian = "little", target_env = "gnu"))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    struct Semaphore(Box<std::cell::UnsafeCell<sem_t>>);
    // SAFETY: semaphores are made for several threads.
    unsafe impl Sync for Semaphore {}
    // SAFETY: as above.
    unsafe impl Send for Semaphore {}

    impl Semaphore {
        fn new() -> Self {
            // SAFETY: any bits are a `sem_t`, which `sem_init` then initialises.
            let own = Self(Box::new(unsafe { std::mem::zeroed() }));
            // SAFETY: writable memory of its own.
            assert_eq!(unsafe { libc::sem_init(own.get(), 0, 0) }, 0);
            own
        }

        fn get(&self) -> *mut sem_t {
            self.0.get()
        }

        fn waiters(&self) -> u32 {
            // SAFETY: it outlives the call.
            waiters(unsafe { word(self.get()) }.load(SeqCst))
        }
    }

    /// Waits with two threads, and releases twice; `after` makes the wake-up that is owed, or leaves it to the watcher.
    /// Returns whether the first release was deferred: on a busy machine the watcher may have given up by then.
    fn round(after: impl Fn()) -> bool {
        let (sem, acquired) = (Arc::new(Semaphore::new()), Arc::new(AtomicUsize::new(0)));
        let release = || {
            // SAFETY: the semaphore is initialised, here and below.
            let is_deferred = unsafe { release(sem.get()) };
            if !is_deferred {
                // SAFETY: as above.
                unsafe { libc::sem_post(sem.get()) };
            }
            is_deferred
        };
        IS_WATCHER_WANTED.store(true, SeqCst);
        let waiter = || {
            let (sem, acquired) = (Arc::clone(&sem), Arc::clone(&acquired));
            std::thread::spawn(move || {
                let raw = sem.get();
                // SAFETY: the semaphore outlives the thread.
                let result = unsafe { wait(raw, Nanos::MAX, || libc::sem_wait(raw)) };
                assert_eq!(result, 0);
                acquired.fetch_add(1, SeqCst);
            })
        };
        let threads = [waiter(), waiter()];
        while sem.waiters() < 2 {
            DEFERRED.fetch_add(1, SeqCst); // so that the watcher stays
            std::thread::yield_now();
        }
        WOKEN_AT.store(clock::now() + 60_000_000_000, SeqCst); // a time that is not long ago for the whole test
        let is_deferred = release();
        after();
        while acquired.load(SeqCst) < 1 {
            std::thread::yield_now();
        }
        release();
        after();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!((sem.waiters(), IS_WATCHED.load(SeqCst)), (0, false));
        is_deferred
    }

    /// One test, since the state is the process's.
    #[test]
    fn a_deferred_wake_up_reaches_a_waiter_at_the_drop_and_without_one() {
        prepare();
        assert!(IS_KNOWN.load(SeqCst), "glibc's layout");
        let pay = || {
            if let Some(owed) = dropped_gil() {
                owed.make();
            }
        };
        for after in [&pay as &dyn Fn(), &|| {}] {
            let mut deferred = 0;
            while deferred < 50 {
                deferred += u32::from(round(after));
            }
        }
        stop();
    }
}
