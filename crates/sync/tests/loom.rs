//! Interleavings of two parties on each core, explored exhaustively by loom.
//!
//!     RUSTFLAGS="--cfg loom" cargo test -p unsnarl-sync --test loom --release
//!
//! Invariant: a test body sleeps only through [`Sleeper`], so loom reports a lost wake-up as a deadlock.
#![cfg(loom)]
#![allow(missing_docs, unreachable_pub)]

mod tally;

use loom::sync::Notify;
use loom::thread;
use tally::Tally;
use unsnarl_sync::{
    Arc, AtomicU32, Channel, GRANTED, Gate, Give, Notifier, Permits, ReadWrite, Side, Store, Take, Unparker, Waiter,
};

struct Sleeper(Notify);

impl Unparker for Sleeper {
    fn wants_grant(&self) -> bool {
        false
    }
    fn sleeps_on_word(&self) -> bool {
        true
    }
    fn is_alive(&self) -> bool {
        true
    }
    fn wake(&self, _word: &AtomicU32) {
        self.0.notify();
    }
}

fn sleeper() -> Arc<Waiter<Sleeper>> {
    Waiter::new(Sleeper(Notify::new()))
}

fn sleep(waiter: &Waiter<Sleeper>) {
    if waiter.fall_asleep() {
        waiter.party.0.wait();
    }
}

/// loom's notifications may be spurious, as a futex's wake-ups may be.
fn sleep_until_granted(waiter: &Waiter<Sleeper>) {
    while waiter.state() != GRANTED {
        sleep(waiter);
    }
}

fn acquire(permits: &Permits<Sleeper>) {
    if permits.try_acquire() {
        return;
    }
    let waiter = sleeper();
    if permits.begin(&waiter) {
        return;
    }
    loop {
        sleep(&waiter);
        if permits.resume(&waiter) {
            return;
        }
    }
}

#[test]
fn a_permit_excludes_and_is_never_lost() {
    loom::model(|| {
        let permits = Arc::new(Permits::new(1));
        let other = Arc::clone(&permits);
        let thread = thread::spawn(move || {
            acquire(&other);
            assert_eq!(other.free(), 0);
            other.release(1, 1).expect("held");
        });
        acquire(&permits);
        assert_eq!(permits.free(), 0);
        permits.release(1, 1).expect("held");
        thread.join().expect("no panic");
        assert_eq!((permits.free(), permits.waiting()), (1, 0));
    });
}

#[test]
fn a_waiter_that_gives_up_takes_no_permit_with_it() {
    loom::model(|| {
        let permits = Arc::new(Permits::new(1));
        assert!(permits.try_acquire());
        let other = Arc::clone(&permits);
        let thread = thread::spawn(move || {
            let waiter = sleeper();
            if other.begin(&waiter) || other.cancel(&waiter) {
                other.release(1, 1).expect("held");
            }
        });
        permits.release(1, 1).expect("held");
        thread.join().expect("no panic");
        assert_eq!((permits.free(), permits.waiting()), (1, 0));
    });
}

#[test]
fn a_waiter_that_arrives_during_a_restart_is_not_forgotten() {
    loom::model(|| {
        let permits = Arc::new(Permits::new(0));
        let other = Arc::clone(&permits);
        let thread = thread::spawn(move || acquire(&other));
        permits.restart(1);
        thread.join().expect("no panic");
        assert_eq!((permits.free(), permits.waiting()), (0, 0));
    });
}

/// Wait for the gate, in a thread.
fn pass(gate: &Gate<Sleeper>) {
    let waiter = sleeper();
    if !gate.begin(&waiter) {
        sleep_until_granted(&waiter);
        waiter.relay();
    }
}

#[test]
fn an_open_gate_keeps_no_party() {
    loom::model(|| {
        let gate = Arc::new(Gate::new(false));
        let other = Arc::clone(&gate);
        let thread = thread::spawn(move || other.open(1));
        pass(&gate);
        thread.join().expect("no panic");
        assert_eq!(gate.waiting(), 0);
    });
}

/// A party that passed, closed the gate and waits again is released only by the next opening.
#[test]
fn one_opening_lets_a_party_through_once() {
    loom::model(|| {
        let gate = Arc::new(Gate::new(false));
        let other = Arc::clone(&gate);
        let thread = thread::spawn(move || other.open(1));
        pass(&gate);
        gate.close();
        let again = sleeper();
        assert!(!gate.begin(&again));
        thread.join().expect("no panic");
        assert_ne!(again.state(), GRANTED);
        assert!(!gate.cancel(&again));
    });
}

/// Two threads release a lock that was acquired once; one of them acquires it again in between.
#[test]
fn a_lock_is_never_free_twice() {
    loom::model(|| {
        let permits: Arc<Permits<Sleeper>> = Arc::new(Permits::new(1));
        assert!(permits.try_acquire());
        let other = Arc::clone(&permits);
        let thread = thread::spawn(move || {
            let _ = other.release(1, 1);
        });
        let _ = permits.release(1, 1);
        if permits.try_acquire() {
            let _ = permits.release(1, 1);
        }
        thread.join().expect("no panic");
        assert_eq!(permits.free(), 1);
    });
}

#[test]
fn a_notified_waiter_that_gives_up_takes_no_lock_with_it() {
    loom::model(|| {
        let permits = Arc::new(Permits::new(1));
        let notifier = Arc::new(Notifier::default());
        let waiter = sleeper();
        notifier.begin(&waiter);
        assert!(permits.try_acquire());
        let (held, other) = (Arc::clone(&permits), Arc::clone(&notifier));
        let thread = thread::spawn(move || {
            other.move_to(&held, 1);
            held.release(1, 1).expect("held");
        });
        if !notifier.cancel(&waiter) && permits.cancel(&waiter) {
            permits.release(1, 1).expect("granted");
        }
        thread.join().expect("no panic");
        assert_eq!((notifier.waiting(), permits.free(), permits.waiting()), (0, 1, 0));
    });
}

struct Cell(Option<u32>);

impl Store for Cell {
    type Item = u32;
    fn len(&self) -> usize {
        usize::from(self.0.is_some())
    }
    fn push(&mut self, item: u32) {
        self.0 = Some(item);
    }
    fn pop(&mut self) -> Option<u32> {
        self.0.take()
    }
}

#[test]
fn a_channel_delivers_in_order() {
    loom::model(|| {
        let channel = Arc::new(Channel::<Cell, Sleeper>::new(Cell(None), 1, true));
        let other = Arc::clone(&channel);
        let thread = thread::spawn(move || {
            for item in [1, 2] {
                let waiter = sleeper();
                while !matches!(other.give(item, Some(&waiter)), Give::Given) {
                    sleep(&waiter);
                }
            }
        });
        for item in [1, 2] {
            let waiter = sleeper();
            loop {
                match channel.take(Some(&waiter)) {
                    Take::Taken(taken) => break assert_eq!(taken, item),
                    _ => sleep(&waiter),
                }
            }
        }
        thread.join().expect("no panic");
        assert_eq!(channel.waiting(), (0, 0, 0));
    });
}

#[test]
fn a_quiet_count_passes_no_waiter_by() {
    loom::model(|| {
        let channel = Arc::new(Channel::<Tally, Sleeper>::new(Tally(0), 1, true));
        let other = Arc::clone(&channel);
        let thread = thread::spawn(move || {
            for _ in 0..2 {
                let waiter = sleeper();
                if other.count_quietly(()).is_ok() {
                    continue;
                }
                while !matches!(other.give((), Some(&waiter)), Give::Given) {
                    sleep(&waiter);
                }
            }
        });
        for _ in 0..2 {
            let waiter = sleeper();
            if channel.uncount_quietly().is_some() {
                continue;
            }
            while !matches!(channel.take(Some(&waiter)), Take::Taken(())) {
                sleep(&waiter);
            }
        }
        thread.join().expect("no panic");
        assert_eq!((channel.len(), channel.waiting()), (0, (0, 0, 0)));
    });
}

#[test]
fn a_taker_that_gives_up_passes_its_notification_on() {
    loom::model(|| {
        let channel = Arc::new(Channel::<Cell, Sleeper>::new(Cell(None), 1, true));
        let leaver = sleeper();
        assert!(matches!(channel.take(Some(&leaver)), Take::Empty));
        let other = Arc::clone(&channel);
        let thread = thread::spawn(move || {
            let waiter = sleeper();
            while !matches!(other.take(Some(&waiter)), Take::Taken(_)) {
                sleep(&waiter);
            }
        });
        assert!(matches!(channel.give(1, None), Give::Given));
        channel.cancel(&leaver);
        thread.join().expect("no panic");
    });
}

#[test]
fn a_writer_is_alone() {
    loom::model(|| {
        let lock = Arc::new(ReadWrite::<Sleeper>::default());
        let other = Arc::clone(&lock);
        let thread = thread::spawn(move || {
            let waiter = sleeper();
            if !other.begin(Side::Write, &waiter) {
                sleep_until_granted(&waiter);
            }
            assert_eq!(other.status().0, 0);
            other.leave(Side::Write, 0);
        });
        let waiter = sleeper();
        if !lock.begin(Side::Read, &waiter) {
            sleep_until_granted(&waiter);
        }
        assert!(!lock.status().1);
        lock.leave(Side::Read, 0);
        thread.join().expect("no panic");
        assert_eq!(lock.status(), (0, false, 0));
    });
}
