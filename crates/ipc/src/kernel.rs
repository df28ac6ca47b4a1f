//! The kernel's services that a protocol needs, and the outcome by which a protocol asks its caller to sleep.
//!
//! Must never wait: the caller sleeps.
//!
//! Invariant: a caller that got [`Step::Sleep`] repeats the attempt after the sleep.

use crate::shim::AtomicU32;

/// The outcome of one attempt at an operation.
#[derive(Debug)]
pub enum Step<'a, T> {
    /// The operation is done.
    Done(T),
    /// The caller sleeps while the word has this value, then tries again.
    Sleep(&'a AtomicU32, u32),
}

/// Whether the caller has slept since the operation began, and on which word it slept last.
#[derive(Debug, Clone, Copy, Default)]
pub struct Slept {
    has_slept: bool,
    /// Address of the word; 0 if it is unknown.
    last: usize,
}

impl Slept {
    /// The caller has not slept.
    pub const NOT: Self = Self {
        has_slept: false,
        last: 0,
    };

    /// The caller has slept or not, on an unknown word.
    #[must_use]
    pub const fn somewhere(has_slept: bool) -> Self {
        Self { has_slept, last: 0 }
    }

    /// The caller slept on this word last.
    #[must_use]
    pub fn on(word: &AtomicU32) -> Self {
        Self {
            has_slept: true,
            last: std::ptr::from_ref(word) as usize,
        }
    }

    /// Whether the caller has slept at all.
    #[must_use]
    pub const fn has_slept(self) -> bool {
        self.has_slept
    }

    /// Whether the caller may have slept on this word last; other sleepers may then still be there.
    #[must_use]
    pub fn was_on(self, word: &AtomicU32) -> bool {
        self.has_slept && (self.last == 0 || self.last == std::ptr::from_ref(word) as usize)
    }
}

/// The services of the kernel that the protocols use.
pub trait Kernel {
    /// The calling thread's id, as the kernel writes it into robust words. Never 0.
    fn tid(&self) -> u32;
    /// The calling process: id in the upper half, start time in the lower. Never 0.
    fn process(&self) -> u64;
    /// Whether the process that `process` names is still running.
    fn is_alive(&self, process: u64) -> bool;
    /// Whether the thread has died and left its mark to this process: false where the kernel takes robust lists, since
    /// it marks the words of a dying thread itself.
    fn died_unmarked(&self, tid: u32) -> bool;
    /// Wakes at most `count` sleepers of the word.
    fn wake(&self, word: &AtomicU32, count: u32);
    /// Registers a word for the case that this thread dies: if the word then names the thread, the kernel marks it
    /// with [`crate::DIED`]; if it names no thread, the kernel wakes one sleeper. Only one word is registered at a
    /// time.
    fn begin(&self, word: &AtomicU32);
    /// Ends the registration that `begin` made.
    fn end(&self);
    /// Lets other threads run for a moment.
    fn pause(&self);
}
