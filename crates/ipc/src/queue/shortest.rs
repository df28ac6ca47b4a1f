//! The length of the shortest record that waits for room in a ring, so that a record that fits is not left asleep.
//!
//! Waiting putters sleep on one bell in order of arrival, and a getter rings for the first. Where lengths differ, the
//! first record may not fit although a shorter one behind it would. So a putter that is refused records its length if
//! that is the shortest. A putter that was woken without finding room wakes the next sleeper if the shortest record
//! would fit.
//!
//! A putter remembers how many records had been taken at its last attempt. If it is refused at the same number for
//! the third time, after sleeps, all sleepers had an attempt, and it wakes none. The lengths recorded meanwhile are
//! those of the records that still wait. Two times are not enough: the first refusal may come before the getter
//! rings, and the second may be due to that ring.
//!
//! Invariant: the words change only inside the putters' guard. Any value of them costs wake-ups, or a sleep until its
//! time limit, and nothing else.

use crate::kernel::Slept;
use crate::shim::{AtomicU32, AtomicU64, Ordering};

/// Refusals at one number of records taken after which every sleeper had an attempt.
const ALL_TRIED: u32 = 2;

/// The lengths that refused putters record.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Shortest {
    /// The fewest words of a record that waits for room; 0 if unknown.
    words: AtomicU32,
    /// The same for the records refused at this number of records taken.
    refused_at: AtomicU32,
    refused_words: AtomicU32,
}

/// A putter's memory between its attempts to put one record.
#[derive(Debug, Default)]
pub struct PutAttempts {
    /// The number of records taken at the last refusal, plus one; 0 if there was none.
    refused_at: AtomicU64,
    /// Refusals at that number: one, and one more for each refusal after a sleep.
    times: AtomicU32,
}

impl PutAttempts {
    /// Counts a refusal; returns how many there were before.
    fn refuse(&self, taken: u32, slept: Slept) -> u32 {
        let now = u64::from(taken) + 1;
        let is_again = self.refused_at.swap(now, Ordering::Relaxed) == now && slept.has_slept();
        let before = if is_again {
            self.times.load(Ordering::Relaxed)
        } else {
            0
        };
        self.times.store(before.saturating_add(1), Ordering::Relaxed);
        before
    }
}

impl Shortest {
    /// Records that `need` words do not fit after `taken` records were taken; true if a shorter record waits whose
    /// putter may not have tried since.
    pub(crate) fn refuse(&self, need: u32, taken: u32, attempts: &PutAttempts, slept: Slept) -> bool {
        let least = |word: &AtomicU32| match word.load(Ordering::Relaxed) {
            0 => need,
            known => known.min(need),
        };
        let refused = if self.refused_at.swap(taken, Ordering::Relaxed) == taken {
            least(&self.refused_words)
        } else {
            need
        };
        self.refused_words.store(refused, Ordering::Relaxed);
        let have_all_tried = attempts.refuse(taken, slept) >= ALL_TRIED;
        let shortest = if have_all_tried { refused } else { least(&self.words) };
        self.words.store(shortest, Ordering::Relaxed);
        !have_all_tried && shortest < need
    }

    /// The words of the shortest record, at least one; a guess.
    pub(crate) fn words(&self) -> u64 {
        u64::from(self.words.load(Ordering::Relaxed).max(1))
    }
}
