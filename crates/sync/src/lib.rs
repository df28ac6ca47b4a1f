//! The cores of the synchronisation primitives: fair wait queues that decide which waiter goes next.
//!
//! A core knows no Python, no libc and no clock, and it never sleeps. It wakes a waiter through its
//! [`Unparker`]; sleeping is left to the crate's user, the shell.
//!
//! Every core has the same protocol:
//!
//! - `begin` acquires, or enqueues the waiter;
//! - `resume`, after a wake-up, acquires, or keeps the waiter's place in the queue;
//! - `cancel` removes the waiter, and returns whether the waiter had been granted before.
//!
//! A grant is recorded under the core's mutex. A wake-up is only a hint that the waiter should re-check, so
//! nothing is lost when a wake-up and a grant disagree.
//!
//! Must never: call an [`Unparker`] or foreign code while a core's mutex is held.
//!
//! Invariant: a mutex is held for a bounded number of steps.
#![deny(unsafe_code)]

mod barrier;
mod channel;
mod gate;
mod limiter;
mod notifier;
mod permits;
mod rwlock;
mod shim;
mod sides;
mod store;
mod waiter;
mod waiter_queue;
mod wake_ahead;

pub use barrier::{Arrival, Departing, Rendezvous};
pub use channel::Channel;
pub use gate::{Gate, Opening};
pub use limiter::{Borrow, Borrowers};
pub use notifier::Notifier;
pub use permits::{Overflow, Permits};
pub use rwlock::{Obstacle, ReadWrite, Side};
#[cfg(not(any(loom, shuttle)))]
pub use shim::elide_mutexes;
pub use shim::{Arc, AtomicU32, Ordering};
pub use store::{Closed, Give, Store, Take};
pub use waiter::{ASLEEP, GRANTED, PENDING, REFUSED, Unparker, WOKEN, Waiter};
