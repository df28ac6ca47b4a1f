//! Condition: one cell per waiter, notified in order of arrival.
//!
//! A thread joins the queue and notifies with the condition's lock held, so one thread at a time walks the cells. A
//! waiter sleeps on its own cell: a notification wakes exactly the waiter that has waited longest.
//!
//! | cell's word | meaning | writer |
//! |---|---|---|
//! | 0 | free | the waiter that leaves |
//! | tid | that thread waits | the waiter that arrives |
//! | NOTIFIED | the waiter was notified | a notifier |
//!
//! A cell names its process, so a notifier finds the cell of a dead process and skips it.
//!
//! Invariant: a notification never goes to a thread known to be dead. A thread that dies between the notification and
//! its return used up the notification, as if it had died right after the return.

use crate::kernel::{Kernel, Step};
use crate::ownership::TID_MASK;
use crate::shim::{AtomicU32, AtomicU64, Ordering};

/// No thread has this id: the kernel's are smaller than 2^22.
const NOTIFIED: u32 = TID_MASK;

/// The cell of one waiter.
#[derive(Debug, Default)]
#[repr(C)]
pub struct ConditionCell {
    word: AtomicU32,
    ticket: AtomicU32,
    process: AtomicU64,
}

/// The shared words of a condition.
#[derive(Debug, Default)]
#[repr(C)]
pub struct ConditionWords {
    next: AtomicU32,
    /// Cells from this number on were never used.
    used: AtomicU32,
}

impl ConditionWords {
    /// Takes a cell at the end of the queue; None if all are taken. The caller holds the lock.
    pub fn arrive<'a, K: Kernel>(&self, cells: &'a [ConditionCell], kernel: &K) -> Option<&'a ConditionCell> {
        let cell = cells
            .iter()
            .find(|cell| cell.is_free())
            .or_else(|| cells.iter().find(|cell| cell.is_abandoned(kernel)))?;
        let number = cells.iter().position(|other| std::ptr::eq(other, cell))? as u32;
        self.used.fetch_max(number + 1, Ordering::Relaxed);
        cell.ticket
            .store(self.next.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        cell.process.store(kernel.process(), Ordering::Relaxed);
        // ORDERING: pairs with the acquire loads of the word: ticket and process are written before it.
        cell.word.store(kernel.tid(), Ordering::Release);
        Some(cell)
    }

    /// Notifies the `count` waiters that have waited longest. The caller holds the lock.
    pub fn notify<K: Kernel>(&self, cells: &[ConditionCell], count: usize, kernel: &K) {
        let used = (self.used.load(Ordering::Relaxed) as usize).min(cells.len());
        if used == 0 || count == 0 {
            return;
        }
        let next = self.next.load(Ordering::Relaxed);
        let mut waiting: Vec<&ConditionCell> = cells[..used].iter().filter(|cell| cell.is_waiting()).collect();
        waiting.sort_by_key(|cell| std::cmp::Reverse(next.wrapping_sub(cell.ticket.load(Ordering::Relaxed))));
        let mut notified = 0;
        for cell in waiting {
            if notified == count {
                break;
            }
            notified += usize::from(cell.notify(kernel));
        }
    }

    /// The number of waiters.
    #[must_use]
    pub fn waiting(&self, cells: &[ConditionCell]) -> usize {
        let used = (self.used.load(Ordering::Relaxed) as usize).min(cells.len());
        cells[..used].iter().filter(|cell| cell.is_waiting()).count()
    }
}

impl ConditionCell {
    fn is_free(&self) -> bool {
        // ORDERING: pairs with the swap in `leave`.
        self.word.load(Ordering::Acquire) == 0
    }

    fn is_waiting(&self) -> bool {
        // ORDERING: pairs with the store in `arrive`.
        let word = self.word.load(Ordering::Acquire);
        word != 0 && word != NOTIFIED
    }

    fn is_abandoned<K: Kernel>(&self, kernel: &K) -> bool {
        !kernel.is_alive(self.process.load(Ordering::Relaxed))
    }

    fn notify<K: Kernel>(&self, kernel: &K) -> bool {
        // ORDERING: pairs with the store in `arrive`.
        let word = self.word.load(Ordering::Acquire);
        if word == 0 || word == NOTIFIED || self.is_abandoned(kernel) {
            return false;
        }
        // ORDERING: release pairs with the acquire in `wait` and `leave`.
        let is_ours = self
            .word
            .compare_exchange(word, NOTIFIED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok();
        if is_ours {
            kernel.wake(&self.word, 1);
        }
        is_ours
    }

    /// Waits for a notification. The caller does not hold the lock.
    pub fn wait(&self) -> Step<'_, ()> {
        // ORDERING: acquire pairs with the release of the notifier.
        match self.word.load(Ordering::Acquire) {
            NOTIFIED => Step::Done(()),
            word => Step::Sleep(&self.word, word),
        }
    }

    /// Leaves the queue; true if the caller was notified.
    pub fn leave(&self) -> bool {
        // ORDERING: acquire pairs with the release of the notifier.
        self.word.swap(0, Ordering::AcqRel) == NOTIFIED
    }
}
