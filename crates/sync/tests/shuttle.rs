//! Queues and barriers with several parties that time out and are cancelled, in random interleavings: there
//! are too many for loom, so shuttle draws some.
//!
//!     RUSTFLAGS="--cfg shuttle" cargo test -p unsnarl-sync --test shuttle --release
//!
//! Invariant: a test body sleeps only through [`Sleeper`], so shuttle reports a lost wake-up as a deadlock.
#![cfg(shuttle)]
#![allow(missing_docs, unreachable_pub)]

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;
use unsnarl_sync::{
    ASLEEP, Arc, Arrival, AtomicU32, Channel, GRANTED, Gate, Give, Ordering, Permits, REFUSED, Rendezvous, Store, Take,
    Unparker, Waiter,
};

const SCHEDULES: usize = 3000;

/// A thread (notified to try) or a task (granted what it waits for), as `is_task` says.
struct Sleeper {
    is_task: bool,
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Unparker for Sleeper {
    fn wants_grant(&self) -> bool {
        self.is_task
    }
    fn sleeps_on_word(&self) -> bool {
        !self.is_task
    }
    fn is_alive(&self) -> bool {
        true
    }
    fn wake(&self, _word: &AtomicU32) {
        *self.woken.lock().expect("no panic") = true;
        self.changed.notify_one();
    }
}

type Enqueued = Arc<Waiter<Sleeper>>;

fn waiter() -> Enqueued {
    waiter_that(thread_rng().gen_bool(0.5))
}

fn waiter_that(is_task: bool) -> Enqueued {
    Waiter::new(Sleeper {
        is_task,
        woken: Mutex::new(false),
        changed: Condvar::new(),
    })
}

/// Sleep until woken. False: the time was up (drawn by lot).
fn sleep(waiter: &Enqueued, may_time_out: bool) -> bool {
    if may_time_out && thread_rng().gen_bool(0.3) {
        thread::yield_now();
        return false;
    }
    if !waiter.fall_asleep() && !waiter.party.is_task {
        return true;
    }
    if !waiter.party.is_task && waiter.state() != ASLEEP {
        // A futex whose word has changed already does not sleep, and needs no wake-up.
        return true;
    }
    let mut woken = waiter.party.woken.lock().expect("no panic");
    while !*woken {
        woken = waiter.party.changed.wait(woken).expect("no panic");
    }
    *woken = false;
    true
}

#[derive(Default)]
struct Fifo(std::collections::VecDeque<u32>);

impl Store for Fifo {
    type Item = u32;
    fn len(&self) -> usize {
        self.0.len()
    }
    fn push(&mut self, item: u32) {
        self.0.push_back(item);
    }
    fn pop(&mut self) -> Option<u32> {
        self.0.pop_front()
    }
}

type Pipe = Channel<Fifo, Sleeper>;

/// Give, or give up. Returns whether the item was given.
fn give(pipe: &Pipe, item: u32, may_time_out: bool) -> bool {
    let waiter = waiter();
    loop {
        match pipe.give(item, Some(&waiter)) {
            Give::Given => return true,
            Give::Closed(_) => return false,
            Give::Full(_) => {}
            Give::Elsewhere(_) => unreachable!("the items are here"),
        }
        let woken = sleep(&waiter, may_time_out);
        waiter.relay();
        if !woken {
            pipe.cancel(&waiter);
            return false;
        }
    }
}

fn take(pipe: &Pipe, may_time_out: bool) -> Option<u32> {
    let waiter = waiter();
    loop {
        match pipe.take(Some(&waiter)) {
            Take::Taken(item) => return Some(item),
            Take::Closed => return None,
            Take::Empty => {}
            Take::Elsewhere => unreachable!("the items are here"),
        }
        let woken = sleep(&waiter, may_time_out);
        waiter.relay();
        if !woken {
            pipe.cancel(&waiter);
            return None;
        }
    }
}

#[test]
fn a_queue_loses_and_doubles_nothing_when_parties_give_up() {
    shuttle::check_random(
        || {
            let pipe = Arc::new(Pipe::new(Fifo::default(), 2, thread_rng().gen_bool(0.5)));
            // ORDERING: of these two counts, because shuttle models no other than SeqCst.
            let (given, taken) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
            let (mut givers, mut takers) = (Vec::new(), Vec::new());
            for _ in 0..2 {
                let (pipe, given) = (Arc::clone(&pipe), Arc::clone(&given));
                givers.push(thread::spawn(move || {
                    for item in 0..4 {
                        given.fetch_add(u32::from(give(&pipe, item, true)), Ordering::SeqCst);
                    }
                }));
            }
            for _ in 0..2 {
                let (pipe, taken) = (Arc::clone(&pipe), Arc::clone(&taken));
                takers.push(thread::spawn(move || {
                    for _ in 0..3 {
                        taken.fetch_add(u32::from(take(&pipe, true).is_some()), Ordering::SeqCst);
                    }
                }));
            }
            // This taker stays to the end and takes what the others leave.
            let rest = {
                let pipe = Arc::clone(&pipe);
                thread::spawn(move || std::iter::from_fn(|| take(&pipe, false)).count())
            };
            givers.into_iter().for_each(|thread| thread.join().expect("no panic"));
            pipe.close();
            takers.into_iter().for_each(|thread| thread.join().expect("no panic"));
            let rest = rest.join().expect("no panic");
            assert_eq!(
                given.load(Ordering::SeqCst) as usize,
                taken.load(Ordering::SeqCst) as usize + rest
            );
            assert_eq!(pipe.waiting(), (0, 0, 0));
        },
        SCHEDULES,
    );
}

#[test]
fn closing_a_queue_releases_every_waiter() {
    shuttle::check_random(
        || {
            let pipe = Arc::new(Pipe::new(Fifo::default(), 1, thread_rng().gen_bool(0.5)));
            let threads: Vec<_> = (0..4)
                .map(|number| {
                    let pipe = Arc::clone(&pipe);
                    thread::spawn(move || {
                        if number % 2 == 0 {
                            while give(&pipe, number, false) {}
                        } else {
                            while take(&pipe, false).is_some() {}
                        }
                    })
                })
                .collect();
            thread::yield_now();
            pipe.close();
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            assert_eq!(pipe.waiting(), (0, 0, 0));
        },
        SCHEDULES,
    );
}

/// Meet the others, or break the barrier. Returns whether all met.
fn meet(barrier: &Rendezvous<Sleeper>, may_time_out: bool) -> bool {
    let waiter = waiter();
    match barrier.arrive(|| Arc::clone(&waiter)) {
        Arrival::Broken => return false,
        Arrival::Last(_, departing) => {
            departing.release(1);
            return true;
        }
        Arrival::Wait(_) => {}
    }
    loop {
        let woken = sleep(&waiter, may_time_out);
        if matches!(waiter.state(), GRANTED | REFUSED) {
            waiter.relay();
            return waiter.state() == GRANTED;
        }
        if !woken && !barrier.cancel(&waiter, 1) {
            waiter.relay();
            return false;
        }
    }
}

#[test]
fn a_barrier_lets_all_of_a_cycle_go_or_breaks_for_all() {
    shuttle::check_random(
        || {
            let barrier = Arc::new(Rendezvous::new(3));
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let barrier = Arc::clone(&barrier);
                    thread::spawn(move || (0..3).take_while(|_| meet(&barrier, true)).count())
                })
                .collect();
            let met: Vec<_> = threads
                .into_iter()
                .map(|thread| thread.join().expect("no panic"))
                .collect();
            assert!(met.iter().all(|count| *count == met[0]), "{met:?}");
            assert_eq!(met[0] < 3, barrier.is_broken());
            assert_eq!(barrier.arrived(), 0);
        },
        SCHEDULES,
    );
}

/// Meet the others; in between leave and arrive again, as often as the lot falls.
fn meet_in_the_end(barrier: &Rendezvous<Sleeper>) {
    loop {
        let waiter = waiter();
        match barrier.arrive(|| Arc::clone(&waiter)) {
            Arrival::Broken => panic!("broken by one that left"),
            Arrival::Last(_, departing) => return departing.release(1),
            Arrival::Wait(_) => {}
        }
        let has_left = !sleep(&waiter, true) && !barrier.leave(&waiter);
        while !has_left && waiter.state() != GRANTED {
            sleep(&waiter, false);
        }
        waiter.relay();
        if !has_left {
            return;
        }
    }
}

#[test]
fn a_barrier_waits_for_those_who_left_and_come_back() {
    shuttle::check_random(
        || {
            let barrier = Arc::new(Rendezvous::new(3));
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let barrier = Arc::clone(&barrier);
                    thread::spawn(move || (0..2).for_each(|_| meet_in_the_end(&barrier)))
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            assert!(!barrier.is_broken());
            assert_eq!(barrier.arrived(), 0);
        },
        SCHEDULES,
    );
}

#[test]
fn permits_are_conserved_when_parties_give_up() {
    shuttle::check_random(
        || {
            let permits = Arc::new(Permits::new(1));
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let permits = Arc::clone(&permits);
                    thread::spawn(move || {
                        for _ in 0..3 {
                            let waiter = waiter();
                            let mut has = permits.try_acquire() || permits.begin(&waiter);
                            while !has {
                                has = if sleep(&waiter, true) {
                                    permits.resume(&waiter)
                                } else {
                                    match permits.cancel(&waiter) {
                                        true => true,
                                        false => break,
                                    }
                                };
                            }
                            if has {
                                permits.release(1, 1).expect("held");
                            }
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            assert_eq!((permits.free(), permits.waiting()), (1, 0));
        },
        SCHEDULES,
    );
}

/// Parties at a gate that opens with `fan_out` chains of wake-ups: each party passes, or gives up.
fn cascade(parties: usize, fan_out: usize, waiter: fn() -> Enqueued, may_time_out: bool) {
    shuttle::check_random(
        move || {
            let gate = Arc::new(Gate::new(false));
            let threads: Vec<_> = (0..parties)
                .map(|_| {
                    let gate = Arc::clone(&gate);
                    thread::spawn(move || {
                        let waiter = waiter();
                        if gate.begin(&waiter) {
                            return;
                        }
                        while waiter.state() != GRANTED {
                            if !sleep(&waiter, may_time_out) {
                                gate.cancel(&waiter);
                                break;
                            }
                        }
                        waiter.relay();
                    })
                })
                .collect();
            gate.open(fan_out);
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            assert_eq!(gate.waiting(), 0);
        },
        SCHEDULES,
    );
}

#[test]
fn a_cascade_reaches_every_waiter() {
    cascade(4, 1, waiter, true);
}

#[test]
fn a_cascade_of_two_chains_reaches_every_waiter() {
    cascade(5, 2, waiter, true);
    cascade(4, 2, || waiter_that(false), false);
}

#[test]
fn a_cascade_outlives_those_that_leave_before_it_is_whole() {
    cascade(3, 1, || waiter_that(false), false);
}
