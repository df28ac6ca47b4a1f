//! Counters of a client's operations, which any thread may read.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// The counters of one client.
        #[derive(Debug, Default)]
        pub(crate) struct Counts {
            $($(#[$doc])* pub(crate) $name: AtomicU64,)*
        }

        impl Counts {
            /// Returns each counter with its name.
            pub(crate) fn read(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name.load(Ordering::Relaxed)),)*]
            }
        }
    };
}

counts! {
    /// Requests sent to the store, renewals included.
    requests,
    /// Requests that were sent again, since the store did not answer.
    retries,
    /// Calls of threads that ran the engine themselves until they had their answer.
    direct,
    /// Connections made after the first.
    reconnects,
    /// Renewals that the store confirmed.
    renewals,
    /// Sessions that are open.
    sessions,
    /// Holds granted.
    acquired,
    /// Holds given back.
    released,
    /// Holds lost.
    lost,
    /// Acquisitions that had to wait.
    contended,
    /// Waits that ran out of time.
    timed_out,
    /// Waits that were cancelled.
    cancelled,
}

/// Adds one.
pub(crate) fn count(counter: &AtomicU64) {
    // ORDERING: nothing is published by a counter.
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Takes one off.
pub(crate) fn uncount(counter: &AtomicU64) {
    counter.fetch_sub(1, Ordering::Relaxed);
}
