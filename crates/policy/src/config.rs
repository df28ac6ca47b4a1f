//! The constants of the policy, each with its unit and origin.
//!
//! Invariant: a value here is a *policy* value. The mechanism decides what the machine can do
//! (how many processors, how precise a timer).

use crate::Nanos;

/// One microsecond in nanoseconds.
pub const MICROSECOND: Nanos = 1_000;
/// One millisecond in nanoseconds.
pub const MILLISECOND: Nanos = 1_000_000;
/// Within this time an alarm that is expected to be cancelled may be late: a little less than the 5 ms for which the
/// standard interpreter lets a thread wait, and more than the 4 ms between two ticks at 250 Hz.
pub(crate) const LATE_NS: Nanos = 4_500 * MICROSECOND;

/// Tunable values of the policy. [`Config::default`] is what `install()` uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Slice of a CPU-bound thread while others wait: `sys.getswitchinterval()`,
    /// CPython's own default of 5 ms. The mechanism keeps it up to date.
    pub slice_ns: Nanos,
    /// How long a holder with unknown history may run before a better class asks it to drop.
    /// Longer than the 5–20 µs that a request/response burst holds the GIL, so that such a
    /// burst is not cut in two.
    pub grace_ns: Nanos,
    /// How long a CPU-bound holder may go on after it has woken a thread by the release of a lock: many times the 10 to
    /// 30 µs of two hand-overs, and a fifth of the time for which the standard interpreter lets such a thread wait.
    pub moderation_ns: Nanos,
    /// The same for each waiting thread, at most the slice: several times what a hand-over costs.
    pub moderation_each_ns: Nanos,
    /// GIL time since its last block after which a thread that had to be
    /// preempted is CPU-bound (batch).
    pub batch_after_ns: Nanos,
    /// Mean burst above which a blocking thread gets no wake-up boost: for example a worker that
    /// computes 20 ms for each item of a queue.
    pub burst_cap_ns: Nanos,
    /// Time off the GIL from which a call counts as "blocked"; shorter ones
    /// (a `send` into a free socket buffer takes 5–15 µs) are a yield.
    pub block_ns: Nanos,
    /// How long an awake heir lets the GIL linger after a drop by a thread that is predicted to
    /// return immediately.
    pub linger_ns: Nanos,
    /// An off-GIL period up to this long counts as an immediate return for the predictor: about
    /// the cost of two hand-overs.
    pub short_ns: Nanos,
    /// Age from which a waiter may be picked out of order.
    pub age_ns: Nanos,
    /// One pick in this many may go to an aged waiter. Without this ration, every waiter is aged
    /// under overload, and the order of classes inverts.
    pub aged_pick_every: u32,
    /// Least share of the GIL that waiting CPU-bound threads keep while other classes are busy, in thousandths, at
    /// most [`MOST_BATCH_SHARE`](Self::MOST_BATCH_SHARE): a fifth unless the program sets another one.
    pub batch_share_permille: u32,
    /// Quantum in which that share is paid; no thread asks for the GIL during it. It is the longest
    /// wait that the share can cause an interactive thread.
    pub batch_quantum_ns: Nanos,
    /// How long a thread that asked spins for the hand-over.
    pub spin_ask_ns: Nanos,
    /// How long a preempted thread spins until it may resume.
    pub spin_resume_ns: Nanos,
    /// Every parked thread re-checks after this time times the number of waiters: an insurance
    /// against lost wake-ups, never a mechanism.
    pub insurance_ns: Nanos,
}

impl Config {
    /// The largest share, in thousandths: above it, a quantum of the share would come after a few microseconds of other
    /// threads, which could finish nothing.
    pub const MOST_BATCH_SHARE: u32 = 900;
}

impl Default for Config {
    fn default() -> Self {
        Self {
            slice_ns: 5 * MILLISECOND,
            grace_ns: 50 * MICROSECOND,
            moderation_ns: MILLISECOND,
            moderation_each_ns: 100 * MICROSECOND,
            batch_after_ns: 200 * MICROSECOND,
            burst_cap_ns: MILLISECOND,
            block_ns: 30 * MICROSECOND,
            linger_ns: 15 * MICROSECOND,
            short_ns: 12 * MICROSECOND,
            age_ns: 50 * MILLISECOND,
            aged_pick_every: 8,
            batch_share_permille: 200,
            batch_quantum_ns: 200 * MICROSECOND,
            spin_ask_ns: 20 * MICROSECOND,
            spin_resume_ns: 50 * MICROSECOND,
            insurance_ns: 20 * MILLISECOND,
        }
    }
}
