//! Classes of waiting threads, best first.
//!
//! Invariant: the numeric value *is* the rank; a smaller one goes first.

/// The class of a thread that wants the GIL, by its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// Was blocked on a lock, or is new: another thread is probably waiting for it. This class
    /// makes programs linear that would be quadratic: the one thread that starts or wakes the
    /// others is served before those that it has already started.
    Handed = 0,
    /// Returns from a blocking call (I/O, sleep).
    Io = 1,
    /// Dropped the GIL on request after a short time, or returned immediately from a call:
    /// runnable, not known to be CPU-bound.
    Yielded = 2,
    /// CPU-bound: was preempted after a long run.
    Batch = 3,
}

impl Class {
    /// Number of classes.
    pub const COUNT: usize = 4;
    /// All classes, best first.
    pub const ALL: [Self; Self::COUNT] = [Self::Handed, Self::Io, Self::Yielded, Self::Batch];

    /// Position in arrays indexed by class.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether a thread of this class asks a CPU-bound holder to drop immediately.
    #[must_use]
    pub const fn is_interactive(self) -> bool {
        matches!(self, Self::Handed | Self::Io)
    }

    /// Name used in statistics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handed => "handed",
            Self::Io => "io",
            Self::Yielded => "yielded",
            Self::Batch => "batch",
        }
    }
}

/// The program's own classification of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hint {
    /// Nothing: its history decides.
    #[default]
    None,
    /// Always served as if it came from a blocking call.
    Interactive,
    /// Always served as CPU-bound.
    Batch,
}
