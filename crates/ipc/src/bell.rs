//! The bell: how those that sleep learn that something has changed.
//!
//! | word | means | who may write it |
//! |---|---|---|
//! | QUIET | nobody sleeps here, or all that did are being woken | who rings |
//! | HEARD | somebody may sleep here | who is about to sleep; who has slept, for the others |
//!
//! A sleeper sets HEARD, looks once more at what it waits for, and sleeps while the
//! word is HEARD. A ringer changes what is waited for and then looks at the bell. Both
//! orders are sequentially consistent, so one of the two sees the other.
//!
//! Ringing takes HEARD away: any number of changes before the woken one runs cost one
//! wake-up. The woken one puts HEARD back when it leaves, since others may still sleep.
//! One that is killed before it does leaves the others asleep beside a quiet bell; that
//! is why every sleep in shared memory has an end, after which the sleeper looks by itself.

use crate::kernel::Kernel;
use crate::shim::{AtomicU32, Ordering};

const QUIET: u32 = 0;
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
        if self.0.load(Ordering::SeqCst) != HEARD {
            self.0.store(HEARD, Ordering::SeqCst);
        }
        // A store may pass a later load; a read-modify-write may not.
        self.0.fetch_or(HEARD, Ordering::SeqCst);
        (&self.0, HEARD)
    }

    /// Say that others may still sleep.
    pub fn relisten(&self) {
        self.0.store(HEARD, Ordering::SeqCst);
    }

    /// Take the duty to wake: true if the caller has to call [`Bell::wake`].
    #[inline]
    pub fn silence(&self) -> bool {
        self.0.load(Ordering::SeqCst) != QUIET && self.0.swap(QUIET, Ordering::SeqCst) != QUIET
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
        self.0.load(Ordering::Relaxed) != QUIET
    }
}
