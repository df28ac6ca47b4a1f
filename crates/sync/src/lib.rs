//! Pure cores of the synchronisation primitives.
//!
//! Nothing here knows Python, libc or a clock, and nothing here sleeps: a core
//! decides *who* goes next and says so through a [`Port`]; the shell sleeps.
//!
//! The protocol is the same for every core. `begin` takes at once or enqueues
//! the waiter; after a wake-up `resume` takes, or keeps the waiter's place;
//! `cancel` withdraws, and answers whether the waiter had been served before it
//! could. A grant is a fact recorded under the core's mutex; a wake-up is only
//! a hint that it is worth looking. So nothing is lost when the two disagree.
//!
//! Invariant: no core calls a [`Port`] or runs foreign code while its mutex is
//! held; a mutex is held for a bounded number of steps.
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
pub use waiter::{ASLEEP, GRANTED, PENDING, Port, REFUSED, WOKEN, Waiter};
