//! The ledger: a number that processes change, and what each of them has changed.
//!
//! The number alone cannot be repaired: of a semaphore that stands at 3 nobody can say
//! whose permits are missing. So every process has an account, and each change is
//! entered there:
//!
//! 1. the account says that one more change is under way,
//! 2. the number changes, in one compare-and-swap that also counts changes,
//! 3. the account gets its sum, and says that one less is.
//!
//! A process that is killed between two of these leaves an account under way, and nobody needs to know
//! whether its change happened: the number says how much is out, and the accounts of the living say how
//! much of it they may have at most. What is out beyond that is lost. The count of changes tells
//! whether anybody changed the number while the accounts were read.
//!
//! | account | means |
//! |---|---|
//! | upper 32 bits | the sum: what this process has taken and not given back, never below zero |
//! | REPORTED | its death has been told to somebody |
//! | REPAIRED | the number has been repaired since its death |
//! | the rest | changes that are under way |
//!
//! Who gives back more than it took gives back what another one took; nobody knows whose, so the other's sum stays
//! as it is, and may say too much. What is told to be lost is lost therefore, if whoever has taken gives back its own first;
//! and what another one gave back for a dead process is not lost. Nor is anybody told any more (`passes`): a producer
//! that took what consumers give back owes nothing, whether it is dead or not.
//!
//! An account is one process's. Where a GIL lets one of its threads change it at a time, that one loads and
//! stores it; where several may (`Books::threads`), each adds to it. Nobody waits for another thread, and
//! a forked child has an account of its own: there is nothing that it could find locked.
//!
//! Things that do not work: sums below zero, which cancel out those of the dead (they cancel once, but
//! who has given back for another and then takes for itself is at zero, and holds something); setting a dead account
//! to zero after a repair (a second one that began before may do so when the account is another's already).
//!
//! Invariant: while no account is under way, what is out, sign × (number - base), is at most the sum of all accounts.

use crate::kernel::Kernel;
use crate::shim::{AtomicU32, AtomicU64, Ordering};

const SUM_SHIFT: u32 = 32;
const REPORTED: u64 = 1 << 31;
const REPAIRED: u64 = 1 << 30;
const UNDER_WAY: u64 = REPAIRED - 1;
/// How often the accounts are read again because the number changed meanwhile.
const MAX_READINGS: u32 = 1_000;
/// How many of these readings wait for changes that are under way.
const WAITING_READINGS: u32 = 100;

/// One process's account.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Account {
    /// Whose it is, as [`Kernel::process`] has it; 0 for nobody's.
    pub process: AtomicU64,
    entry: AtomicU64,
}

impl Account {
    /// Whether its process has taken something and not given it back.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.sum() > 0
    }
    fn sum(&self) -> i32 {
        sum_of(self.entry.load(Ordering::Acquire))
    }
    /// Whether its process may have something: it has, or was about to.
    fn may_hold(&self) -> bool {
        let entry = self.entry.load(Ordering::Acquire);
        sum_of(entry) > 0 || entry & UNDER_WAY != 0
    }
    /// Set a mark, once, unless the account is another's by now; whether it was this call that set it.
    fn mark(&self, process: u64, mark: u64) -> bool {
        let entry = self.entry.load(Ordering::Acquire);
        self.process.load(Ordering::Acquire) == process
            && entry & mark == 0
            && self
                .entry
                .compare_exchange(entry, entry | mark, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    }

    /// Say that a change is under way.
    #[inline]
    fn announce(&self, threads: Threads) {
        // ORDERING: the release half of the exchange of the number makes this visible before it.
        match threads {
            Threads::Serialised => self
                .entry
                .store(self.entry.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed),
            Threads::Concurrent => drop(self.entry.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Enter a change by `sum`, 0 if it was none, and say that it is over.
    #[inline]
    fn enter(&self, sum: i32, threads: Threads) {
        // ORDERING: release pairs with the acquire in `sum` and `may_hold`.
        match threads {
            Threads::Serialised => {
                let entry = self.entry.load(Ordering::Relaxed);
                self.entry.store(entered(entry, sum), Ordering::Release);
            }
            Threads::Concurrent if sum >= 0 => drop(self.entry.fetch_add(entered(0, sum), Ordering::Release)),
            Threads::Concurrent => {
                let enter = |entry| Some(entered(entry, sum));
                let _always_changed = self.entry.fetch_update(Ordering::Release, Ordering::Relaxed, enter);
            }
        }
    }
}

fn sum_of(entry: u64) -> i32 {
    (entry >> SUM_SHIFT) as i32
}

/// The entry after a change by `sum`, and with one change less under way: what belongs to another is not entered.
#[inline]
fn entered(entry: u64, sum: i32) -> u64 {
    let own = sum.max(-sum_of(entry).max(0));
    entry
        .wrapping_add(u64::from(own.cast_unsigned()) << SUM_SHIFT)
        .wrapping_sub(1)
}

/// How the threads of the calling process come to its account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// One at a time: something else sees to that.
    Serialised,
    /// Several may be changing it.
    Concurrent,
}

/// The shared words of a ledger.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Ledger {
    /// Changes in the upper half, the number in the lower.
    state: AtomicU64,
    /// Not zero once a process without an account has made a change.
    unaccounted: AtomicU32,
    /// Not zero once a process has given back more than it took.
    passes: AtomicU32,
}

/// A ledger with its accounts and the rule that ties them.
#[derive(Debug, Clone, Copy)]
pub struct Books<'a> {
    /// The number.
    pub ledger: &'a Ledger,
    /// The accounts.
    pub accounts: &'a [Account],
    /// The number while every sum is 0.
    pub base: i64,
    /// What a sum of one does to the number: 1 or -1.
    pub sign: i64,
    /// How the threads of this process come to its account.
    pub threads: Threads,
}

impl Ledger {
    /// Make the number `value`, before anybody else sees it.
    pub fn start(&self, value: u32) {
        self.state.store(u64::from(value), Ordering::Relaxed);
    }
    /// The number, with the count of its changes above it.
    pub(crate) fn state(&self) -> u64 {
        self.state.load(Ordering::SeqCst)
    }
    /// The number.
    #[must_use]
    pub fn value(&self) -> u32 {
        self.state.load(Ordering::SeqCst) as u32
    }
}

impl<'a> Books<'a> {
    /// The account of the calling process, opened if need be; None if all are taken.
    ///
    /// One thread of the process at a time: it is to have one account.
    pub fn open<K: Kernel>(&self, kernel: &K) -> Option<&'a Account> {
        let mine = kernel.process();
        let known = self
            .accounts
            .iter()
            .take_while(|account| account.process.load(Ordering::Relaxed) != 0);
        if let Some(account) = known
            .into_iter()
            .find(|account| account.process.load(Ordering::Relaxed) == mine)
        {
            return Some(account);
        }
        let free = |account: &&Account| {
            account
                .process
                .compare_exchange(0, mine, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        self.accounts.iter().find(free).or_else(|| self.inherit(mine, kernel))
    }

    /// An account whose process has died without owing anything; or that of any dead one, if nothing is lost.
    fn inherit<K: Kernel>(&self, mine: u64, kernel: &K) -> Option<&'a Account> {
        let owes_nothing =
            |account: &Account| !account.may_hold() || account.entry.load(Ordering::Acquire) & REPAIRED != 0;
        self.claim(mine, kernel, &owes_nothing).or_else(|| {
            let is_sound = self.lost(kernel).is_none();
            is_sound.then(|| self.claim(mine, kernel, &|_| true)).flatten()
        })
    }

    fn claim<K: Kernel>(&self, mine: u64, kernel: &K, suits: &dyn Fn(&Account) -> bool) -> Option<&'a Account> {
        let claimed = self.accounts.iter().find(|account| {
            let process = account.process.load(Ordering::Relaxed);
            suits(account)
                && !kernel.is_alive(process)
                && account
                    .process
                    .compare_exchange(process, mine, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
        })?;
        // Until then its new owner seems to have what the dead one had: too much, which errs on the safe side.
        // ORDERING: an exchange, and no store: a mark that another one sets comes before or finds this.
        claimed.entry.swap(0, Ordering::AcqRel);
        Some(claimed)
    }

    /// Change the number by `sign * sum` if `allow` says so of its value; true if it did.
    #[inline]
    pub fn change(&self, account: Option<&Account>, sum: i32, allow: impl Fn(u32) -> bool) -> bool {
        let mut state = self.ledger.state.load(Ordering::SeqCst);
        if !allow(state as u32) {
            return false;
        }
        match account {
            Some(account) => account.announce(self.threads),
            None => self.ledger.unaccounted.store(1, Ordering::SeqCst),
        }
        let changed = loop {
            let value = (state as u32).wrapping_add((self.sign as i32).wrapping_mul(sum) as u32);
            let next = (state & !0xffff_ffff).wrapping_add(1 << 32) | u64::from(value);
            match self
                .ledger
                .state
                .compare_exchange(state, next, Ordering::SeqCst, Ordering::SeqCst)
            {
                Ok(_) => break true,
                Err(now) if allow(now as u32) => state = now,
                Err(_) => break false,
            }
        };
        if let Some(account) = account {
            if sum < 0 && changed && account.sum() < -sum {
                self.ledger.passes.store(1, Ordering::Relaxed);
            }
            account.enter(if changed { sum } else { 0 }, self.threads);
        }
        changed
    }

    /// Accounts of dead processes that may have something, with those processes: each may be another's soon.
    fn dead<K: Kernel>(&self, kernel: &K) -> Vec<(&'a Account, u64)> {
        self.accounts
            .iter()
            .map(|account| (account, account.process.load(Ordering::Acquire)))
            .take_while(|(_, process)| *process != 0)
            .filter(|(account, process)| account.may_hold() && !kernel.is_alive(*process))
            .collect()
    }

    /// What dead processes took and nobody gave back, or will; and one of them.
    pub fn lost<K: Kernel>(&self, kernel: &K) -> Option<(u64, u32)> {
        let dead = self.dead(kernel);
        let (_, lost) = self.missing(&dead, kernel)?;
        dead.last().map(|(_, process)| (*process, lost))
    }

    /// The same, if there is a death among them that nobody has been told of; each is told once.
    ///
    /// None where what is taken passes between processes: nobody can say what a death costs there.
    pub fn unreported<K: Kernel>(&self, kernel: &K) -> Option<(u64, u32)> {
        if self.ledger.passes.load(Ordering::Relaxed) != 0 {
            return None;
        }
        let dead = self.dead(kernel);
        let (_, lost) = self.missing(&dead, kernel)?;
        let mut found = None;
        for (account, process) in dead {
            if account.mark(process, REPORTED) {
                // The last to come: those before may be long gone, and what they took given back by others.
                found = Some((process, lost));
            }
        }
        found
    }

    /// Make the number what it is without what the dead took; returns by how much it changed.
    pub fn repair<K: Kernel>(&self, kernel: &K) -> i64 {
        let dead = self.dead(kernel);
        for _ in 0..MAX_READINGS {
            let Some((state, lost)) = self.missing(&dead, kernel) else {
                return 0;
            };
            let change = -self.sign * i64::from(lost);
            let number = (i64::from(state as u32) + change) as u32;
            let next = (state & !0xffff_ffff).wrapping_add(1 << 32) | u64::from(number);
            if self
                .ledger
                .state
                .compare_exchange(state, next, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
            {
                for (account, process) in dead {
                    account.mark(process, REPAIRED);
                }
                return change;
            }
        }
        0
    }

    /// The state, and how much of what is out in it the living cannot have; None if nothing.
    fn missing<K: Kernel>(&self, dead: &[(&Account, u64)], kernel: &K) -> Option<(u64, u32)> {
        if dead.is_empty() {
            return None;
        }
        let mut state = self.ledger.state.load(Ordering::SeqCst);
        for reading in 0..MAX_READINGS {
            let (held, is_certain) = self.held_at_most(dead);
            let now = self.ledger.state.load(Ordering::SeqCst);
            // Somebody may have been stopped in the middle of a change: it may have what it was about to take.
            if now == state && (is_certain || reading >= WAITING_READINGS) {
                let out = self.sign * (i64::from(state as u32) - self.base);
                let lost = (out - held).min(self.attributable(dead));
                return (lost > 0).then_some((state, lost as u32));
            }
            state = now;
            kernel.pause();
        }
        None
    }

    /// What the living have at most, and whether none of them is about to change it.
    fn held_at_most(&self, dead: &[(&Account, u64)]) -> (i64, bool) {
        let mut dead = dead.iter().peekable();
        let (mut held, mut is_certain) = (0, true);
        for account in self.accounts {
            let process = account.process.load(Ordering::Acquire);
            if process == 0 {
                break;
            }
            // They are in the order of the accounts.
            let died = dead.next_if(|(other, _)| std::ptr::eq(*other, account));
            if account.may_hold() && died.is_none_or(|(_, died)| *died != process) {
                let entry = account.entry.load(Ordering::Acquire);
                let under_way = (entry & UNDER_WAY) as i64;
                held += i64::from(sum_of(entry)) + under_way;
                is_certain &= under_way == 0;
            }
        }
        (held, is_certain)
    }

    /// How much may be the dead ones': no more than they took, once anybody takes without an account.
    fn attributable(&self, dead: &[(&Account, u64)]) -> i64 {
        if self.ledger.unaccounted.load(Ordering::SeqCst) == 0 {
            return i64::MAX;
        }
        let entries = dead.iter().map(|(account, _)| account.entry.load(Ordering::Acquire));
        let unsettled = entries.filter(|entry| entry & REPAIRED == 0);
        unsettled.map(|entry| i64::from(sum_of(entry))).sum()
    }

    /// How many processes have an account, and what the living hold together.
    pub fn census<K: Kernel>(&self, kernel: &K) -> (usize, i64) {
        let mut census = (0, 0);
        for account in self.accounts {
            let process = account.process.load(Ordering::Acquire);
            if process != 0 && kernel.is_alive(process) {
                census = (census.0 + 1, census.1 + i64::from(account.sum()));
            }
        }
        census
    }
}
