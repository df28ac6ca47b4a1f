//! Naps: a thread lets its wake-up come late, when the thread that owes it blocks, if both run on one processor.
//!
//! On one processor a woken thread cannot run next to the thread that woke it. The kernel often lets it run at once
//! instead: it wants the GIL, which the waking thread holds, sleeps for that, is woken by the release of the GIL while the
//! GIL's mutex is locked, sleeps for the mutex, and is woken a third time. Two threads in ping-pong over a Lock make 6.3
//! context switches per round trip then, of which 2 are needed. So it is where there is a single processor, and where all
//! others are busy.
//!
//! So a waiting thread may *nap*: it sleeps for [`LONGEST_NAP`] at most, and says so. A thread that owes a napping
//! thread a wake-up does not make the call, but notes it. It wakes the napping thread when it has released the GIL to
//! wait for something here itself. If it does not wait so soon, the nap ends by itself.
//!
//! A nap that ends by itself delayed the thread. So a thread naps only on evidence. After each plain sleep it sees whether
//! it woke on the processor of the thread that woke it, and whether a thread began to wait here before it had the GIL,
//! within [`SOON`]; if so, a nap would have ended then. It naps after [`FEWEST`] such sleeps in a row, and after each nap
//! that ended by itself it demands twice as many. It stops when it wakes on another processor.
//!
//! | | thread that naps | thread that owes a wake-up |
//! |---|---|---|
//! | writes | `Napping`, true then false | the waiter's word |
//! | then reads | the waiter's word | `Napping` |
//!
//! Things that don't work:
//!
//! - A nap of half a millisecond, without evidence. A timer that is due before the processor's next tick makes the kernel
//!   program its clock, twice a nap; on a virtual machine a round trip took 11.3 µs then, with 2 switches, and 5.7 with
//!   6.3 switches before.
//!
//! Must never: put off the wake-ups of more than one thread.
//!
//! Invariant: a thread sleeps without a limit only after it has stopped napping and found its word unchanged. So no
//! wake-up that was put off is lost, even if it is never made.

use super::futex;
use super::gil;
use super::party::Party;
use super::spin;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering, fence};
use std::time::{Duration, Instant};
use unsnarl_sync::{ASLEEP, AtomicU32, Waiter};

/// More than a tick of most kernels (4 ms where CONFIG_HZ is 250), so that the timer costs next to nothing; and the time
/// after which a thread that waits for the GIL requests it, so that such a delay is not new to a program.
const LONGEST_NAP: Duration = Duration::from_millis(5);

/// A thread that waits that soon after it has woken another one has done little else in between.
const SOON: Duration = Duration::from_micros(100);

/// The number of sleeps that are evidence enough, at first and at most.
const FEWEST: u32 = 4;
const MOST: u32 = 1 << 14;

/// The number of times that a thread was about to release the GIL to wait here. Threads that would rather spin are not
/// counted: two that spin for each other would move this word between their processors.
static LEAVING: AtomicU32 = AtomicU32::new(0);
/// The processor of the thread that last woke another one.
static WAKER_AT: AtomicI32 = AtomicI32::new(-1);

thread_local! {
    /// The address of the word of the napping thread that the calling thread has to wake; 0 for none. The waiter may be
    /// gone by then: a wake-up never dereferences the address, and every sleep may end spuriously.
    static OWED: Cell<usize> = const { Cell::new(0) };
    static EVIDENCE: Cell<Evidence> = const { Cell::new(Evidence { streak: 0, demanded: FEWEST, woken_at: None }) };
}

/// What the calling thread knows about the threads that wake it.
#[derive(Clone, Copy)]
struct Evidence {
    /// The number of its last sleeps after which a nap would have paid, or has.
    streak: u32,
    /// Naps are worth it from this streak on.
    demanded: u32,
    /// `LEAVING` when it awoke from its last plain sleep, until it has the GIL; None if that was on another processor
    /// than that of the thread that woke it.
    woken_at: Option<u32>,
}

impl Evidence {
    fn add(&mut self, is_for: bool) {
        self.streak = if is_for { self.streak.saturating_add(1) } else { 0 };
        if self.streak > MOST {
            self.demanded = FEWEST;
        }
    }
}

fn change<R>(change: impl FnOnce(&mut Evidence) -> R) -> R {
    let mut evidence = EVIDENCE.get();
    let result = change(&mut evidence);
    EVIDENCE.set(evidence);
    result
}

/// The processor on which the calling thread runs.
fn processor() -> i32 {
    // SAFETY: sched_getcpu(3) has no preconditions.
    unsafe { libc::sched_getcpu() }
}

/// Whether a waiting thread naps.
#[derive(Debug, Default)]
pub(super) struct Napping(AtomicBool);

impl Napping {
    fn set(&self, is_napping: bool) {
        self.0.store(is_napping, Ordering::Relaxed);
        // ORDERING: pairs with the fence in `owe`, as in the table above: one of the two threads sees the other's write.
        fence(Ordering::SeqCst);
    }
}

/// Announce, with the GIL held, that the calling thread is about to release it to wait.
pub(super) fn announce() {
    if gil::has_gil() && !spin::is_due() {
        LEAVING.fetch_add(1, Ordering::Relaxed);
    }
}

/// Sleep while the waiter's word is ASLEEP, until the deadline: as a nap first, if that is a good bet.
pub(super) fn sleep(waiter: &Waiter<Party>, until: Option<Instant>) -> futex::Woken {
    if !gil::has_gil() {
        return futex::wait(waiter.word(), ASLEEP, until);
    }
    if let Some(woken) = nap(waiter, until) {
        return woken;
    }
    let woken = futex::wait(waiter.word(), ASLEEP, until);
    let is_here = WAKER_AT.load(Ordering::Relaxed) == processor();
    let leaving = LEAVING.load(Ordering::Relaxed);
    change(|evidence| {
        evidence.woken_at = is_here.then_some(leaving);
        if !is_here {
            evidence.add(false);
        }
    });
    woken
}

/// None: the thread has yet to sleep.
fn nap(waiter: &Waiter<Party>, until: Option<Instant>) -> Option<futex::Woken> {
    let napping = waiter.party.napping()?;
    let end = Instant::now() + LONGEST_NAP;
    if change(|evidence| evidence.streak < evidence.demanded) || until.is_some_and(|until| until <= end) {
        return None;
    }
    napping.set(true);
    let woken = futex::wait(waiter.word(), ASLEEP, Some(end));
    napping.set(false);
    let is_over = woken == futex::Woken::TimedOut;
    let is_here = WAKER_AT.load(Ordering::Relaxed) == processor();
    change(|evidence| {
        evidence.add(!is_over && is_here);
        if is_over {
            evidence.demanded = (2 * evidence.demanded).min(MOST);
        }
    });
    (!is_over || waiter.is_signalled()).then_some(futex::Woken::Perhaps)
}

/// Learn from the last plain sleep, if the wait was one: the thread has the GIL now, `delay` after it awoke.
pub(super) fn learn(delay: Duration) {
    change(|evidence| {
        if let Some(woken_at) = evidence.woken_at.take() {
            evidence.add(delay < SOON && woken_at != LEAVING.load(Ordering::Relaxed));
        }
    });
}

/// Put off the wake-up of a thread that sleeps on `word`, if it naps. Called after the word was changed. False: wake it
/// now.
pub(super) fn owe(word: &AtomicU32, napping: &Napping) -> bool {
    if !gil::has_gil() {
        return false;
    }
    WAKER_AT.store(processor(), Ordering::Relaxed);
    // ORDERING: pairs with the fence in `Napping::set`.
    fence(Ordering::SeqCst);
    let has_owed = pay();
    let is_owed = !has_owed && napping.0.load(Ordering::Relaxed);
    if is_owed {
        OWED.set(word.as_ptr() as usize);
    }
    is_owed
}

/// Make the wake-up that the calling thread has put off. Returns whether there was one.
pub(super) fn pay() -> bool {
    let owed = OWED.replace(0);
    if owed != 0 {
        WAKER_AT.store(processor(), Ordering::Relaxed);
        futex::wake_address(owed);
    }
    owed != 0
}
