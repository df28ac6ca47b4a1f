//! The bell: a word through which a change is announced to sleepers, with at most one wake-up until a sleeper runs.
//!
//! | bits | meaning | writer |
//! |---|---|---|
//! | HEARD | a sleeper may be here; not set: there is none, or all sleepers are being woken | set by a thread about to sleep, and by a woken thread on behalf of other sleepers; cleared by a ringer |
//! | the rest | number of rings | a ringer |
//!
//! A sleeper sets HEARD, re-checks its condition, and sleeps while the word keeps its value. A ringer changes the
//! condition and then reads the bell. Both orders are sequentially consistent, so at least one of the two sees the
//! other.
//!
//! Ringing clears HEARD, so any number of changes before the woken thread runs cost one wake-up. The woken thread
//! sets HEARD again when it leaves, since others may still sleep. It then re-checks whether more of what they wait
//! for is available, in which case it rings. If the woken thread is killed before it does so, the others sleep next
//! to a silent bell. Therefore every sleep in shared memory is bounded, and the sleeper re-checks by itself
//! afterwards.
//!
//! Things that do not work: HEARD without a counter. A ringer skips a thread that is about to sleep but does not
//! sleep yet. The next arrival sets HEARD again. The first thread then finds the word with the value it expects, and
//! sleeps although what it waits for is available.

use crate::kernel::Kernel;
use crate::shim::{AtomicU32, Ordering, load_in_order};

const HEARD: u32 = 1;

/// The count that wakes all sleepers of a word.
pub const ALL: u32 = i32::MAX as u32;

/// A word that sleepers are woken through.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Bell(AtomicU32);

impl Bell {
    /// Announces that the caller is about to sleep. The caller must re-check its condition before it sleeps.
    pub fn listen(&self) -> (&AtomicU32, u32) {
        // ORDERING: pairs with the load and the exchange in `silence`. A store could be reordered with the caller's
        // re-check that follows; a read-modify-write cannot.
        (&self.0, self.0.fetch_or(HEARD, Ordering::SeqCst) | HEARD)
    }

    /// Announces that other sleepers may still be here.
    pub fn relisten(&self) {
        // ORDERING: pairs with the load and the exchange in `silence`, as in `listen`.
        self.0.fetch_or(HEARD, Ordering::SeqCst);
    }

    /// Clears HEARD; true if the caller must now call [`Bell::wake`].
    #[inline]
    pub fn silence(&self) -> bool {
        let mut word = load_in_order(&self.0);
        while word & HEARD != 0 {
            let rung = word.wrapping_add(HEARD);
            // ORDERING: pairs with the `fetch_or` in `listen`.
            match self.0.compare_exchange(word, rung, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Wakes up to `count` sleepers.
    pub fn wake<K: Kernel>(&self, count: u32, kernel: &K) {
        kernel.wake(&self.0, count);
    }

    /// Wakes up to `count` sleepers, if there may be any.
    #[inline]
    pub fn ring<K: Kernel>(&self, count: u32, kernel: &K) {
        if self.silence() {
            self.wake(count, kernel);
        }
    }

    /// Whether a sleeper may be here.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.0.load(Ordering::Relaxed) & HEARD != 0
    }
}
