//! The state of one hold: its fence, and whether its holder may still act on it.
//!
//! Shared by the program's threads and the native thread, without a lock on the way of a check: a check compares the
//! clock with a deadline, so it is right even where the native thread has not run for a while.
//!
//! | `state` | means | changed by |
//! |---|---|---|
//! | `HELD` | neither released nor lost, as far as was noticed | – |
//! | `RELEASED` | the program gave it back | the program's thread, from `HELD` |
//! | a `Loss` | lost for that reason | the native thread, from `HELD` |
//!
//! Invariant: `loss` returns a reason from the moment on at which the lease can no longer be relied on, and for good.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use tokio::sync::Notify;

use crate::boottime::now_ns;
use crate::port::Ticket;

/// Why a hold is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Loss {
    /// No renewal was confirmed in time.
    Expired = 2,
    /// The store has ended the lease.
    Refused = 3,
    /// The program did not report progress in time.
    Stalled = 4,
    /// Somebody broke the lock, with `unsnarl cluster break`.
    Broken = 5,
    /// The connection was closed with the lock held.
    Closed = 6,
    /// This process is a fork of the one that holds it.
    Forked = 7,
}

const HELD: u8 = 0;
const RELEASED: u8 = 1;
const NEVER: u64 = u64::MAX;

impl Loss {
    fn of(state: u8) -> Option<Self> {
        let all = [
            Self::Expired,
            Self::Refused,
            Self::Stalled,
            Self::Broken,
            Self::Closed,
            Self::Forked,
        ];
        all.into_iter().find(|loss| *loss as u8 == state)
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Expired => "no renewal was confirmed within its ttl",
            Self::Refused => "the store has ended it",
            Self::Stalled => "the program did not call progress() in time",
            Self::Broken => "it was broken by an operator",
            Self::Closed => "the connection was closed",
            Self::Forked => "it belongs to the parent process",
        }
    }
}

/// What the holder may believe of one session, by the clock.
#[derive(Debug, Default)]
pub(crate) struct Belief {
    deadline_ns: AtomicU64,
    lost: AtomicU8,
}

impl Belief {
    pub(crate) fn extend(&self, deadline_ns: u64) {
        // ORDERING: pairs with the load in `deadline_ns`; an older deadline only makes a reader careful for longer.
        self.deadline_ns.store(deadline_ns, Ordering::Release);
    }

    pub(crate) fn lose(&self, loss: Loss) {
        // ORDERING: pairs with the load in `loss`; stored once.
        let _ = self
            .lost
            .compare_exchange(0, loss as u8, Ordering::AcqRel, Ordering::Acquire);
    }

    pub(crate) fn deadline_ns(&self) -> u64 {
        // ORDERING: pairs with the store in `extend`.
        self.deadline_ns.load(Ordering::Acquire)
    }

    pub(crate) fn loss(&self, now_ns: u64) -> Option<Loss> {
        // ORDERING: pairs with the exchange in `lose`.
        let lost = Loss::of(self.lost.load(Ordering::Acquire));
        lost.or_else(|| (now_ns >= self.deadline_ns()).then_some(Loss::Expired))
    }
}

/// One hold.
pub(crate) struct Hold {
    pub(crate) fence: u64,
    pub(crate) ticket: Ticket,
    pub(crate) belief: Arc<Belief>,
    /// How long the program may go without reporting progress; 0 for ever.
    progress_ns: u64,
    stalls_at_ns: AtomicU64,
    state: AtomicU8,
    /// Notified when the hold is lost or released.
    pub(crate) ended: Notify,
    process: u32,
}

impl Hold {
    pub(crate) fn new(fence: u64, ticket: Ticket, belief: Arc<Belief>, progress_ns: u64) -> Self {
        let stalls_at_ns = AtomicU64::new(if progress_ns == 0 {
            NEVER
        } else {
            now_ns() + progress_ns
        });
        let (state, ended, process) = (AtomicU8::new(HELD), Notify::new(), std::process::id());
        Self {
            fence,
            ticket,
            belief,
            progress_ns,
            stalls_at_ns,
            state,
            ended,
            process,
        }
    }

    /// Returns why the hold cannot be relied on; None while it can, and after it was released.
    pub(crate) fn loss(&self) -> Option<Loss> {
        // ORDERING: pairs with the exchanges in `release` and `lose`.
        let state = self.state.load(Ordering::Acquire);
        if state != HELD {
            return Loss::of(state);
        }
        if std::process::id() != self.process {
            return Some(Loss::Forked);
        }
        let now = now_ns();
        if now >= self.stalls_at_ns() {
            return Some(Loss::Stalled);
        }
        self.belief.loss(now)
    }

    pub(crate) fn is_released(&self) -> bool {
        // ORDERING: pairs with the exchange in `release`.
        self.state.load(Ordering::Acquire) == RELEASED
    }

    pub(crate) fn stalls_at_ns(&self) -> u64 {
        // ORDERING: pairs with the store in `progress`.
        self.stalls_at_ns.load(Ordering::Acquire)
    }

    /// How long the hold can be relied on without another renewal.
    pub(crate) fn remaining_ns(&self) -> u64 {
        let until = self.belief.deadline_ns().min(self.stalls_at_ns());
        if self.loss().is_some() {
            0
        } else {
            until.saturating_sub(now_ns())
        }
    }

    /// Notes that the program gets on; a hold that was given up meanwhile stays lost.
    pub(crate) fn progress(&self) {
        if self.progress_ns != 0 && self.loss().is_none() {
            // ORDERING: pairs with the load in `stalls_at_ns`.
            self.stalls_at_ns.store(now_ns() + self.progress_ns, Ordering::Release);
        }
    }

    /// Gives the hold back, once: returns why it cannot be, if it is lost.
    pub(crate) fn release(&self) -> Result<(), Option<Loss>> {
        if let Some(loss) = self.loss() {
            return Err(Some(loss));
        }
        // ORDERING: pairs with the loads of `state` in `loss` and `is_released`.
        let changed = self
            .state
            .compare_exchange(HELD, RELEASED, Ordering::AcqRel, Ordering::Acquire);
        self.ended.notify_waiters();
        changed.map(drop).map_err(Loss::of)
    }

    /// Notes the loss, and wakes those who wait for one; returns whether it was held until now.
    pub(crate) fn lose(&self, loss: Loss) -> bool {
        // ORDERING: pairs with the load of `state` in `loss`.
        let changed = self
            .state
            .compare_exchange(HELD, loss as u8, Ordering::AcqRel, Ordering::Acquire)
            .is_ok();
        self.ended.notify_waiters();
        changed
    }
}
