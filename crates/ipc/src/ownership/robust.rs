//! The robust word: the thread id of a lock's holder, which the kernel marks if that thread dies.
//!
//! | word | meaning | writer |
//! |---|---|---|
//! | 0 | free | – |
//! | tid | that thread holds it | a thread that found it free; the holder |
//! | tid + WAITERS | that thread holds it, and a waiter may sleep on the word | a waiter, before it sleeps |
//! | DIED, with or without WAITERS | the thread that held it died | the kernel, as the thread dies |
//!
//! This is the protocol of the kernel's robust futexes. A thread registers the word's address with the kernel before
//! it touches the word (`Kernel::begin`). Therefore, at whichever instruction the thread is killed:
//!
//! - the kernel finds the thread's tid in the word, marks the word and wakes one waiter; or
//! - the kernel finds the word free and wakes one waiter. This covers a releaser that was killed before its wake-up,
//!   and a woken waiter that was killed before it took the lock.
//!
//! qemu-user takes no robust lists. There each attempt that finds the word busy checks whether the holder's thread still
//! exists, and makes the kernel's mark if it does not ([`observe`]). No sleep is longer than a second, so every waiter
//! gets to that check. Its limit is a thread id that a new thread has got since: until that thread ends, the dead holder
//! counts as alive.
//!
//! Waiters overtake each other: the first thread to run takes a free word. The word is never handed over, since a
//! word that names a thread that does not run yet would make every release a context switch.
//!
//! Things that do not work:
//!
//! - A pid in the word, and waiters that check periodically whether that process still runs: the waiters notice a
//!   death late, and a pid can be reused between the death and the check.
//! - Sleeping on a pidfd instead of the word: the holder changes during the sleep, and no waiter then watches the new
//!   holder.
//! - A helper thread per process that watches the holders: since CPython 3.12 a fork next to any second thread warns.
//!
//! Invariant: only `unlock` sets a word to 0, and afterwards it wakes a sleeper if there may be one.

use crate::kernel::{Kernel, Step};
use crate::shim::{AtomicU32, Ordering};

/// A waiter may sleep on the word.
pub const WAITERS: u32 = 0x8000_0000;
/// The holder's thread died.
pub const DIED: u32 = 0x4000_0000;
/// The bits of the holder's thread id.
pub const TID_MASK: u32 = 0x3fff_ffff;

/// How an attempt to lock ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// The caller holds the lock.
    Taken,
    /// The caller holds the lock, and the previous holder died with it.
    TakenFromDead,
    /// Another thread holds the lock; this is the word.
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

/// Takes the word if it is free; `has_slept` if the caller slept on it, when other sleepers may still be there.
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
        // This crate never writes a word with WAITERS and without an owner; it counts as free.
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

/// Returns the word. If its holder died and the kernel makes no marks, the word is marked first.
#[inline]
pub fn observe<K: Kernel>(word: &AtomicU32, kernel: &K) -> u32 {
    // ORDERING: pairs with the release in `unlock`; a reader's look also with the exchanges of the word by writers.
    let found = word.load(Ordering::SeqCst);
    if found & TID_MASK != 0 && kernel.died_unmarked(found & TID_MASK) {
        return mark(word, found);
    }
    found
}

/// Marks the word of a thread that died with it, as the kernel does. Returns the new word.
///
/// A dead thread writes nothing, so only another caller that marks or takes the word can be faster.
#[cold]
fn mark(word: &AtomicU32, found: u32) -> u32 {
    let marked = DIED | (found & WAITERS);
    match word.compare_exchange(found, marked, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => marked,
        Err(now) => now,
    }
}

/// Announces that the caller is going to sleep on a word that it found busy.
///
/// Returns the value to sleep on, or None if the word has changed.
pub(crate) fn announce(word: &AtomicU32, found: u32) -> Option<u32> {
    let awaited = found | WAITERS;
    if found & WAITERS != 0 {
        return Some(awaited);
    }
    word.compare_exchange(found, awaited, Ordering::Relaxed, Ordering::Relaxed)
        .is_ok()
        .then_some(awaited)
}

/// Releases the word, and wakes up to `count` sleepers if there may be any.
///
/// The caller holds it, and has called [`Kernel::begin`] on it.
#[inline]
pub fn unlock<K: Kernel>(word: &AtomicU32, count: u32, kernel: &K) {
    // ORDERING: release pairs with the acquire in `try_lock`.
    if word.swap(0, Ordering::Release) & WAITERS != 0 {
        kernel.wake(word, count);
    }
}

/// How an attempt to enter a short critical section ended.
#[derive(Debug)]
pub enum Guarded<'a> {
    /// The caller is inside; true if the previous thread died inside.
    Inside(bool),
    /// Sleep, then try again.
    Sleep(&'a AtomicU32, u32),
}

/// Enter a critical section.
///
/// The caller leaves with [`release_guard`]. Only the registration by `begin` protects the section, so the caller
/// must not register another word inside.
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
        // A section is a few instructions long, so its holder is usually about to leave.
        for _ in 0..100 {
            kernel.pause();
            if word.load(Ordering::Relaxed) & TID_MASK == 0 {
                break;
            }
        }
        match try_lock(word, kernel.tid(), false) {
            Attempt::Taken => return Guarded::Inside(false),
            Attempt::TakenFromDead => return Guarded::Inside(true),
            Attempt::Busy(found) if kernel.died_unmarked(found & TID_MASK) => {
                mark(word, found);
            }
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

/// Takes the word, or names the word to sleep on. The caller has called [`Kernel::begin`].
#[inline]
pub fn lock_or_sleep<'a, K: Kernel>(word: &'a AtomicU32, has_slept: bool, kernel: &K) -> Step<'a, Attempt> {
    loop {
        match try_lock(word, kernel.tid(), has_slept) {
            Attempt::Busy(found) if kernel.died_unmarked(found & TID_MASK) => {
                mark(word, found);
            }
            Attempt::Busy(found) => {
                if let Some(awaited) = announce(word, found) {
                    return Step::Sleep(word, awaited);
                }
            }
            taken => return Step::Done(taken),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A kernel without robust lists: it marks nothing, and one thread has died.
    struct Unmarking {
        dead: u32,
        looks: Cell<u32>,
    }

    const ME: u32 = 1;

    impl Unmarking {
        fn after_death_of(dead: u32) -> Self {
            Self {
                dead,
                looks: Cell::new(0),
            }
        }
    }

    impl Kernel for Unmarking {
        fn tid(&self) -> u32 {
            ME
        }
        fn process(&self) -> u64 {
            u64::from(ME)
        }
        fn is_alive(&self, process: u64) -> bool {
            process != u64::from(self.dead)
        }
        fn died_unmarked(&self, tid: u32) -> bool {
            self.looks.set(self.looks.get() + 1);
            tid == self.dead
        }
        fn wake(&self, _word: &AtomicU32, _count: u32) {}
        fn begin(&self, _word: &AtomicU32) {}
        fn end(&self) {}
        fn pause(&self) {}
    }

    #[test]
    fn an_unmarked_death_is_found_by_the_next_attempt() {
        for waiters in [0, WAITERS] {
            let (word, kernel) = (AtomicU32::new(7 | waiters), Unmarking::after_death_of(7));
            let step = lock_or_sleep(&word, false, &kernel);
            assert!(matches!(step, Step::Done(Attempt::TakenFromDead)), "{step:?}");
            assert_eq!(word.load(Ordering::Relaxed), ME | waiters);
        }
    }

    #[test]
    fn an_unmarked_death_inside_a_guard_is_found() {
        let (word, kernel) = (AtomicU32::new(7), Unmarking::after_death_of(7));
        assert!(matches!(try_guard(&word, false, &kernel), Guarded::Inside(true)));
    }

    #[test]
    fn a_living_holder_is_waited_for() {
        let (word, kernel) = (AtomicU32::new(6), Unmarking::after_death_of(7));
        assert!(matches!(lock_or_sleep(&word, false, &kernel), Step::Sleep(..)));
        assert_eq!(observe(&word, &kernel), 6 | WAITERS);
    }

    #[test]
    fn the_look_at_a_word_marks_it_and_a_free_word_needs_no_look() {
        let (word, kernel) = (AtomicU32::new(7 | WAITERS), Unmarking::after_death_of(7));
        assert_eq!(observe(&word, &kernel), DIED | WAITERS);
        assert_eq!(observe(&word, &kernel), DIED | WAITERS);
        assert_eq!(kernel.looks.get(), 1);
    }
}
