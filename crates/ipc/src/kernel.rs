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
    /// The same as `begin` for longer, for any number of words: they are the thread's until `let_go`.
    fn hold(&self, word: &AtomicU32);
    /// The end of what `hold` began; nothing happens where it was not begun by this thread.
    fn let_go(&self, word: &AtomicU32);
    /// Let others run for a moment.
    fn pause(&self);
}
