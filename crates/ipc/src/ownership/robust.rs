//! The robust word: who holds a lock, in a form that the kernel repairs.
//!
//! | word | means | who may write it |
//! |---|---|---|
//! | 0 | free | – |
//! | tid | that thread holds it | a thread that found it free; the holder |
//! | tid + WAITERS | the same, and somebody may sleep on the word | a waiter, before it sleeps |
//! | DIED, with or without WAITERS | the thread that held it died | the kernel, as the thread dies |
//!
//! This is the protocol of the kernel's robust futexes. A thread tells the kernel
//! the word's address before it touches the word (`Kernel::begin`), so whatever the
//! instruction at which it is killed, the kernel either finds its tid in the word,
//! marks it and wakes one waiter, or finds the word free and wakes one waiter, which
//! covers both a releaser that was killed before its wake-up and a woken waiter
//! that was killed before it took the lock.
//!
//! Waiters overtake each other: whoever runs first takes a free word. The word is
//! never handed over, since a word that names a thread that does not run yet would
//! make every release a context switch.
//!
//! Things that do not work: a pid in the word with waiters that look from time to
//! time whether it still runs (late, and a pid can be reused between the death and
//! the look); sleeping on a pidfd instead of the word (the holder changes while one
//! sleeps, and nobody then watches the new one); a helper thread per process that
//! keeps watch (since CPython 3.12 a fork beside any second thread warns).
//!
//! Invariant: a word is set to 0 only by `unlock`, and after that a sleeper is woken if
//! one may be there.

use crate::kernel::{Kernel, Step};
use crate::shim::{AtomicU32, Ordering};

/// Somebody may sleep on the word.
pub const WAITERS: u32 = 0x8000_0000;
/// The holder died.
pub const DIED: u32 = 0x4000_0000;
/// The holder.
pub const TID_MASK: u32 = 0x3fff_ffff;

/// How an attempt to lock ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// The caller holds the lock.
    Taken,
    /// The caller holds the lock, and the one before died with it.
    TakenFromDead,
    /// Somebody else holds it: this is the word.
    Busy(u32),
}

impl Attempt {
    /// Whether the caller holds the lock.
    #[inline]
    #[must_use]
    pub fn is_taken(self) -> bool {
        !matches!(self, Self::Busy(_))
    }
}

/// Take the word if nobody holds it; `has_slept` if the caller was asleep on it, when others may be too.
///
/// The caller has called [`Kernel::begin`] on the word.
#[inline]
pub fn try_lock(word: &AtomicU32, tid: u32, has_slept: bool) -> Attempt {
    let mine = if has_slept { tid | WAITERS } else { tid };
    // ORDERING: acquire pairs with the release in `unlock`.
    match word.compare_exchange(0, mine, Ordering::Acquire, Ordering::Relaxed) {
        Ok(_) => Attempt::Taken,
        Err(found) => take_from_dead(word, tid, found),
    }
}

#[cold]
fn take_from_dead(word: &AtomicU32, tid: u32, mut found: u32) -> Attempt {
    loop {
        // A word without an owner and with WAITERS is not written by us; it is as good as free.
        if found & TID_MASK != 0 {
            return Attempt::Busy(found);
        }
        let mine = tid | (found & WAITERS);
        // ORDERING: acquire pairs with what the dead holder released, and with the kernel's mark.
        match word.compare_exchange(found, mine, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) if found & DIED != 0 => return Attempt::TakenFromDead,
            Ok(_) => return Attempt::Taken,
            Err(now) => found = now,
        }
    }
}

/// Announce that the caller is going to sleep on a word that it found busy.
///
/// Returns what to sleep on, or None if the word has changed.
pub(crate) fn announce(word: &AtomicU32, found: u32) -> Option<u32> {
    let awaited = found | WAITERS;
    if found & WAITERS != 0 {
        return Some(awaited);
    }
    word.compare_exchange(found, awaited, Ordering::Relaxed, Ordering::Relaxed)
        .is_ok()
        .then_some(awaited)
}

/// Give the word back, and wake a sleeper if one may be there.
///
/// The caller holds it, and has called [`Kernel::begin`] on it.
#[inline]
pub fn unlock<K: Kernel>(word: &AtomicU32, count: u32, kernel: &K) {
    // ORDERING: release pairs with the acquire in `try_lock`.
    if word.swap(0, Ordering::Release) & WAITERS != 0 {
        kernel.wake(word, count);
    }
}

/// What a short critical section begins with: a guard that lasts for a few instructions.
#[derive(Debug)]
pub enum Guarded<'a> {
    /// The caller is inside; true if the one before died inside.
    Inside(bool),
    /// Sleep, then try again.
    Sleep(&'a AtomicU32, u32),
}

/// Enter a critical section.
///
/// It is left with [`release_guard`]; the kernel keeps watch by `begin` alone, so
/// inside of it nothing else may be begun.
#[inline]
pub fn try_guard<'a, K: Kernel>(word: &'a AtomicU32, has_slept: bool, kernel: &K) -> Guarded<'a> {
    kernel.begin(word);
    match try_lock(word, kernel.tid(), has_slept) {
        Attempt::Taken => Guarded::Inside(false),
        Attempt::TakenFromDead => Guarded::Inside(true),
        Attempt::Busy(_) => guard_busy(word, kernel),
    }
}

#[cold]
fn guard_busy<'a, K: Kernel>(word: &'a AtomicU32, kernel: &K) -> Guarded<'a> {
    loop {
        // A section is a few instructions long, so its holder is mostly about to leave.
        for _ in 0..100 {
            kernel.pause();
            if word.load(Ordering::Relaxed) & TID_MASK == 0 {
                break;
            }
        }
        match try_lock(word, kernel.tid(), false) {
            Attempt::Taken => return Guarded::Inside(false),
            Attempt::TakenFromDead => return Guarded::Inside(true),
            Attempt::Busy(found) => {
                if let Some(awaited) = announce(word, found) {
                    return Guarded::Sleep(word, awaited);
                }
            }
        }
    }
}

/// Leave a critical section.
#[inline]
pub fn release_guard<K: Kernel>(word: &AtomicU32, kernel: &K) {
    unlock(word, 1, kernel);
    kernel.end();
}

/// Take the word, or name what to sleep on. The caller has called [`Kernel::begin`].
#[inline]
pub fn lock_or_sleep<'a>(word: &'a AtomicU32, tid: u32, has_slept: bool) -> Step<'a, Attempt> {
    loop {
        match try_lock(word, tid, has_slept) {
            Attempt::Busy(found) => {
                if let Some(awaited) = announce(word, found) {
                    return Step::Sleep(word, awaited);
                }
            }
            taken => return Step::Done(taken),
        }
    }
}
