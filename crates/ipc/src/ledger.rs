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
//! A process that is killed between two of these leaves an account under way. The
//! repair does not need to know whether its change happened: it makes the number what
//! the accounts of all *others* say, and the count of changes tells it whether
//! anybody has changed it meanwhile.
//!
//! | account | means |
//! |---|---|
//! | upper 32 bits | the sum, signed: what this process has taken and not given back |
//! | REPORTED | its death has been told to somebody |
//! | the rest | changes that are under way |
//!
//! An account is one process's. Where a GIL lets one of its threads change it at a time, that one loads and
//! stores it; where several may (`Books::threads`), each adds to it. The sum is in the upper
//! half, so that what goes below zero there borrows from nothing. Nobody waits for another thread, and
//! a forked child has an account of its own: there is nothing that it could find locked.
//!
//! Invariant: while no account is under way, number = base + sign × (sum of all accounts).

use crate::kernel::Kernel;
use crate::shim::{AtomicU32, AtomicU64, Ordering};

const SUM_SHIFT: u32 = 32;
const REPORTED: u64 = 1 << 31;
const UNDER_WAY: u64 = REPORTED - 1;
const PATIENCE: u32 = 10_000;

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
        (self.entry.load(Ordering::Acquire) >> SUM_SHIFT) as i32
    }
    fn is_under_way(&self) -> bool {
        self.entry.load(Ordering::Acquire) & UNDER_WAY != 0
    }

    /// Say that a change is under way.
    #[inline]
    fn announce(&self, threads: Threads) {
        // ORDERING: the release half of the exchange of the number makes this visible before it.
        match threads {
            Threads::InTurns => self
                .entry
                .store(self.entry.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed),
            Threads::AtOnce => drop(self.entry.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Enter a change by `sum`, 0 if it was none, and say that it is over.
    #[inline]
    fn enter(&self, sum: i32, threads: Threads) {
        let change = (u64::from(sum.cast_unsigned()) << SUM_SHIFT).wrapping_sub(1);
        // ORDERING: release pairs with the acquire in `sum` and `is_under_way`.
        match threads {
            Threads::InTurns => {
                let entry = self.entry.load(Ordering::Relaxed);
                self.entry.store(entry.wrapping_add(change), Ordering::Release);
            }
            Threads::AtOnce => drop(self.entry.fetch_add(change, Ordering::Release)),
        }
    }
}

/// How the threads of the calling process come to its account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// One at a time: something else sees to that.
    InTurns,
    /// Several may be changing it.
    AtOnce,
}

/// The shared words of a ledger.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Ledger {
    /// Changes in the upper half, the number in the lower.
    state: AtomicU64,
    /// Not zero once a process without an account has made a change.
    unaccounted: AtomicU32,
    _reserved: AtomicU32,
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

    /// An account whose process has died without owing anything.
    fn inherit<K: Kernel>(&self, mine: u64, kernel: &K) -> Option<&'a Account> {
        self.accounts.iter().find(|account| {
            let process = account.process.load(Ordering::Relaxed);
            account.sum() == 0
                && !account.is_under_way()
                && !kernel.is_alive(process)
                && account
                    .process
                    .compare_exchange(process, mine, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
        })
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
            account.enter(if changed { sum } else { 0 }, self.threads);
        }
        changed
    }

    fn dead<K: Kernel>(&self, kernel: &K) -> impl Iterator<Item = &'a Account> {
        self.accounts
            .iter()
            .take_while(|account| account.process.load(Ordering::Acquire) != 0)
            .filter(|account| account.sum() > 0 || account.is_under_way())
            .filter(|account| !kernel.is_alive(account.process.load(Ordering::Relaxed)))
    }

    /// What dead processes took and can no longer give back; and one of them.
    pub fn lost<K: Kernel>(&self, kernel: &K) -> Option<(u64, u32)> {
        let mut found = None;
        for account in self.dead(kernel) {
            let (process, sum) = found.unwrap_or((account.process.load(Ordering::Relaxed), 0));
            found = Some((process, sum + account.sum().max(0) as u32));
        }
        found
    }

    /// The same, of those whose death nobody has been told of; each is told once.
    pub fn unreported<K: Kernel>(&self, kernel: &K) -> Option<(u64, u32)> {
        let mut found = None;
        for account in self.dead(kernel) {
            if account.entry.fetch_or(REPORTED, Ordering::AcqRel) & REPORTED == 0 {
                let (process, sum) = found.unwrap_or((account.process.load(Ordering::Relaxed), 0));
                found = Some((process, sum + account.sum().max(0) as u32));
            }
        }
        found
    }

    /// Make the number what it is without the dead; returns by how much it changed.
    ///
    /// Dead processes that gave more than they took have given for good.
    pub fn repair<K: Kernel>(&self, kernel: &K) -> i64 {
        let dead: Vec<&Account> = self.dead(kernel).collect();
        if dead.is_empty() {
            return 0;
        }
        let change = self.settle(&dead, kernel);
        for account in dead {
            account.entry.store(0, Ordering::SeqCst);
        }
        change
    }

    fn settle<K: Kernel>(&self, dead: &[&Account], kernel: &K) -> i64 {
        for _ in 0..PATIENCE {
            let state = self.ledger.state.load(Ordering::SeqCst);
            let Some(target) = self.target(state as u32, dead) else {
                kernel.pause();
                continue;
            };
            let next = (state & !0xffff_ffff).wrapping_add(1 << 32) | u64::from(target);
            if self
                .ledger
                .state
                .compare_exchange(state, next, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
            {
                return i64::from(target) - i64::from(state as u32);
            }
        }
        // Somebody was stopped in the middle of a change: what is certain goes back.
        let certain: i64 = dead.iter().map(|account| i64::from(account.sum().max(0))).sum();
        let change = -self.sign * certain;
        let mut state = self.ledger.state.load(Ordering::SeqCst);
        loop {
            let value = (i64::from(state as u32) + change).max(0) as u32;
            let next = (state & !0xffff_ffff).wrapping_add(1 << 32) | u64::from(value);
            match self
                .ledger
                .state
                .compare_exchange(state, next, Ordering::SeqCst, Ordering::SeqCst)
            {
                Ok(_) => return change,
                Err(now) => state = now,
            }
        }
    }

    /// What the number should be; None while a living process is under way.
    fn target(&self, value: u32, dead: &[&Account]) -> Option<u32> {
        let is_dead = |account: &Account| dead.iter().any(|other| std::ptr::eq(*other, account));
        let open = self
            .accounts
            .iter()
            .take_while(|account| account.process.load(Ordering::Acquire) != 0);
        let mut living = 0_i64;
        for account in open.filter(|account| !is_dead(account)) {
            if account.is_under_way() {
                return None;
            }
            living += i64::from(account.sum());
        }
        if self.ledger.unaccounted.load(Ordering::SeqCst) != 0 {
            let certain: i64 = dead.iter().map(|account| i64::from(account.sum().max(0))).sum();
            return Some((i64::from(value) - self.sign * certain).max(0) as u32);
        }
        Some((self.base + self.sign * living).clamp(0, i64::from(u32::MAX)) as u32)
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
