//! The ledger: a number that processes change, with one account per process from which a death can be repaired.
//!
//! The number alone cannot be repaired: a semaphore's value of 3 does not say whose permits are missing. So every
//! process has an account, and each change is entered there:
//!
//! 1. the account counts one more change under way,
//! 2. one compare-and-swap changes the number and counts the change,
//! 3. the account adds the change to its sum, and counts one less under way.
//!
//! A process that is killed between two of these steps leaves an account under way. The repair need not know whether
//! its change happened: the number says how much is out, and the accounts of living processes say how much of that
//! they may have at most. The rest is lost. The count of changes shows whether a process changed the number while the
//! accounts were read.
//!
//! | account | meaning |
//! |---|---|
//! | upper 32 bits | the sum: how much this process took and did not give back, never below zero |
//! | REPORTED | its death was reported to a caller |
//! | REPAIRED | the number was repaired after its death |
//! | the rest | number of changes under way |
//!
//! A process that gives back more than it took gives back what other processes took. Nothing shows whose, so their
//! sums stay as they are and may be too large. It follows that:
//!
//! - what is reported as lost is certainly lost if every process that takes gives back its own first;
//! - what a living process gave back for a dead one is not lost;
//! - no death is reported any more once this has happened (`passes`): a producer that took what consumers give back
//!   owes nothing, whether it is dead or not.
//!
//! An account belongs to one process. Where a GIL serialises its threads, the thread loads and stores the account;
//! where threads run concurrently (`Books::threads`), each adds to it. No thread waits for another, and a forked
//! child has an account of its own, so it cannot find one locked.
//!
//! Things that do not work:
//!
//! - Sums below zero, which cancel out the sums of dead processes: they cancel once, but a process that gave back for
//!   another and then takes for itself is at zero although it holds something.
//! - Setting a dead account to zero after a repair: a second repair that began earlier may do so when the account
//!   already belongs to another process.
//!
//! Invariant: while no account is under way, the amount that is out, sign × (number - base), is at most the sum of
//! all accounts.

use crate::kernel::Kernel;
use crate::shim::{AtomicU32, AtomicU64, Ordering};

const SUM_SHIFT: u32 = 32;
const REPORTED: u64 = 1 << 31;
const REPAIRED: u64 = 1 << 30;
const UNDER_WAY: u64 = REPAIRED - 1;
/// How many times the accounts are read because the number changed during the reading.
const MAX_READINGS: u32 = 1_000;
/// How many of these readings wait until no change is under way.
const WAITING_READINGS: u32 = 100;

/// One process's account.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Account {
    /// The owner, as [`Kernel::process`] names it; 0 for none.
    pub process: AtomicU64,
    entry: AtomicU64,
}

impl Account {
    /// Whether its process took something and did not give it back.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.sum() > 0
    }
    fn sum(&self) -> i32 {
        // ORDERING: pairs with the release in `enter`.
        sum_of(self.entry.load(Ordering::Acquire))
    }
    /// Whether its process holds something or was about to take it.
    fn may_hold(&self) -> bool {
        // ORDERING: pairs with the release in `enter`.
        let entry = self.entry.load(Ordering::Acquire);
        sum_of(entry) > 0 || entry & UNDER_WAY != 0
    }
    /// Sets a mark once, unless the account has another owner by now; true if this call set it.
    fn mark(&self, process: u64, mark: u64) -> bool {
        // ORDERING: the entry is read before its owner. The loads pair with the exchanges in `claim`, so the exchange
        // below fails where a new owner has begun; it releases the mark to the loads of other repairs.
        let entry = self.entry.load(Ordering::Acquire);
        self.process.load(Ordering::Acquire) == process
            && entry & mark == 0
            && self
                .entry
                // ORDERING: as above.
                .compare_exchange(entry, entry | mark, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    }

    /// Counts a change as under way.
    #[inline]
    fn announce(&self, threads: Threads) {
        // ORDERING: the release half of the exchange of the number in `change` makes this visible before the number.
        match threads {
            Threads::Serialised => self
                .entry
                .store(self.entry.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed),
            Threads::Concurrent => drop(self.entry.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Adds `sum` to the account, 0 if there was no change, and counts one change less under way.
    #[inline]
    fn enter(&self, sum: i32, threads: Threads) {
        // ORDERING: release pairs with the acquire in `sum` and `may_hold`.
        match threads {
            Threads::Serialised => {
                let entry = self.entry.load(Ordering::Relaxed);
                self.entry.store(entered(entry, sum), Ordering::Release);
            }
            Threads::Concurrent if sum >= 0 => drop(self.entry.fetch_add(entered(0, sum), Ordering::Release)),
            // ORDERING: release, as above.
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

/// Returns the entry after a change by `sum` and with one change less under way. The part of the change that belongs
/// to other processes is not entered.
#[inline]
fn entered(entry: u64, sum: i32) -> u64 {
    let own = sum.max(-sum_of(entry).max(0));
    entry
        .wrapping_add(u64::from(own.cast_unsigned()) << SUM_SHIFT)
        .wrapping_sub(1)
}

/// How the threads of the calling process access what they share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// One at a time: the GIL serialises them.
    Serialised,
    /// Several threads may change it at the same time.
    Concurrent,
}

/// The shared words of a ledger.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Ledger {
    /// Changes in the upper half, the number in the lower.
    state: AtomicU64,
    /// Not zero after a process without an account made a change.
    unaccounted: AtomicU32,
    /// Not zero after a process gave back more than it took.
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
    /// The change of the number per unit of an account's sum: 1 or -1.
    pub sign: i64,
    /// How the threads of this process access its account.
    pub threads: Threads,
}

impl Ledger {
    /// Sets the number to `value`, before the segment is shared.
    pub fn start(&self, value: u32) {
        self.state.store(u64::from(value), Ordering::Relaxed);
    }
    /// The number, with the count of its changes in the upper half.
    pub(crate) fn state(&self) -> u64 {
        // ORDERING: pairs with the exchange in `change`, in one order with the other words of a primitive.
        self.state.load(Ordering::SeqCst)
    }
    /// The number.
    #[must_use]
    pub fn value(&self) -> u32 {
        // ORDERING: as `state`; a waiter calls `Bell::listen` before it re-checks the number.
        self.state.load(Ordering::SeqCst) as u32
    }
}

impl<'a> Books<'a> {
    /// Returns the account of the calling process, opened if necessary; None if all accounts are taken.
    ///
    /// Only one thread of the process may call this at a time, so that the process gets one account.
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
        // ORDERING: release pairs with the acquire loads of `process` in repairs.
        let free = |account: &&Account| {
            account
                .process
                .compare_exchange(0, mine, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        self.accounts.iter().find(free).or_else(|| self.inherit(mine, kernel))
    }

    /// Takes over the account of a process that died without owing anything; or that of any dead process if nothing
    /// is lost.
    fn inherit<K: Kernel>(&self, mine: u64, kernel: &K) -> Option<&'a Account> {
        // ORDERING: pairs with the exchange in `mark`.
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
                // ORDERING: acquire pairs with the former owner's exchange, release with the loads in repairs.
                && account
                    .process
                    .compare_exchange(process, mine, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
        })?;
        // Until the swap the new owner appears to hold what the dead process held: too much, which errs on the safe
        // side.
        // ORDERING: a swap instead of a store: a mark that another repair sets is either overwritten here or finds
        // the new owner. Pairs with the exchange in `mark`.
        claimed.entry.swap(0, Ordering::AcqRel);
        Some(claimed)
    }

    /// Changes the number by `sign * sum` if `allow` accepts its value; true if it did.
    #[inline]
    pub fn change(&self, account: Option<&Account>, sum: i32, allow: impl Fn(u32) -> bool) -> bool {
        // ORDERING: the load pairs with the exchange below, in another process.
        let mut state = self.ledger.state.load(Ordering::SeqCst);
        if !allow(state as u32) {
            return false;
        }
        match account {
            Some(account) => account.announce(self.threads),
            // ORDERING: before the exchange below; pairs with the load in `attributable`, which follows a load of the number.
            None => self.ledger.unaccounted.store(1, Ordering::SeqCst),
        }
        // ORDERING: sequentially consistent: pairs with the loads of the number by sleepers, after `Bell::listen`,
        // and of a writer, after its fence. Its release half publishes `announce`.
        let changed = loop {
            let value = (state as u32).wrapping_add((self.sign as i32).wrapping_mul(sum) as u32);
            let next = (state & !0xffff_ffff).wrapping_add(1 << 32) | u64::from(value);
            match self
                .ledger
                .state
                // ORDERING: as above.
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

    /// Accounts of dead processes that may hold something, with those processes. Each account may get another owner
    /// soon.
    fn dead<K: Kernel>(&self, kernel: &K) -> Vec<(&'a Account, u64)> {
        self.accounts
            .iter()
            // ORDERING: pairs with the exchanges in `open` and `claim`.
            .map(|account| (account, account.process.load(Ordering::Acquire)))
            .take_while(|(_, process)| *process != 0)
            .filter(|(account, process)| account.may_hold() && !kernel.is_alive(*process))
            .collect()
    }

    /// Returns one dead process, and how much dead processes took that no process gave back or will.
    pub fn lost<K: Kernel>(&self, kernel: &K) -> Option<(u64, u32)> {
        let dead = self.dead(kernel);
        let (_, lost) = self.missing(&dead, kernel)?;
        dead.last().map(|(_, process)| (*process, lost))
    }

    /// Returns the same if a death among them was not reported yet; each death is reported once.
    ///
    /// None if processes give back what others took: the cost of a death is then unknown.
    pub fn unreported<K: Kernel>(&self, kernel: &K) -> Option<(u64, u32)> {
        if self.ledger.passes.load(Ordering::Relaxed) != 0 {
            return None;
        }
        let dead = self.dead(kernel);
        let (_, lost) = self.missing(&dead, kernel)?;
        let mut found = None;
        for (account, process) in dead {
            if account.mark(process, REPORTED) {
                // The last one: what earlier ones took may have been given back by others long ago.
                found = Some((process, lost));
            }
        }
        found
    }

    /// Corrects the number by what dead processes took; returns by how much it changed.
    pub fn repair<K: Kernel>(&self, kernel: &K) -> i64 {
        let dead = self.dead(kernel);
        for _ in 0..MAX_READINGS {
            let Some((state, lost)) = self.missing(&dead, kernel) else {
                return 0;
            };
            let change = -self.sign * i64::from(lost);
            let number = (i64::from(state as u32) + change) as u32;
            let next = (state & !0xffff_ffff).wrapping_add(1 << 32) | u64::from(number);
            // ORDERING: pairs with the loads of the number by other processes, as in `change`.
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

    /// Returns the state, and how much of the amount that is out living processes cannot hold; None if nothing.
    fn missing<K: Kernel>(&self, dead: &[(&Account, u64)], kernel: &K) -> Option<(u64, u32)> {
        if dead.is_empty() {
            return None;
        }
        // ORDERING: the number is read before and after the accounts; pairs with the exchange in `change`. If the count
        // of changes is the same, no change happened in between.
        let mut state = self.ledger.state.load(Ordering::SeqCst);
        for reading in 0..MAX_READINGS {
            let (held, is_certain) = self.held_at_most(dead);
            let now = self.ledger.state.load(Ordering::SeqCst);
            // A process may be stopped in the middle of a change: it may hold what it was about to take.
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

    /// Returns what living processes hold at most, and whether none of them is about to change it.
    fn held_at_most(&self, dead: &[(&Account, u64)]) -> (i64, bool) {
        let mut dead = dead.iter().peekable();
        let (mut held, mut is_certain) = (0, true);
        for account in self.accounts {
            // ORDERING: pairs with the exchanges in `open` and `claim`.
            let process = account.process.load(Ordering::Acquire);
            if process == 0 {
                break;
            }
            // `dead` is in the order of the accounts.
            let died = dead.next_if(|(other, _)| std::ptr::eq(*other, account));
            if account.may_hold() && died.is_none_or(|(_, died)| *died != process) {
                // ORDERING: pairs with the release in `enter`.
                let entry = account.entry.load(Ordering::Acquire);
                let under_way = (entry & UNDER_WAY) as i64;
                held += i64::from(sum_of(entry)) + under_way;
                is_certain &= under_way == 0;
            }
        }
        (held, is_certain)
    }

    /// Returns how much dead processes can have taken: no more than their sums, once a process without an account
    /// took something.
    fn attributable(&self, dead: &[(&Account, u64)]) -> i64 {
        // ORDERING: pairs with the store in `change`, which precedes the exchange of the number; the second load
        // pairs with the release in `enter`.
        if self.ledger.unaccounted.load(Ordering::SeqCst) == 0 {
            return i64::MAX;
        }
        let entries = dead.iter().map(|(account, _)| account.entry.load(Ordering::Acquire));
        let unsettled = entries.filter(|entry| entry & REPAIRED == 0);
        unsettled.map(|entry| i64::from(sum_of(entry))).sum()
    }

    /// Returns how many living processes have an account, and how much they hold together.
    pub fn census<K: Kernel>(&self, kernel: &K) -> (usize, i64) {
        let mut census = (0, 0);
        for account in self.accounts {
            // ORDERING: pairs with the exchanges in `open` and `claim`.
            let process = account.process.load(Ordering::Acquire);
            if process != 0 && kernel.is_alive(process) {
                census = (census.0 + 1, census.1 + i64::from(account.sum()));
            }
        }
        census
    }
}
