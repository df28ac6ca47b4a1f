//! A model of the kernel: a futex with its check and its queue, and the kernel's steps when a thread dies.

use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use unsnarl_ipc::{AtomicU32, DIED, Kernel, Ordering, TID_MASK, WAITERS};

/// The sleepers of each word, in order of arrival. A wake-up removes them immediately, as the kernel does, so that a
/// later sleeper cannot have another's wake-up.
#[derive(Default)]
struct Sleepers {
    next: usize,
    queue: Vec<(usize, usize)>,
}

pub struct Futex {
    sleepers: Mutex<Sleepers>,
    changed: Condvar,
}

impl Futex {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            sleepers: Mutex::new(Sleepers::default()),
            changed: Condvar::new(),
        })
    }
}

fn address(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word).addr()
}

/// A thread of some process, with its kernel.
pub struct Modelled {
    pub tid: u32,
    pub futex: Arc<Futex>,
}

impl Modelled {
    pub fn sleep(&self, word: &AtomicU32, expected: u32) {
        let mut sleepers = self.futex.sleepers.lock().unwrap();
        // ORDERING: the modelled kernel is sequentially consistent with every protocol's writes.
        if word.load(Ordering::SeqCst) != expected {
            return;
        }
        let me = (address(word), sleepers.next);
        sleepers.next += 1;
        sleepers.queue.push(me);
        while sleepers.queue.contains(&me) {
            sleepers = self.futex.changed.wait(sleepers).unwrap();
        }
    }

    /// Does what the kernel's `handle_futex_death` does with the word of `list_op_pending`, or with one in the list.
    pub fn die(&self, word: &AtomicU32, is_pending: bool) {
        loop {
            // ORDERING: as above.
            let value = word.load(Ordering::SeqCst);
            if is_pending && value & TID_MASK == 0 {
                return self.wake(word, 1);
            }
            if value & TID_MASK != self.tid {
                return;
            }
            let marked = value & WAITERS | DIED;
            if word
                // ORDERING: as above.
                .compare_exchange(value, marked, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
            {
                if value & WAITERS != 0 {
                    self.wake(word, 1);
                }
                return;
            }
        }
    }
}

impl Kernel for Modelled {
    fn tid(&self) -> u32 {
        self.tid
    }
    fn process(&self) -> u64 {
        u64::from(self.tid)
    }
    fn is_alive(&self, process: u64) -> bool {
        process < 100
    }
    fn died_unmarked(&self, _tid: u32) -> bool {
        false
    }
    fn wake(&self, word: &AtomicU32, count: u32) {
        let mut left = count;
        self.futex.sleepers.lock().unwrap().queue.retain(|sleeper| {
            let is_woken = sleeper.0 == address(word) && left > 0;
            left -= u32::from(is_woken);
            !is_woken
        });
        self.futex.changed.notify_all();
    }
    fn begin(&self, _word: &AtomicU32) {}
    fn end(&self) {}
    fn pause(&self) {
        thread::yield_now();
    }
}
