//! A rough count of the threads behind a lock, from which a newcomer decides whether to yield the processor before it
//! sleeps.
//!
//! A fair scheduler keeps a process's claim to processor time through any sleep. On one processor the sleepers behind
//! a lock wake with that claim. The scheduler serves all of it before a process without a claim runs again. Such a
//! process may be the holder between two instructions, or the last one on its way to the lock. With n processes that
//! keep running after they had the lock, this takes up to four milliseconds of each: seconds in total, although the
//! lock itself was passed along long before.
//!
//! A thread that joins a crowd therefore yields to all others a few times before it sleeps, which uses up its claim.
//! Many holders come before it, so yielding costs it nothing. Behind few waiters a yield would delay an acquisition
//! that is near, so the thread sleeps immediately.
//!
//! Invariant: the count is only advice. A thread that is killed stays counted until a later newcomer finds no
//! sleeper; a wrong value costs time and nothing else.

use crate::shim::{AtomicU32, Ordering};

/// The smallest crowd: a newcomer is at least this many holders away from the lock.
const CROWD: u32 = 8;
/// More than the possible number of waiters: the value after a thread joined, the count was cleared, and the thread
/// left.
const ABSURD: u32 = 1 << 24;

/// The count of the threads behind a lock.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Crowd(AtomicU32);

/// A thread behind a lock; it leaves when this is dropped.
#[derive(Debug)]
#[must_use = "the caller leaves immediately otherwise"]
pub struct Standing<'a> {
    crowd: &'a Crowd,
    before: u32,
}

impl Crowd {
    /// Joins the threads behind the lock; `is_empty` if the lock's word says that there is no sleeper.
    pub fn join(&self, is_empty: bool) -> Standing<'_> {
        if is_empty {
            self.0.store(0, Ordering::Relaxed);
        }
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        Standing { crowd: self, before }
    }
}

impl Standing<'_> {
    /// Whether the threads that were there before are a crowd.
    #[must_use]
    pub fn is_in_crowd(&self) -> bool {
        (CROWD..ABSURD).contains(&self.before)
    }
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        self.crowd.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_few_are_no_crowd_and_many_are() {
        let crowd = Crowd::default();
        let standing: Vec<_> = (0..12).map(|at| crowd.join(at == 0)).collect();
        let joined: Vec<bool> = standing.iter().map(Standing::is_in_crowd).collect();
        assert_eq!(joined, (0..12).map(|at| at >= CROWD).collect::<Vec<_>>());
        drop(standing);
        assert!(!crowd.join(false).is_in_crowd());
    }

    #[test]
    fn dead_threads_are_forgotten_where_there_is_no_sleeper() {
        let crowd = Crowd::default();
        (0..20).for_each(|_| std::mem::forget(crowd.join(false)));
        assert!(crowd.join(false).is_in_crowd());
        assert!(!crowd.join(true).is_in_crowd());
    }

    #[test]
    fn a_thread_that_leaves_after_the_count_was_cleared_makes_no_crowd() {
        let crowd = Crowd::default();
        let early = crowd.join(true);
        drop(crowd.join(true));
        drop(early);
        assert!(!crowd.join(false).is_in_crowd());
    }
}
