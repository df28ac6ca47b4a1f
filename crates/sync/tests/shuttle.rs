//! Queues and barriers with several parties that time out and are cancelled, in many random
//! interleavings: too many for loom, so shuttle draws some.
//!
//!     RUSTFLAGS="--cfg shuttle" cargo test -p unsnarl-sync --test shuttle --release
//!
//! Invariant: a body sleeps only through [`Sleeper`]; a lost wake-up is a deadlock that
//! shuttle reports.
#![cfg(shuttle)]
#![allow(missing_docs, unreachable_pub)]

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;
use unsnarl_sync::{
    ASLEEP, Arc, Arrival, AtomicU32, Channel, GRANTED, Gate, Give, Ordering, Permits, Port, REFUSED, Rendezvous, Store,
    Take, Waiter,
};

const SCHEDULES: usize = 3000;

/// A thread (told to try) or a task (handed what it waits for), as `is_task` says.
struct Sleeper {
    is_task: bool,
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Port for Sleeper {
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

type Party = Arc<Waiter<Sleeper>>;

fn party() -> Party {
    party_that(thread_rng().gen_bool(0.5))
}

fn party_that(is_task: bool) -> Party {
    Waiter::new(Sleeper {
        is_task,
        woken: Mutex::new(false),
        changed: Condvar::new(),
    })
}

/// Sleep until woken. False: it did not, the time was up (drawn by lot).
fn sleep(party: &Party, may_time_out: bool) -> bool {
    if may_time_out && thread_rng().gen_bool(0.3) {
        thread::yield_now();
        return false;
    }
    if !party.fall_asleep() && !party.port.is_task {
        return true;
    }
    if !party.port.is_task && party.state() != ASLEEP {
        // A futex whose word has changed already does not sleep, and nobody wakes it first.
        return true;
    }
    let mut woken = party.port.woken.lock().expect("no panic");
    while !*woken {
        woken = party.port.changed.wait(woken).expect("no panic");
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

/// Give, or give up: whether it was given.
fn give(pipe: &Pipe, item: u32, may_time_out: bool) -> bool {
    let party = party();
    loop {
        match pipe.give(item, Some(&party)) {
            Give::Given => return true,
            Give::Closed(_) => return false,
            Give::Full(_) => {}
            Give::Elsewhere(_) => unreachable!("the items are here"),
        }
        let woken = sleep(&party, may_time_out);
        party.relay();
        if !woken {
            pipe.cancel(&party);
            return false;
        }
    }
}

fn take(pipe: &Pipe, may_time_out: bool) -> Option<u32> {
    let party = party();
    loop {
        match pipe.take(Some(&party)) {
            Take::Taken(item) => return Some(item),
            Take::Closed => return None,
            Take::Empty => {}
            Take::Elsewhere => unreachable!("the items are here"),
        }
        let woken = sleep(&party, may_time_out);
        party.relay();
        if !woken {
            pipe.cancel(&party);
            return None;
        }
    }
}

#[test]
fn a_queue_loses_and_doubles_nothing_when_parties_give_up() {
    shuttle::check_random(
        || {
            let pipe = Arc::new(Pipe::new(Fifo::default(), 2, thread_rng().gen_bool(0.5)));
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
            // These stay to the end: whatever the others leave is for them.
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
fn closing_a_queue_lets_everybody_go() {
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

/// Meet, or break the barrier: whether the others came.
fn meet(barrier: &Rendezvous<Sleeper>, may_time_out: bool) -> bool {
    let party = party();
    match barrier.arrive(|| Arc::clone(&party)) {
        Arrival::Broken => return false,
        Arrival::Last(_, departing) => {
            departing.release(1);
            return true;
        }
        Arrival::Wait(_) => {}
    }
    loop {
        let woken = sleep(&party, may_time_out);
        if matches!(party.state(), GRANTED | REFUSED) {
            party.relay();
            return party.state() == GRANTED;
        }
        if !woken && !barrier.cancel(&party, 1) {
            party.relay();
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

/// Meet the others; leave on the way and come back, as often as the lot falls.
fn meet_in_the_end(barrier: &Rendezvous<Sleeper>) {
    loop {
        let party = party();
        match barrier.arrive(|| Arc::clone(&party)) {
            Arrival::Broken => panic!("broken by one that left"),
            Arrival::Last(_, departing) => return departing.release(1),
            Arrival::Wait(_) => {}
        }
        let has_left = !sleep(&party, true) && !barrier.leave(&party);
        while !has_left && party.state() != GRANTED {
            sleep(&party, false);
        }
        party.relay();
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
                            let party = party();
                            let mut has = permits.try_acquire() || permits.begin(&party);
                            while !has {
                                has = if sleep(&party, true) {
                                    permits.resume(&party)
                                } else {
                                    match permits.cancel(&party) {
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

/// Parties at a gate that opens with a cascade, `fan_out` of them on their way at once: each
/// of them goes through, or gives up.
fn cascade(parties: usize, fan_out: usize, party: fn() -> Party, may_time_out: bool) {
    shuttle::check_random(
        move || {
            let gate = Arc::new(Gate::new(false));
            let threads: Vec<_> = (0..parties)
                .map(|_| {
                    let gate = Arc::clone(&gate);
                    thread::spawn(move || {
                        let party = party();
                        if gate.begin(&party) {
                            return;
                        }
                        while party.state() != GRANTED {
                            if !sleep(&party, may_time_out) {
                                gate.cancel(&party);
                                break;
                            }
                        }
                        party.relay();
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
fn a_cascade_reaches_everybody() {
    cascade(4, 1, party, true);
}

#[test]
fn a_cascade_of_two_chains_reaches_everybody() {
    cascade(5, 2, party, true);
    cascade(4, 2, || party_that(false), false);
}

#[test]
fn a_cascade_outlives_those_that_leave_before_it_is_whole() {
    cascade(3, 1, || party_that(false), false);
}
