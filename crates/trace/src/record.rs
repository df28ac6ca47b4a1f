//! One record: an event of a thread, in two words. The first holds the time above the kind, the
//! second a payload.
//!
//! Must never: change a discriminant or a bit without a new `layout::VERSION`.

use crate::Nanos;

/// The kind of event; the discriminants are the file's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Took the GIL. Payload: [`Take`].
    Take = 1,
    /// Dropped the GIL. Payload: [`Drop`].
    Drop = 2,
    /// Requests the GIL, and has done nothing since its last drop: that drop was forced.
    Forced = 3,
    /// Blocks on a lock. Payload: the address of its semaphore.
    LockBegin = 4,
    /// No longer blocks on the lock. The lowest bit of that address is whether it acquired it.
    LockEnd = 5,
    /// Releases a lock that another thread waits for. Payload: the address.
    Post = 6,
    /// The stack of the record before. Payload: its node.
    Stack = 7,
    /// Goes to sleep by `time.sleep`.
    Sleep = 8,
    /// Begins to import a module. Payload: its location in the low half, the thread's processor time in the high half,
    /// in microseconds without the upper bits.
    ImportBegin = 9,
    /// Has imported the module, or failed to. Payload: the thread's processor time, likewise, in the low half.
    ImportEnd = 10,
    /// The thread has ended.
    End = 11,
    /// Had a processor for a good part of the time since the drop, without the GIL. Payload: for
    /// how long. Precedes the take.
    Computed = 12,
    /// Was preempted during the hold that the drop before ends. Payload: for how much of the hold, at least, it had no
    /// processor.
    Starved = 13,
}

impl Kind {
    /// The kind with this discriminant.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Take,
            2 => Self::Drop,
            3 => Self::Forced,
            4 => Self::LockBegin,
            5 => Self::LockEnd,
            6 => Self::Post,
            7 => Self::Stack,
            8 => Self::Sleep,
            9 => Self::ImportBegin,
            10 => Self::ImportEnd,
            11 => Self::End,
            12 => Self::Computed,
            13 => Self::Starved,
            _ => return None,
        })
    }
}

const WAIT_BITS: u32 = 40;
const COUNT_BITS: u32 = 12;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
const WAIT_MAX: u64 = (1 << WAIT_BITS) - 1;

/// Payload of [`Kind::Take`]; larger values are cut to the largest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Take {
    /// How long it waited, up to 18 minutes.
    pub waited: Nanos,
    /// How often it woke up meanwhile, up to 4,095.
    pub wakeups: u64,
    /// Number of other waiters, up to 4,095.
    pub waiters: u64,
}

impl Take {
    /// As a word.
    #[must_use]
    pub fn pack(self) -> u64 {
        self.waited.min(WAIT_MAX)
            | self.wakeups.min(COUNT_MAX) << WAIT_BITS
            | self.waiters.min(COUNT_MAX) << (WAIT_BITS + COUNT_BITS)
    }

    /// From a word.
    #[must_use]
    pub const fn unpack(word: u64) -> Self {
        Self {
            waited: word & WAIT_MAX,
            wakeups: word >> WAIT_BITS & COUNT_MAX,
            waiters: word >> (WAIT_BITS + COUNT_BITS),
        }
    }
}

const SHORT_NS_MAX: u64 = u32::MAX as u64;
const SHORT_CALLS_MAX: u64 = (1 << 24) - 1;

/// Payload of [`Kind::Drop`]; larger values are cut to the largest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drop {
    /// Nanoseconds since the last take that the thread was off the GIL in short calls.
    pub short_ns: u64,
    /// How many short calls those were.
    pub short_calls: u64,
    /// Whether a thread waits for the GIL.
    pub is_wanted: bool,
}

impl Drop {
    /// As a word.
    #[must_use]
    pub fn pack(self) -> u64 {
        self.short_ns.min(SHORT_NS_MAX) | self.short_calls.min(SHORT_CALLS_MAX) << 32 | u64::from(self.is_wanted) << 56
    }

    /// From a word.
    #[must_use]
    pub const fn unpack(word: u64) -> Self {
        Self {
            short_ns: word & SHORT_NS_MAX,
            short_calls: word >> 32 & SHORT_CALLS_MAX,
            is_wanted: word >> 56 & 1 != 0,
        }
    }
}

/// A decoded record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Since the start of the recording.
    pub time: Nanos,
    /// The kind of event.
    pub kind: Kind,
    /// Further data of the event.
    pub payload: u64,
}

/// The first word of a record.
#[must_use]
pub const fn first_word(time: Nanos, kind: Kind) -> u64 {
    time << 8 | kind as u64
}

impl Record {
    /// Decodes two words; `None` if the first is invalid or not yet written.
    #[must_use]
    pub const fn unpack(first: u64, payload: u64) -> Option<Self> {
        match Kind::from_byte(first as u8) {
            Some(kind) => Some(Self {
                time: first >> 8,
                kind,
                payload,
            }),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn records_come_back(time in 0_u64..1 << 56, byte in 1_u8..13, payload: u64) {
            let kind = Kind::from_byte(byte).unwrap();
            let record = Record::unpack(first_word(time, kind), payload).unwrap();
            prop_assert_eq!(record, Record { time, kind, payload });
        }

        #[test]
        fn takes_come_back_within_their_range(waited: u64, wakeups: u64, waiters: u64) {
            let take = Take::unpack(Take { waited, wakeups, waiters }.pack());
            prop_assert_eq!(take.waited, waited.min(WAIT_MAX));
            prop_assert_eq!(take.wakeups, wakeups.min(COUNT_MAX));
            prop_assert_eq!(take.waiters, waiters.min(COUNT_MAX));
        }

        #[test]
        fn drops_come_back_within_their_range(short_ns: u64, short_calls: u64, is_wanted: bool) {
            let drop = Drop::unpack(Drop { short_ns, short_calls, is_wanted }.pack());
            prop_assert_eq!(drop.short_ns, short_ns.min(SHORT_NS_MAX));
            prop_assert_eq!(drop.short_calls, short_calls.min(SHORT_CALLS_MAX));
            prop_assert_eq!(drop.is_wanted, is_wanted);
        }
    }
}
