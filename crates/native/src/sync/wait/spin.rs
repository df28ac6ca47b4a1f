//! Adaptive spinning: a waiting thread may spin for some microseconds before it sleeps.
//!
//! A sleep and its wake-up cost two futex calls, a context switch and some ten microseconds of latency. A
//! thread that is granted sooner saves all of it, and so does the thread that grants. Besides its grant a
//! thread needs the GIL, which the granting thread still holds. So a spinning thread watches two words: its
//! waiter's, and a count of the threads that have left the GIL to wait for something here. When its waiter is
//! signalled and another thread has left since, it requests the GIL and finds it free.
//!
//! Spinning is a bet, with three bounds:
//!
//! - A spin lasts [`BUDGET`] at most.
//! - A thread that lost bets again only after 1, 3, 7 … 1023 waits; a bet that is won halves that pause, so bets go on
//!   only where more than half are won. Threads that have never won share one such count: when one of them has
//!   lost, the next bet is due after that many waits of all of them. So a hundred threads that wait for one event
//!   need not each find out that spinning does not pay.
//! - At most half as many threads as there are processors spin together (none on a single processor), since
//!   the granting thread needs a processor too.
//!
//! Things that don't work:
//!
//! - Watching the waiter's word alone. The thread sees its grant sooner, but the granting thread still holds
//!   the GIL, so it sleeps for the GIL instead, and the two futex calls are the GIL's.
//! - A won bet that takes only a quarter off the pause: a better rate where two thirds are won, but on an idle machine two
//!   threads that had lost some bets at first took 20,000 round trips and more to spin again.
//! - A won bet that ends the pause at once. On a machine with a busy process per processor some bets are won, each win
//!   led to another loss, and two threads in ping-pong took 9.8 µs of processor time per round trip, where the
//!   standard library's take 4.7.
//! - sched_yield(2) while spinning, for a partner in the same processor's queue. On a machine with other work
//!   each yield lasts a whole slice of another process: a tenth of the round trips was left.
//!
//! Must never: hold the GIL while spinning.
//!
//! Invariant: `SPINNING` is the number of threads that hold a [`SpinPermit`].

use super::gil;
use super::party::Party;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use unsnarl_sync::Waiter;

/// Two or three times the duration of a sleep and a wake-up, as measured with two threads in ping-pong. A
/// thread must also win its bet if the partner does not spin yet, and sleeps.
const BUDGET: Duration = Duration::from_micros(50);
/// Checks of the words between two readings of the clock.
const CHECKS: u32 = 16;
/// The maximal number of waits without a bet after lost bets.
const LONGEST_PAUSE: u32 = 1023;
/// The same for all threads together that have never won; it is lower, so that two threads that would win
/// find out soon.
const LONGEST_PAUSE_OF_NEWCOMERS: u32 = 127;
/// The number of waits before a new thread's first bet: many threads wait only once.
const FIRST_PAUSE: u32 = 2;

/// The number of times that a thread released the GIL to wait.
static LEFT: AtomicU32 = AtomicU32::new(0);
static SPINNING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static LUCK: Cell<Luck> = const { Cell::new(Luck { pause: FIRST_PAUSE, lost_pause: 0, has_won: false }) };
}

/// The shared luck of all threads that have never won. An update that races with another thread's is lost,
/// which does no harm.
static NEWCOMERS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

/// The history of a thread's bets.
#[derive(Clone, Copy)]
struct Luck {
    /// Waits until the next bet.
    pause: u32,
    /// The value of `pause` after the last bet.
    lost_pause: u32,
    has_won: bool,
}

impl Luck {
    /// The shared luck of threads that have never won, without the waits that a new thread skips.
    fn of_newcomers() -> Self {
        let [pause, lost_pause] = NEWCOMERS.each_ref().map(|number| number.load(Ordering::Relaxed));
        Self {
            pause,
            lost_pause,
            has_won: false,
        }
    }

    fn share(self) {
        NEWCOMERS[0].store(self.pause, Ordering::Relaxed);
        NEWCOMERS[1].store(self.lost_pause, Ordering::Relaxed);
    }

    /// Whether to bet on this wait. If not, the wait counts towards `pause`.
    fn bets(&mut self) -> bool {
        if self.pause > 0 {
            self.pause -= 1;
            return false;
        }
        if self.has_won {
            return true;
        }
        let mut common = Self::of_newcomers();
        let bets = common.pause == 0;
        common.pause = common.pause.saturating_sub(1);
        common.share();
        bets
    }

    fn learn(&mut self, won: bool) {
        let mut luck = if self.has_won { *self } else { Self::of_newcomers() };
        let longest = if self.has_won {
            LONGEST_PAUSE
        } else {
            LONGEST_PAUSE_OF_NEWCOMERS
        };
        luck.lost_pause = if won {
            luck.lost_pause / 2
        } else {
            (2 * luck.lost_pause + 1).min(longest)
        };
        luck.pause = luck.lost_pause;
        if !self.has_won {
            luck.share();
        }
        if self.has_won || won {
            *self = Self { has_won: true, ..luck };
        }
    }
}

/// The count of departures, read by a thread that is about to leave. Called with the GIL held: the granting
/// thread needs the GIL for the grant, so it has yet to leave.
pub(in crate::sync) fn departures() -> u32 {
    // ORDERING: pairs with the release in `wait`.
    LEFT.load(Ordering::Acquire)
}

/// Whether the calling thread's next wait may be a bet.
pub(in crate::sync) fn is_due() -> bool {
    most() > 0 && LUCK.get().pause == 0
}

/// The maximal number of threads that spin together.
fn most() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    *MOST.get_or_init(|| std::thread::available_parallelism().map_or(0, |number| number.get() / 2))
}

/// Announce to spinning threads that this one has released the GIL. Then spin for the waiter, if that is a
/// good bet. Returns whether the waiter was signalled.
pub(in crate::sync) fn wait(waiter: &Waiter<Party>, departures: u32) -> bool {
    if gil::has_gil() {
        // ORDERING: pairs with the acquires in `departures` and `watch`.
        LEFT.fetch_add(1, Ordering::Release);
    }
    let mut luck = LUCK.get();
    let Some(permit) = luck.bets().then(SpinPermit::take).flatten() else {
        LUCK.set(luck);
        return waiter.is_signalled();
    };
    luck.learn(watch(waiter, permit, departures.wrapping_add(1)));
    LUCK.set(luck);
    waiter.is_signalled()
}

/// Watch both words until the waiter is signalled and a thread has left the GIL. Returns whether that
/// happened in time. A thread that the kernel preempted meanwhile may find its waiter signalled, but long
/// after: that is a loss, or the thread would go on betting at that price. The permit is dropped when the
/// waiter is signalled: the granting thread may spin next. `left` is the count with this thread's own
/// departure; the granting thread may have left already.
fn watch(waiter: &Waiter<Party>, permit: SpinPermit, mut left: u32) -> bool {
    let needs_gil = gil::has_gil();
    let mut permit = Some(permit);
    let until = Instant::now() + BUDGET;
    loop {
        for _ in 0..CHECKS {
            // ORDERING: pairs with the release in `wait`. Read before the waiter's word: the granting thread
            // writes the word first and leaves the GIL afterwards.
            let now_left = LEFT.load(Ordering::Acquire);
            if permit.is_some() && !waiter.is_signalled() {
                left = now_left;
            } else if !needs_gil || now_left != left {
                return Instant::now() < until;
            } else {
                permit = None;
            }
            std::hint::spin_loop();
        }
        if Instant::now() >= until {
            return false;
        }
    }
}

/// Reset the count in the child of a fork: the spinning threads are the parent's.
pub(in crate::sync) fn forget() {
    SPINNING.store(0, Ordering::Relaxed);
}

/// A permit to spin; dropped when the spin ends.
struct SpinPermit;

impl SpinPermit {
    fn take() -> Option<Self> {
        let most = most();
        SPINNING
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |number| {
                (number < most).then_some(number + 1)
            })
            .ok()
            .map(|_| Self)
    }
}

impl Drop for SpinPermit {
    fn drop(&mut self) {
        SPINNING.fetch_sub(1, Ordering::Relaxed);
    }
}
