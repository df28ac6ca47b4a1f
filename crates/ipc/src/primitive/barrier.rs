//! Barrier: one word that counts the arrivals of a round, and breaks if a waiter dies.
//!
//! | bits of `state` | meaning |
//! |---|---|
//! | low 31 | arrivals in this round |
//! | BROKEN | every waiter fails until `reset` |
//! | upper 32 | the round |
//!
//! `state` decides; `bell` only wakes. A round that ends by `reset` is noted in `failed` before the next round
//! begins, so that a waiter that slept through the reset learns of it.
//!
//! A process that dies while it waits stays counted as arrived. Its account still says "inside", so the other waiters
//! find it and break the barrier. A process that dies before it arrives is unknown here; the timeout covers that
//! case.
//!
//! Invariant: a round ends once, complete or failed.

use crate::kernel::{Kernel, Step};
use crate::ownership::Account;
use crate::shim::{AtomicU32, AtomicU64, Ordering};
use crate::wake::{ALL, Bell};

const BROKEN: u64 = 1 << 31;
const COUNT: u64 = BROKEN - 1;
const ROUND: u64 = 1 << 32;
const REMEMBERED: usize = 8;
/// Accounts that one waiter checks.
const WATCHED: usize = 8;

/// The shared words of a barrier.
#[derive(Debug, Default)]
#[repr(C)]
pub struct BarrierWords {
    state: AtomicU64,
    failed: [AtomicU64; REMEMBERED],
    bell: Bell,
    _reserved: AtomicU32,
}

/// The outcome of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Others are missing: the caller waits for the end of the round. The second number is its order of arrival.
    Waiting(u32, u32),
    /// The round is complete: the caller ends it with `trip`.
    Last(u32, u32),
    /// The previous round is complete and its action still runs: the caller waits for its end (`wait_until_idle`),
    /// and tries again.
    Full,
    /// The barrier is broken.
    Broken,
}

impl BarrierWords {
    /// Counts the caller as arrived.
    pub fn arrive(&self, parties: u32) -> Arrival {
        // ORDERING: sequentially consistent throughout this file: `state` is ordered with the bell, as bell.rs
        // demands of a condition that sleepers re-check after `listen`.
        let mut state = self.state.load(Ordering::SeqCst);
        loop {
            let count = (state & COUNT) as u32;
            if state & BROKEN != 0 {
                return Arrival::Broken;
            }
            if count >= parties {
                return Arrival::Full;
            }
            match self
                .state
                // ORDERING: pairs with the loads of `state` by waiters and by the party that ends the round.
                .compare_exchange(state, state + 1, Ordering::SeqCst, Ordering::SeqCst)
            {
                Ok(_) if count + 1 == parties => return Arrival::Last((state >> 32) as u32, count),
                Ok(_) => return Arrival::Waiting((state >> 32) as u32, count),
                Err(now) => state = now,
            }
        }
    }

    /// Waits until no complete round is about to end.
    pub fn wait_until_idle(&self, parties: u32) -> Step<'_, ()> {
        // ORDERING: re-checked after `listen`; pairs with the exchange in `advance`, which the ring follows.
        let is_full = |state: u64| state & BROKEN == 0 && (state & COUNT) as u32 >= parties;
        if is_full(self.state.load(Ordering::SeqCst)) {
            let (word, heard) = self.bell.listen();
            if is_full(self.state.load(Ordering::SeqCst)) {
                return Step::Sleep(word, heard);
            }
        }
        Step::Done(())
    }

    /// Ends the round and lets all parties through; false if the barrier was broken or reset meanwhile.
    pub fn trip<K: Kernel>(&self, round: u32, kernel: &K) -> bool {
        let ended = self.advance(|state| ((state >> 32) as u32 == round && state & BROKEN == 0).then_some(()));
        self.bell.ring(ALL, kernel);
        ended
    }

    fn advance(&self, allow: impl Fn(u64) -> Option<()>) -> bool {
        // ORDERING: pairs with the loads in `result` and `wait_until_idle`.
        self.state
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |state| {
                allow(state).map(|()| (state & !(ROUND - 1)).wrapping_add(ROUND))
            })
            .is_ok()
    }

    fn result(&self, round: u32) -> Option<bool> {
        // ORDERING: pairs with the exchange in `advance`, before which `reset` stores `failed`.
        let state = self.state.load(Ordering::SeqCst);
        if (state >> 32) as u32 != round {
            let failed = self.failed[round as usize % REMEMBERED].load(Ordering::SeqCst);
            return Some(failed != u64::from(round) + 1);
        }
        (state & BROKEN != 0).then_some(false)
    }

    /// Whether the round has not ended yet.
    #[must_use]
    pub fn is_pending(&self, round: u32) -> bool {
        self.result(round).is_none()
    }

    /// Waits for the end of the round: true if it was completed, false if the barrier broke.
    pub fn wait(&self, round: u32) -> Step<'_, bool> {
        if let Some(through) = self.result(round) {
            return Step::Done(through);
        }
        let (word, heard) = self.bell.listen();
        match self.result(round) {
            Some(through) => Step::Done(through),
            None => Step::Sleep(word, heard),
        }
    }

    /// Breaks the barrier in the given round if that has not ended, or in the current round.
    pub fn abort<K: Kernel>(&self, round: Option<u32>, kernel: &K) {
        // ORDERING: pairs with the loads in `result`; the ring follows.
        let _ = self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |state| {
            round
                .is_none_or(|round| (state >> 32) as u32 == round)
                .then_some(state | BROKEN)
        });
        self.bell.ring(ALL, kernel);
    }

    /// Starts a new round: all waiters fail with a broken barrier.
    pub fn reset<K: Kernel>(&self, accounts: &[Account], kernel: &K) {
        // ORDERING: `failed` is stored before `advance` publishes the next round; pairs with the loads in `result`.
        let state = self.state.load(Ordering::SeqCst);
        let round = (state >> 32) as u32;
        if state & (COUNT | BROKEN) != 0 {
            self.failed[round as usize % REMEMBERED].store(u64::from(round) + 1, Ordering::SeqCst);
            self.advance(|now| ((now >> 32) as u32 == round).then_some(()));
        }
        for account in accounts {
            // ORDERING: the load pairs with the exchange in `enter`, the exchange with the loads in `casualty`.
            let process = account.process.load(Ordering::Acquire);
            if process != 0 && !kernel.is_alive(process) {
                let _ = account
                    .process
                    .compare_exchange(process, 0, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
        self.bell.ring(ALL, kernel);
    }

    /// The number of waiters.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        // ORDERING: pairs with the exchange in `arrive`.
        let state = self.state.load(Ordering::SeqCst);
        if state & BROKEN == 0 { (state & COUNT) as u32 } else { 0 }
    }

    /// Whether the barrier is broken.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        // ORDERING: pairs with the exchange in `abort`.
        self.state.load(Ordering::SeqCst) & BROKEN != 0
    }

    /// Returns a process that died inside, among the few whose accounts follow the caller's.
    ///
    /// Every waiter checks a few accounts, so that together they check all, at a cost that does not grow with the
    /// square of their number.
    pub fn casualty<K: Kernel>(accounts: &[Account], own: Option<&Account>, kernel: &K) -> Option<u64> {
        let start = own
            .and_then(|own| accounts.iter().position(|account| std::ptr::eq(account, own)))
            .map_or(0, |number| number + 1);
        let around = accounts[start..].iter().chain(&accounts[..start]);
        around
            // ORDERING: pairs with the exchange in `enter`.
            .map(|account| account.process.load(Ordering::Acquire))
            .filter(|process| *process != 0)
            .take(WATCHED)
            .find(|process| !kernel.is_alive(*process))
    }

    /// Marks the calling process as inside; None if no account is free.
    pub fn enter<'a, K: Kernel>(accounts: &'a [Account], kernel: &K) -> Option<&'a Account> {
        let mine = kernel.process();
        // ORDERING: release pairs with the loads in `casualty` and `reset`, acquire with the exchange in `leave`.
        accounts.iter().find(|account| {
            account
                .process
                .compare_exchange(0, mine, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        })
    }

    /// Marks the calling process as outside again.
    pub fn leave<K: Kernel>(account: Option<&Account>, kernel: &K) {
        if let Some(account) = account {
            // ORDERING: release pairs with the exchange in `enter`.
            let _ = account
                .process
                .compare_exchange(kernel.process(), 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}
