//! The shortest of the records that wait for room in a ring.
//!
//! Putters that wait sleep on one bell, in the order in which they came, and a getter rings for the first.
//! Where lengths differ, that one may not fit while a shorter record behind it would. So who is refused writes
//! down how long its record is, if that is the shortest, and who was rung for in vain wakes the next
//! sleeper if the shortest would fit. It remembers how many had been taken at that attempt: refused at the same number for
//! the third time, after sleeps, all that sleep have been, and nobody is woken any more. What they wrote
//! down meanwhile is what waits still. Twice is not enough: the first time may come before the getter
//! rings, and the second be due to that ring.
//!
//! Invariant: changed inside of the putters' guard alone; any value of the words costs wake-ups, or a sleep
//! that its end ends, and nothing else.

use crate::kernel::Slept;
use crate::shim::{AtomicU32, AtomicU64, Ordering};

/// Refusals at one number of records taken after which all that sleep have had theirs.
const ALL_TRIED: u32 = 2;

/// What those that are refused write down.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Shortest {
    /// No record that waits for room has fewer words; 0 if none is known to.
    words: AtomicU32,
    /// The same of those that were refused at this number of records taken.
    refused_at: AtomicU32,
    refused_words: AtomicU32,
}

/// What a putter remembers from one attempt at a record to the next.
#[derive(Debug, Default)]
pub struct PutAttempts {
    /// How many records had been taken when there was no room, and one; 0 if there never was none.
    refused_at: AtomicU64,
    /// How often it was refused there: once, and once more for each time it was after a sleep.
    times: AtomicU32,
}

impl PutAttempts {
    /// Count a refusal; returns how many there were before.
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
    /// Write down that there is no room for so many words after so many records were taken; true if a
    /// shorter one waits that may not have tried since.
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

    /// How many words it has, at least one; a guess.
    pub(crate) fn words(&self) -> u64 {
        u64::from(self.words.load(Ordering::Relaxed).max(1))
    }
}
