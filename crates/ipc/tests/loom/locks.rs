//! Locks, permits, readers and writers, events, bells.

use crate::kernel::{Futex, Modelled};
use loom::sync::Arc;
use loom::thread;
use unsnarl_ipc::{
    ALL, Account, AtomicU32, Attempt, Bell, EventWords, Ordering, RwWords, SemaphoreWords, Step, Threads,
    lock_or_sleep, unlock,
};

fn acquire(word: &AtomicU32, kernel: &Modelled) -> Attempt {
    let mut has_slept = false;
    loop {
        match lock_or_sleep(word, has_slept, kernel) {
            Step::Done(attempt) => return attempt,
            Step::Sleep(word, expected) => kernel.sleep(word, expected),
        }
        has_slept = true;
    }
}

#[test]
fn a_released_lock_is_had_by_all() {
    loom::model(|| {
        let (word, futex) = (Arc::new(AtomicU32::new(0)), Futex::new());
        let other = {
            let (word, futex) = (word.clone(), futex.clone());
            thread::spawn(move || {
                let kernel = Modelled { tid: 2, futex };
                assert_eq!(acquire(&word, &kernel), Attempt::Taken);
                unlock(&word, 1, &kernel);
            })
        };
        let kernel = Modelled { tid: 1, futex };
        assert_eq!(acquire(&word, &kernel), Attempt::Taken);
        unlock(&word, 1, &kernel);
        other.join().unwrap();
    });
}

/// The victim is killed before it took the lock, with the lock, or between releasing it and waking.
#[test]
fn a_killed_holder_leaves_the_lock_to_be_had() {
    for instant in 0..3 {
        loom::model(move || {
            let (word, futex) = (Arc::new(AtomicU32::new(0)), Futex::new());
            let victim = {
                let (word, futex) = (word.clone(), futex.clone());
                thread::spawn(move || {
                    let kernel = Modelled { tid: 2, futex };
                    if instant > 0 {
                        acquire(&word, &kernel);
                    }
                    if instant > 1 {
                        // ORDERING: pairs with the acquire in `try_lock`.
                        word.swap(0, Ordering::Release);
                    }
                    kernel.die(&word, true);
                })
            };
            let kernel = Modelled { tid: 1, futex };
            let attempt = acquire(&word, &kernel);
            assert!(attempt == Attempt::Taken || instant == 1);
            // The victim may be the later thread.
            unlock(&word, 1, &kernel);
            victim.join().unwrap();
        });
    }
}

/// The lock is released to a waiter that is killed as it wakes; another waiter sleeps behind it.
#[test]
fn a_killed_waiter_passes_its_wake_up_on() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let (word, futex) = (Arc::new(AtomicU32::new(0)), Futex::new());
        let holder = Modelled {
            tid: 1,
            futex: futex.clone(),
        };
        assert_eq!(acquire(&word, &holder), Attempt::Taken);
        let victim = {
            let (word, futex) = (word.clone(), futex.clone());
            thread::spawn(move || {
                let kernel = Modelled { tid: 2, futex };
                if let Step::Sleep(word, expected) = lock_or_sleep(&word, false, &kernel) {
                    kernel.sleep(word, expected);
                }
                kernel.die(&word, true);
            })
        };
        let other = thread::spawn({
            let word = word.clone();
            move || {
                let kernel = Modelled { tid: 3, futex };
                acquire(&word, &kernel);
                unlock(&word, 1, &kernel);
            }
        });
        unlock(&word, 1, &holder);
        victim.join().unwrap();
        other.join().unwrap();
    });
}

#[test]
fn a_permit_that_comes_back_wakes_who_waits() {
    loom::model(|| {
        let shared = Arc::new((SemaphoreWords::default(), [Account::default(), Account::default()]));
        let futex = Futex::new();
        let other = {
            let (shared, futex) = (shared.clone(), futex.clone());
            thread::spawn(move || {
                let kernel = Modelled { tid: 2, futex };
                let books = shared.0.books(&shared.1, 0, Threads::Serialised);
                assert!(shared.0.release(&books, books.open(&kernel), 1, 9, &kernel));
            })
        };
        let kernel = Modelled { tid: 1, futex };
        let books = shared.0.books(&shared.1, 0, Threads::Serialised);
        let account = books.open(&kernel);
        let mut has_slept = false;
        while let Step::Sleep(word, expected) = shared.0.acquire(&books, account, has_slept, &kernel) {
            kernel.sleep(word, expected);
            has_slept = true;
        }
        other.join().unwrap();
        assert_eq!(shared.0.ledger.value(), 0);
    });
}

/// Two permits are given back one after the other: the second wakes no thread, and is still taken.
#[test]
fn every_permit_is_had() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        type Shared = (SemaphoreWords, [Account; 3]);
        let shared: Arc<Shared> = Arc::new(Default::default());
        let futex = Futex::new();
        let waiters = [2, 3].map(|tid| {
            let (shared, futex) = (shared.clone(), futex.clone());
            thread::spawn(move || take_a_permit(&shared.0, &shared.1, &Modelled { tid, futex }))
        });
        let kernel = Modelled { tid: 1, futex };
        let books = shared.0.books(&shared.1, 0, Threads::Serialised);
        for _ in 0..2 {
            assert!(shared.0.release(&books, None, 1, 9, &kernel));
        }
        for waiter in waiters {
            waiter.join().unwrap();
        }
        assert_eq!(shared.0.ledger.value(), 0);
    });
}

fn take_a_permit(words: &SemaphoreWords, accounts: &[Account], kernel: &Modelled) {
    let books = words.books(accounts, 0, Threads::Serialised);
    let mut has_slept = false;
    while let Step::Sleep(word, expected) = words.acquire(&books, None, has_slept, kernel) {
        kernel.sleep(word, expected);
        has_slept = true;
    }
}

/// Two records, one of which goes where the first one was, through a ring that starts over.
#[test]
fn a_writer_is_alone() {
    loom::model(|| {
        type Shared = (AtomicU32, RwWords, [Account; 2], loom::cell::UnsafeCell<u32>);
        let shared: Arc<Shared> = Arc::new(Default::default());
        let futex = Futex::new();
        let other = {
            let (shared, futex) = (shared.clone(), futex.clone());
            thread::spawn(move || {
                let kernel = Modelled { tid: 2, futex };
                let books = shared.1.books(&shared.2, Threads::Serialised);
                let account = books.open(&kernel);
                while let Step::Sleep(word, expected) = shared.1.read(&shared.0, &books, account, false, &kernel) {
                    kernel.sleep(word, expected);
                }
                shared.3.with(|_| ());
                assert!(shared.1.leave(&books, account, &kernel));
            })
        };
        let kernel = Modelled { tid: 1, futex };
        let books = shared.1.books(&shared.2, Threads::Serialised);
        assert!(acquire(&shared.0, &kernel).is_taken());
        while let Step::Sleep(word, expected) = shared.1.drain(&books, &kernel) {
            kernel.sleep(word, expected);
        }
        shared.3.with_mut(|_| ());
        unlock(&shared.0, ALL, &kernel);
        other.join().unwrap();
    });
}

#[test]
fn a_dead_writer_keeps_no_reader_asleep() {
    // Three threads: all their interleavings would take hours.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        type Shared = (AtomicU32, RwWords, [Account; 3]);
        let shared: Arc<Shared> = Arc::new(Default::default());
        let futex = Futex::new();
        let writer = Modelled {
            tid: 1,
            futex: futex.clone(),
        };
        assert!(acquire(&shared.0, &writer).is_taken());
        assert!(matches!(
            shared.1.drain(&shared.1.books(&shared.2, Threads::Serialised), &writer),
            Step::Done(())
        ));
        let readers = [2, 3].map(|tid| {
            let (shared, futex) = (shared.clone(), futex.clone());
            thread::spawn(move || {
                let kernel = Modelled { tid, futex };
                let books = shared.1.books(&shared.2, Threads::Serialised);
                let mut has_slept = false;
                loop {
                    match shared.1.read(&shared.0, &books, None, has_slept, &kernel) {
                        Step::Sleep(word, expected) => kernel.sleep(word, expected),
                        Step::Done(entered) => break assert!(!entered),
                    }
                    has_slept = true;
                }
            })
        });
        writer.die(&shared.0, false);
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn an_event_releases_who_waits() {
    loom::model(|| {
        let (event, futex) = (Arc::new(EventWords::default()), Futex::new());
        let other = {
            let (event, futex) = (event.clone(), futex.clone());
            thread::spawn(move || {
                let kernel = Modelled { tid: 2, futex };
                event.set(&kernel);
                event.clear();
            })
        };
        let kernel = Modelled { tid: 1, futex };
        let arrival = event.arrive();
        if arrival == 0 {
            while let Step::Sleep(word, expected) = event.wait(arrival) {
                kernel.sleep(word, expected);
            }
        }
        other.join().unwrap();
    });
}

#[test]
fn a_bell_is_heard() {
    loom::model(|| {
        let shared = Arc::new((Bell::default(), AtomicU32::new(0)));
        let futex = Futex::new();
        let other = {
            let (shared, futex) = (shared.clone(), futex.clone());
            thread::spawn(move || {
                // ORDERING: pairs with the other thread's load of this word.
                shared.1.store(1, Ordering::SeqCst);
                shared.0.ring(1, &Modelled { tid: 2, futex });
            })
        };
        let kernel = Modelled { tid: 1, futex };
        loop {
            let (word, heard) = shared.0.listen();
            // ORDERING: pairs with the store above.
            if shared.1.load(Ordering::SeqCst) == 1 {
                break;
            }
            kernel.sleep(word, heard);
        }
        other.join().unwrap();
    });
}

fn take_one(shared: &(SemaphoreWords, Vec<Account>), account: Option<&Account>) {
    let books = shared.0.books(&shared.1, 2, Threads::Concurrent);
    assert!(shared.0.try_acquire(&books, account));
}

/// Without a GIL, two threads of one process enter what they take and give in one account.
#[test]
fn threads_of_one_process_share_an_account() {
    loom::model(|| {
        let shared: Arc<(SemaphoreWords, Vec<Account>)> =
            Arc::new((SemaphoreWords::default(), vec![Account::default()]));
        shared.0.ledger.start(2);
        let kernel = Modelled {
            tid: 1,
            futex: Futex::new(),
        };
        let account = shared.0.books(&shared.1, 2, Threads::Concurrent).open(&kernel);
        assert!(account.is_some());
        let other = {
            let shared = shared.clone();
            thread::spawn(move || take_one(&shared, shared.1.first()))
        };
        take_one(&shared, account);
        let books = shared.0.books(&shared.1, 2, Threads::Concurrent);
        assert!(shared.0.release(&books, account, 1, 2, &kernel));
        other.join().unwrap();
        assert_eq!(books.census(&kernel), (1, 1));
        assert_eq!(shared.0.ledger.value(), 1);
    });
}

/// Two processes repair a semaphore concurrently; one of them then takes over the dead process's account, and takes
/// the permit.
#[test]
fn a_repair_leaves_the_account_to_its_new_owner() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let shared: Arc<(SemaphoreWords, [Account; 1])> = Arc::new(Default::default());
        let futex = Futex::new();
        shared.0.ledger.start(1);
        let gone = Modelled {
            tid: 100,
            futex: futex.clone(),
        };
        let books = shared.0.books(&shared.1, 1, Threads::Serialised);
        assert!(shared.0.try_acquire(&books, books.open(&gone)));
        let other = {
            let (shared, futex) = (shared.clone(), futex.clone());
            thread::spawn(move || {
                let books = shared.0.books(&shared.1, 1, Threads::Serialised);
                books.repair(&Modelled { tid: 2, futex })
            })
        };
        let kernel = Modelled { tid: 1, futex };
        let mine = books.repair(&kernel);
        let account = books.open(&kernel);
        assert!(account.is_some() && shared.0.try_acquire(&books, account));
        assert_eq!(mine + other.join().unwrap(), 1);
        assert_eq!((books.census(&kernel), shared.0.ledger.value()), ((1, 1), 0));
        assert_eq!(books.lost(&kernel), None);
    });
}
