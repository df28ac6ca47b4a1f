//! Spinning before a sleep, as long as it pays at an object.
//!
//! Spinning pays between processes, unlike between threads of one interpreter: the holder has a GIL of its own, and
//! a wake-up takes longer than most critical sections.
//!
//! Invariant: on one processor no thread spins.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// Checks of the word before sleeping: some 10 to 30 microseconds, two to four wake-ups.
const SPINS: u32 = 600;
/// Consecutive failures after which spinning is tried only occasionally.
const CREDIT: i32 = 8;
/// How many waits then pass without spinning.
const RETRY: i32 = -64;

/// Whether spinning has paid at this object, in this process.
#[derive(Debug)]
pub(in crate::ipc) struct Spin(AtomicI32);

impl Default for Spin {
    fn default() -> Self {
        Self(AtomicI32::new(if is_parallel() { CREDIT } else { i32::MIN }))
    }
}

/// Whether this process may run on more than one processor.
pub(super) fn is_parallel() -> bool {
    static PROCESSORS: AtomicU32 = AtomicU32::new(0);
    let mut known = PROCESSORS.load(Ordering::Relaxed);
    if known == 0 {
        known = unsnarl_shm::processors().max(1) as u32;
        PROCESSORS.store(known, Ordering::Relaxed);
    }
    known > 1
}

impl Spin {
    /// Checks the word repeatedly; true as soon as it is ready.
    pub(super) fn run(&self, is_ready: &dyn Fn() -> bool) -> bool {
        let credit = self.0.load(Ordering::Relaxed);
        if credit == i32::MIN {
            return false;
        }
        if credit <= 0 {
            self.0
                .store(if credit <= RETRY { 1 } else { credit - 1 }, Ordering::Relaxed);
            return false;
        }
        for _ in 0..SPINS {
            if is_ready() {
                self.0.store((credit + 1).min(CREDIT), Ordering::Relaxed);
                return true;
            }
            std::hint::spin_loop();
        }
        self.0.store(credit - 1, Ordering::Relaxed);
        false
    }
}
