//! How many stand behind a lock, roughly; and when one who joins them gives way first.
//!
//! A fair scheduler remembers, through any sleep, how much of a processor it owes to a process. On one
//! processor, those that sleep behind a lock wake with what they are owed, and all of it is
//! served before a process that is owed nothing runs again, be it the holder between two
//! instructions or the last one on its way to the lock. With n that run on after the lock that
//! takes up to four milliseconds of each: seconds, where the lock itself has long been passed along.
//! So who joins a crowd gives way to all others a few times before it sleeps, which settles what
//! it is owed. Its own turn is far away: that costs it nothing. Where few stand, giving way would put off
//! a turn that comes soon, so there one goes to sleep at once.
//!
//! Invariant: advice alone. One that is killed stays counted until a later comer finds nobody
//! asleep; any value of the word costs time and nothing else.

use crate::shim::{AtomicU32, Ordering};

/// From how many on it is a crowd: the turn of who joins it is at least as many holders away.
const CROWD: u32 = 8;
/// More than can wait for anything here: the count of one that joined before it was cleared, and left after.
const ABSURD: u32 = 1 << 24;

/// The count of those that stand behind a lock.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Crowd(AtomicU32);

/// One that stands there; it leaves as this is dropped.
#[derive(Debug)]
#[must_use = "who joins leaves at once otherwise"]
pub struct Standing<'a> {
    crowd: &'a Crowd,
    before: u32,
}

impl Crowd {
    /// Stand behind the lock; `is_empty` where the lock's word says that nobody sleeps there.
    pub fn join(&self, is_empty: bool) -> Standing<'_> {
        if is_empty {
            self.0.store(0, Ordering::Relaxed);
        }
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        Standing { crowd: self, before }
    }
}

impl Standing<'_> {
    /// Whether those that were there before are a crowd.
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
    fn the_dead_are_forgotten_where_nobody_sleeps() {
        let crowd = Crowd::default();
        (0..20).for_each(|_| std::mem::forget(crowd.join(false)));
        assert!(crowd.join(false).is_in_crowd());
        assert!(!crowd.join(true).is_in_crowd());
    }

    #[test]
    fn one_that_leaves_after_the_count_was_cleared_makes_no_crowd() {
        let crowd = Crowd::default();
        let early = crowd.join(true);
        drop(crowd.join(true));
        drop(early);
        assert!(!crowd.join(false).is_in_crowd());
    }
}
