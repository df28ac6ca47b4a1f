//! Barrier: how many have arrived in which round.
//!
//! | bits of `state` | mean |
//! |---|---|
//! | low 31 | how many have arrived in this round |
//! | BROKEN | nobody gets through until `reset` |
//! | upper 32 | the round |
//!
//! `state` is the truth; `bell` only wakes. A round that ended by `reset` is noted in
//! `failed` before the next one begins, so that a waiter that slept through it knows.
//!
//! A process that dies while it waits has arrived, and would be counted: its account
//! says "inside", so the others find it and break the barrier. One that dies before it
//! arrives is not known here: that is what the timeout is for.

use crate::kernel::{Kernel, Step};
use crate::ownership::Account;
use crate::shim::{AtomicU32, AtomicU64, Ordering};
use crate::wake::{ALL, Bell};

const BROKEN: u64 = 1 << 31;
const COUNT: u64 = BROKEN - 1;
const ROUND: u64 = 1 << 32;
const REMEMBERED: usize = 8;
/// Accounts that one waiter looks at.
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

/// What became of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Others are missing: wait for the end of the round. The second is the place in it.
    Waiting(u32, u32),
    /// The round is complete: the caller ends it with `trip`.
    Last(u32, u32),
    /// The round before is complete and its action runs: wait for its end (`wait_until_idle`), and try again.
    Full,
    /// The barrier is broken.
    Broken,
}

impl BarrierWords {
    /// Arrive.
    pub fn arrive(&self, parties: u32) -> Arrival {
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
                .compare_exchange(state, state + 1, Ordering::SeqCst, Ordering::SeqCst)
            {
                Ok(_) if count + 1 == parties => return Arrival::Last((state >> 32) as u32, count),
                Ok(_) => return Arrival::Waiting((state >> 32) as u32, count),
                Err(now) => state = now,
            }
        }
    }

    /// Wait until no complete round is about to end.
    pub fn wait_until_idle(&self, parties: u32) -> Step<'_, ()> {
        let is_full = |state: u64| state & BROKEN == 0 && (state & COUNT) as u32 >= parties;
        if is_full(self.state.load(Ordering::SeqCst)) {
            let (word, heard) = self.bell.listen();
            if is_full(self.state.load(Ordering::SeqCst)) {
                return Step::Sleep(word, heard);
            }
        }
        Step::Done(())
    }

    /// End the round, and let everybody through; false if the barrier was broken or reset meanwhile.
    pub fn trip<K: Kernel>(&self, round: u32, kernel: &K) -> bool {
        let ended = self.advance(|state| ((state >> 32) as u32 == round && state & BROKEN == 0).then_some(()));
        self.bell.ring(ALL, kernel);
        ended
    }

    fn advance(&self, allow: impl Fn(u64) -> Option<()>) -> bool {
        self.state
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |state| {
                allow(state).map(|()| (state & !(ROUND - 1)).wrapping_add(ROUND))
            })
            .is_ok()
    }

    fn result(&self, round: u32) -> Option<bool> {
        let state = self.state.load(Ordering::SeqCst);
        if (state >> 32) as u32 != round {
            let failed = self.failed[round as usize % REMEMBERED].load(Ordering::SeqCst);
            return Some(failed != u64::from(round) + 1);
        }
        (state & BROKEN != 0).then_some(false)
    }

    /// Whether the round still lasts.
    #[must_use]
    pub fn is_pending(&self, round: u32) -> bool {
        self.result(round).is_none()
    }

    /// Wait for the end of the round: true if everybody came, false if the barrier broke.
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

    /// Break the barrier for the round, if that still lasts, or for whatever round there is.
    pub fn abort<K: Kernel>(&self, round: Option<u32>, kernel: &K) {
        let _ = self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |state| {
            round
                .is_none_or(|round| (state >> 32) as u32 == round)
                .then_some(state | BROKEN)
        });
        self.bell.ring(ALL, kernel);
    }

    /// Begin anew: who waits gets out with a broken barrier.
    pub fn reset<K: Kernel>(&self, accounts: &[Account], kernel: &K) {
        let state = self.state.load(Ordering::SeqCst);
        let round = (state >> 32) as u32;
        if state & (COUNT | BROKEN) != 0 {
            self.failed[round as usize % REMEMBERED].store(u64::from(round) + 1, Ordering::SeqCst);
            self.advance(|now| ((now >> 32) as u32 == round).then_some(()));
        }
        for account in accounts {
            let process = account.process.load(Ordering::Acquire);
            if process != 0 && !kernel.is_alive(process) {
                let _ = account
                    .process
                    .compare_exchange(process, 0, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
        self.bell.ring(ALL, kernel);
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        let state = self.state.load(Ordering::SeqCst);
        if state & BROKEN == 0 { (state & COUNT) as u32 } else { 0 }
    }

    /// Whether it is broken.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.state.load(Ordering::SeqCst) & BROKEN != 0
    }

    /// A process that died inside, among the few whose accounts follow the caller's.
    ///
    /// Every waiter looks at a few, so that together they see all, at a cost that does not
    /// grow with the square of their number.
    pub fn casualty<K: Kernel>(accounts: &[Account], own: Option<&Account>, kernel: &K) -> Option<u64> {
        let start = own
            .and_then(|own| accounts.iter().position(|account| std::ptr::eq(account, own)))
            .map_or(0, |number| number + 1);
        let around = accounts[start..].iter().chain(&accounts[..start]);
        around
            .map(|account| account.process.load(Ordering::Acquire))
            .filter(|process| *process != 0)
            .take(WATCHED)
            .find(|process| !kernel.is_alive(*process))
    }

    /// Say that the calling process is inside; None if no account is free.
    pub fn enter<'a, K: Kernel>(accounts: &'a [Account], kernel: &K) -> Option<&'a Account> {
        let mine = kernel.process();
        accounts.iter().find(|account| {
            account
                .process
                .compare_exchange(0, mine, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        })
    }

    /// Say that it is outside again.
    pub fn leave<K: Kernel>(account: Option<&Account>, kernel: &K) {
        if let Some(account) = account {
            let _ = account
                .process
                .compare_exchange(kernel.process(), 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}
