//! Waiting awake for a moment, before a thread sleeps.
//!
//! A sleep and its wake-up are two futex calls, a context switch and some ten
//! microseconds of latency. A waiter that is served sooner than that saves all of it, and
//! so does whoever serves it. What is served is the word; what the thread needs besides is
//! the GIL, which the server still has. So a spinning thread watches two words: its own,
//! and a count of the threads that have left the GIL to wait for something here. Served,
//! and somebody has left since: then it asks for the GIL, and finds it free.
//!
//! Things that don't work: watching the waiter's word alone. The waiter sees its grant
//! sooner, but the granter still has the GIL, so it sleeps on that instead, and the two
//! futex calls are the GIL's.
//!
//! Things that don't work either: sched_yield(2) while spinning, for a partner that stands in
//! the same processor's queue. On a machine with other work each yield is a whole slice of
//! somebody else's: a tenth of the round trips was left.
//!
//! It is a bet, so it is bounded threefold: a spin lasts [`BUDGET`] at most; a thread that
//! lost bets again only after 1, 3, 7 … 1023 waits; and no more threads than half the
//! processors spin at once (none where there is only one), since whoever is to serve
//! needs a processor too. Threads that have never won share their luck: when one of them has lost, the next of
//! them bets only after so many waits of all of them. A hundred threads that wait for one event do not have to
//! find out one by one that they had better sleep.
//!
//! Invariant: a spinning thread does not hold the GIL.

use super::gil;
use super::party::Party;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use unsnarl_sync::Waiter;

/// Two or three times what a sleep and a wake-up take, as two threads in ping-pong show it:
/// a thread that bets must win against a partner that does not yet, and still sleeps.
const BUDGET: Duration = Duration::from_micros(50);
/// Looks between two looks at the clock.
const LOOKS: u32 = 16;
/// Waits that a thread sleeps through after many lost bets.
const LONGEST_PAUSE: u32 = 1023;
/// The same for all threads together that have never won: two of them that would win find out soon.
const LONGEST_PAUSE_OF_NEWCOMERS: u32 = 127;
/// Waits that a new thread sleeps through before its first bet: many wait but once.
const FIRST_PAUSE: u32 = 2;

/// Threads that gave up the GIL to wait, counted.
static LEFT: AtomicU32 = AtomicU32::new(0);
static SPINNING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static LUCK: Cell<Luck> = const { Cell::new(Luck { pause: FIRST_PAUSE, lost_pause: 0, has_won: false }) };
}

/// The luck of all threads that have never won. A change that another thread's overtakes is lost, and does no harm.
static NEWCOMERS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

/// How a thread's bets went.
#[derive(Clone, Copy)]
struct Luck {
    /// Waits to sleep through before the next bet.
    pause: u32,
    /// What `pause` was after the last one, which was lost; 0 if it was won.
    lost_pause: u32,
    has_won: bool,
}

impl Luck {
    /// The luck of a thread that has never won, but for the waits that a new one sleeps through.
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

    /// Whether this wait is one to bet on. It counts as slept through if not.
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
        luck.lost_pause = if won { 0 } else { (2 * luck.lost_pause + 1).min(longest) };
        luck.pause = luck.lost_pause;
        if !self.has_won {
            luck.share();
        }
        if self.has_won || won {
            *self = Self { has_won: true, ..luck };
        }
    }
}

/// How many have left, as seen by a thread that is about to. With the GIL held: who serves
/// it needs the GIL for that, and so has yet to leave.
pub(in crate::sync) fn departures() -> u32 {
    LEFT.load(Ordering::Acquire)
}

/// Tell the threads that spin that this one has just given up the GIL. Then spin for the
/// waiter, if that is a good bet; true if something happened to it.
pub(in crate::sync) fn wait(waiter: &Waiter<Party>, departures: u32) -> bool {
    if gil::has_gil() {
        LEFT.fetch_add(1, Ordering::Release);
    }
    let mut luck = LUCK.get();
    let Some(place) = luck.bets().then(Place::take).flatten() else {
        LUCK.set(luck);
        return waiter.is_signalled();
    };
    luck.learn(watch(waiter, place, departures.wrapping_add(1)));
    LUCK.set(luck);
    waiter.is_signalled()
}

/// Watch both words until the waiter was served and the GIL was left; true if that was in
/// time. A thread that the kernel has put aside meanwhile may find itself served, but long
/// after: that is a loss, or it would go on betting at that price. The place is
/// given up with the first: the one who served may need it next. `left` is the count with
/// this thread's own departure: the one who serves may have left by now already.
fn watch(waiter: &Waiter<Party>, place: Place, mut left: u32) -> bool {
    let needs_gil = gil::has_gil();
    let mut place = Some(place);
    let until = Instant::now() + BUDGET;
    loop {
        for _ in 0..LOOKS {
            // Read before the waiter's word: who serves it leaves the GIL afterwards.
            let now_left = LEFT.load(Ordering::Acquire);
            if place.is_some() && !waiter.is_signalled() {
                left = now_left;
            } else if !needs_gil || now_left != left {
                return Instant::now() < until;
            } else {
                place = None;
            }
            std::hint::spin_loop();
        }
        if Instant::now() >= until {
            return false;
        }
    }
}

/// For the child of a fork: the threads that spun are the parent's.
pub(in crate::sync) fn forget() {
    SPINNING.store(0, Ordering::Relaxed);
}

/// Leave to spin.
struct Place;

impl Place {
    fn take() -> Option<Self> {
        static MOST: OnceLock<usize> = OnceLock::new();
        let most = *MOST.get_or_init(|| std::thread::available_parallelism().map_or(0, |number| number.get() / 2));
        SPINNING
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |number| {
                (number < most).then_some(number + 1)
            })
            .ok()
            .map(|_| Self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        SPINNING.fetch_sub(1, Ordering::Relaxed);
    }
}
