//! The bell: how those that sleep learn that something has changed.
//!
//! | bits | mean | who may write them |
//! |---|---|---|
//! | HEARD | somebody may sleep here; not set: nobody does, or all that did are being woken | set by who is about to sleep, and by who has slept, for the others; taken away by who rings |
//! | the rest | how often it was rung | who rings |
//!
//! A sleeper sets HEARD, looks once more at what it waits for, and sleeps while the
//! word is what it was. A ringer changes what is waited for and then looks at the bell. Both
//! orders are sequentially consistent, so one of the two sees the other.
//!
//! Ringing takes HEARD away: any number of changes before the woken one runs cost one
//! wake-up. The woken one puts HEARD back when it leaves, since others may still sleep, and
//! then looks whether there is more of what they wait for: it would have rung.
//! One that is killed before it does leaves the others asleep beside a quiet bell; that
//! is why every sleep in shared memory has an end, after which the sleeper looks by itself.
//!
//! Things that do not work: HEARD alone. One that is about to sleep is passed over by a ringer,
//! since it does not sleep yet; the next one to come sets HEARD again, and the first one
//! finds the word as it wants it and sleeps beside what it waits for.

use crate::kernel::Kernel;
use crate::shim::{AtomicU32, Ordering, load_in_order};

const HEARD: u32 = 1;

/// Everybody that sleeps on a word.
pub const ALL: u32 = i32::MAX as u32;

/// A word that sleepers are woken through.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Bell(AtomicU32);

impl Bell {
    /// Say that the caller is about to sleep: it must look again at what it waits for before it does.
    pub fn listen(&self) -> (&AtomicU32, u32) {
        // A store may pass a later load; a read-modify-write may not.
        (&self.0, self.0.fetch_or(HEARD, Ordering::SeqCst) | HEARD)
    }

    /// Say that others may still sleep.
    pub fn relisten(&self) {
        self.0.fetch_or(HEARD, Ordering::SeqCst);
    }

    /// Take the duty to wake: true if the caller has to call [`Bell::wake`].
    #[inline]
    pub fn silence(&self) -> bool {
        let mut word = load_in_order(&self.0);
        while word & HEARD != 0 {
            let rung = word.wrapping_add(HEARD);
            match self.0.compare_exchange(word, rung, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Wake some of those that sleep.
    pub fn wake<K: Kernel>(&self, count: u32, kernel: &K) {
        kernel.wake(&self.0, count);
    }

    /// Wake some of those that sleep, if anybody may.
    #[inline]
    pub fn ring<K: Kernel>(&self, count: u32, kernel: &K) {
        if self.silence() {
            self.wake(count, kernel);
        }
    }

    /// Whether somebody may sleep here.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.0.load(Ordering::Relaxed) & HEARD != 0
    }
}
