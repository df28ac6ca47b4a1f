//! What a protocol asks of the kernel, and how it says that it has to wait.

use crate::shim::AtomicU32;

/// The outcome of one attempt at an operation.
#[derive(Debug)]
pub enum Step<'a, T> {
    /// It is done.
    Done(T),
    /// Sleep while the word has this value, then try again.
    Sleep(&'a AtomicU32, u32),
}

/// Whether the caller has slept since it began with an operation, and on which word last.
#[derive(Debug, Clone, Copy, Default)]
pub struct Slept {
    has_slept: bool,
    /// Address of the word; 0 if that is not known.
    last: usize,
}

impl Slept {
    /// It has not.
    pub const NOT: Self = Self {
        has_slept: false,
        last: 0,
    };

    /// Whether it has is known, on which word is not.
    #[must_use]
    pub const fn somewhere(has_slept: bool) -> Self {
        Self { has_slept, last: 0 }
    }

    /// It has, on this word last.
    #[must_use]
    pub fn on(word: &AtomicU32) -> Self {
        Self {
            has_slept: true,
            last: std::ptr::from_ref(word) as usize,
        }
    }

    /// Whether it has slept at all.
    #[must_use]
    pub const fn has_slept(self) -> bool {
        self.has_slept
    }

    /// Whether it may have slept on this word last: others may sleep there, too.
    #[must_use]
    pub fn was_on(self, word: &AtomicU32) -> bool {
        self.has_slept && (self.last == 0 || self.last == std::ptr::from_ref(word) as usize)
    }
}

/// The kernel, as far as the protocols need it.
pub trait Kernel {
    /// The calling thread's id, as the kernel writes it into robust words. Never 0.
    fn tid(&self) -> u32;
    /// The calling process: id in the upper half, start time in the lower. Never 0.
    fn process(&self) -> u64;
    /// Whether a process that `process` named is still there.
    fn is_alive(&self, process: u64) -> bool;
    /// Wake at most `count` of those that sleep on the word.
    fn wake(&self, word: &AtomicU32, count: u32);
    /// From now on, should this thread die: if the word names it, mark the word
    /// with [`crate::DIED`]; if the word names nobody, wake one sleeper. One word at a time.
    fn begin(&self, word: &AtomicU32);
    /// The end of what `begin` began.
    fn end(&self);
    /// Let others run for a moment.
    fn pause(&self);
}
