//! The results of a run, and figures computed from them.
//!
//! Invariant: everything here is measured by the simulator itself, at the GIL;
//! `stats` are the policy's own counters, so that the two can be compared.

use crate::{Nanos, Stats};

/// Results of one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Served {
    /// Time on a processor with the GIL, nanoseconds.
    pub work_ns: Nanos,
    /// [`Step::Mark`](super::Step::Mark)s passed.
    pub marks: u64,
    /// Times it got the GIL.
    pub takes: u64,
    /// Longest time from requesting the GIL to taking it; includes a wait that lasts to the end.
    pub longest_wait_ns: Nanos,
    /// Sum of these times.
    pub waited_ns: Nanos,
    /// Whether its program ended.
    pub has_ended: bool,
}

/// Results of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// When it ended.
    pub ended_at: Nanos,
    /// Per thread.
    pub threads: Vec<Served>,
    /// Times the GIL was taken.
    pub takes: u64,
    /// Those of them by another thread than the one before.
    pub hand_overs: u64,
    /// Drop requests that reached the holder.
    pub requests: u64,
    /// Longest time in which the GIL was free although a thread wanted it.
    pub longest_free_ns: Nanos,
    /// Sum of these times.
    pub free_ns: Nanos,
    /// Most threads that wanted or had the GIL at a time.
    pub most_contenders: u64,
    /// Insurance timers that fired with nothing to do.
    pub insurance_idle: u64,
    /// Insurance timers that had to act: no other thread would have re-checked.
    pub insurance_needed: u64,
    /// Waits given up: uninstalled, forked, ended in the wait.
    pub cancelled: u64,
    /// Threads that the policy listed as waiting at the end.
    pub waiting: u64,
    /// The policy's counters.
    pub stats: Stats,
    /// Violated invariants; empty in a correct run.
    pub violations: Vec<String>,
}

impl Trace {
    /// Time on a processor with the GIL, of all threads, per time.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        let work_ns: Nanos = self.threads.iter().map(|thread| thread.work_ns).sum();
        work_ns as f64 / self.ended_at.max(1) as f64
    }

    /// Longest wait of these threads, nanoseconds.
    #[must_use]
    pub fn longest_wait_ns(&self, threads: impl IntoIterator<Item = usize>) -> Nanos {
        let wait_ns = |thread: usize| self.threads[thread].longest_wait_ns;
        threads.into_iter().map(wait_ns).max().unwrap_or(0)
    }

    /// Jain's index of the work of these threads.
    #[must_use]
    pub fn fairness(&self, threads: impl IntoIterator<Item = usize>) -> f64 {
        jain(threads.into_iter().map(|thread| self.threads[thread].work_ns as f64))
    }
}

/// Jain's fairness index (1 when all shares are equal, 1/n when one has all).
#[must_use]
pub fn jain(shares: impl IntoIterator<Item = f64>) -> f64 {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for share in shares {
        count += 1.0;
        sum += share;
        squares += share * share;
    }
    if squares == 0.0 {
        1.0
    } else {
        sum * sum / (count * squares)
    }
}

/// Slope of the least-squares line through the logarithms of (size, cost).
#[must_use]
pub fn growth_exponent(points: &[(f64, f64)]) -> f64 {
    let logs = || points.iter().map(|&(size, cost)| (size.ln(), cost.ln()));
    let count = points.len() as f64;
    let mean_x = logs().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = logs().map(|(_, y)| y).sum::<f64>() / count;
    let covariance: f64 = logs().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let variance: f64 = logs().map(|(x, _)| (x - mean_x).powi(2)).sum();
    covariance / variance
}
