//! The ledger and the ring against plain models, over random calls and deaths.
#![cfg(not(loom))]
#![allow(missing_docs, unreachable_pub)]

use proptest::prelude::*;
use std::cell::Cell;
use std::collections::VecDeque;
use unsnarl_ipc::{
    Account, AtomicU32, AtomicU64, Kernel, Ordering, PutAttempts, Ring, RingWords, SemaphoreWords, Slept, Step, Take,
    Threads,
};

struct Modelled {
    process: Cell<u64>,
    dead: Cell<u64>,
}

impl Kernel for Modelled {
    fn tid(&self) -> u32 {
        self.process.get() as u32
    }
    fn process(&self) -> u64 {
        self.process.get()
    }
    fn is_alive(&self, process: u64) -> bool {
        process != 0 && self.dead.get() & (1 << process) == 0
    }
    fn died_unmarked(&self, _tid: u32) -> bool {
        false
    }
    fn wake(&self, _word: &AtomicU32, _count: u32) {}
    fn begin(&self, _word: &AtomicU32) {}
    fn end(&self) {}
    fn pause(&self) {}
}

fn kernel() -> Modelled {
    Modelled {
        process: Cell::new(1),
        dead: Cell::new(0),
    }
}

proptest! {
    #[test]
    fn a_repaired_semaphore_has_the_permits_of_the_dead(
        initial in 1..6u32,
        calls in prop::collection::vec((1..5u64, prop::bool::ANY), 0..60),
        dead in 0..16u64,
    ) {
        let (words, accounts): (_, Vec<Account>) = (SemaphoreWords::default(), (0..8).map(|_| Account::default()).collect());
        let kernel = kernel();
        words.ledger.start(initial);
        let books = words.books(&accounts, initial, Threads::Serialised);
        let mut held = [0_i64; 5];
        for (process, takes) in calls {
            kernel.process.set(process);
            let account = books.open(&kernel);
            if takes {
                held[process as usize] += i64::from(words.try_acquire(&books, account));
            } else if held[process as usize] > 0 {
                prop_assert!(words.release(&books, account, 1, initial, &kernel));
                held[process as usize] -= 1;
            }
            prop_assert_eq!(i64::from(words.ledger.value()), i64::from(initial) - held.iter().sum::<i64>());
        }
        kernel.dead.set(dead << 1);
        kernel.process.set(9);
        let lost: i64 = (1..5).filter(|process| dead & (1 << (process - 1)) != 0).map(|process| held[process]).sum();
        prop_assert_eq!(books.lost(&kernel).map_or(0, |(_, count)| i64::from(count)), lost);
        prop_assert_eq!(books.repair(&kernel), lost);
        prop_assert_eq!(books.repair(&kernel), 0);
        prop_assert_eq!(i64::from(words.ledger.value()), i64::from(initial) - held.iter().sum::<i64>() + lost);
    }

    /// A process without permits gives back what another took, as a consumer does for a producer.
    #[test]
    fn permits_that_others_gave_back_are_not_lost(
        initial in 1..6u32,
        calls in prop::collection::vec((1..5u64, 1..5usize, prop::bool::ANY), 0..60),
        dead in 0..16u64,
    ) {
        let (words, accounts): (_, Vec<Account>) = (SemaphoreWords::default(), (0..8).map(|_| Account::default()).collect());
        let kernel = kernel();
        words.ledger.start(initial);
        for threads in [Threads::Serialised, Threads::Concurrent] {
            let books = words.books(&accounts, initial, threads);
            let mut held = [0_i64; 5];
            for (process, other, takes) in &calls {
                kernel.process.set(*process);
                let account = books.open(&kernel);
                let giver = if held[*process as usize] > 0 { *process as usize } else { *other };
                if *takes {
                    held[*process as usize] += i64::from(words.try_acquire(&books, account));
                } else if held[giver] > 0 {
                    prop_assert!(words.release(&books, account, 1, initial, &kernel));
                    held[giver] -= 1;
                }
            }
            kernel.dead.set(dead << 1);
            let with_the_dead: i64 = (1..5).filter(|process| dead & (1 << (process - 1)) != 0).map(|process| held[process]).sum();
            let lost = books.lost(&kernel).map_or(0, |(_, count)| i64::from(count));
            prop_assert!(lost <= with_the_dead);
            prop_assert_eq!(books.repair(&kernel), lost);
            prop_assert_eq!(books.lost(&kernel), None);
            prop_assert!(i64::from(words.ledger.value()) + held.iter().sum::<i64>() - with_the_dead <= i64::from(initial));
            kernel.dead.set(0);
            words.ledger.start(initial);
            for account in &accounts {
                account.process.store(0, Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn a_ring_is_a_queue(
        size in 4..40usize,
        max_records in 0..6u32,
        calls in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..60)), 0..200),
    ) {
        let words = RingWords::default();
        let data: Vec<AtomicU64> = (0..size).map(|_| AtomicU64::new(u64::MAX)).collect();
        let ring = Ring { words: &words, data: &data, max_records };
        let (kernel, mut model) = (kernel(), VecDeque::new());
        for call in calls {
            match call {
                Some(record) if record.len() <= ring.longest() => {
                    if let Step::Done(true) = ring.put(7, &record, &PutAttempts::default(), Slept::NOT, &kernel) {
                        model.push_back(record);
                    } else {
                        // An empty ring has room for every record that is not too long.
                        prop_assert!(!model.is_empty());
                    }
                }
                Some(_) => {}
                None => match (ring.get(Slept::NOT, &kernel), model.pop_front()) {
                    (Step::Done(Take::Record(7, record)), Some(expected)) => prop_assert_eq!(record, expected),
                    (Step::Sleep(..), None) => {}
                    other => prop_assert!(false, "{:?}", other),
                },
            }
            prop_assert_eq!(ring.len() as usize, model.len());
        }
    }

    #[test]
    fn any_words_of_a_ring_get_an_answer(
        content in prop::collection::vec(any::<u64>(), 8),
        small in prop::collection::vec(0..9u64, 8),
        mask: u8,
    ) {
        let words = RingWords::default();
        let data: Vec<AtomicU64> = content
            .iter()
            .zip(&small)
            .enumerate()
            .map(|(number, (word, small))| AtomicU64::new(if mask & (1 << number) == 0 { *word } else { *small }))
            .collect();
        let ring = Ring { words: &words, data: &data, max_records: 0 };
        let kernel = kernel();
        let _ = ring.put(0, b"one", &PutAttempts::default(), Slept::NOT, &kernel);
        for word in &data {
            word.store(content[0], Ordering::Relaxed);
        }
        for _ in 0..4 {
            let _ = ring.get(Slept::NOT, &kernel);
            let _ = ring.put(0, b"another one", &PutAttempts::default(), Slept::NOT, &kernel);
        }
    }
}

/// One process took and ended, another gave that back, a third holds the permit: nothing is lost, whichever process
/// waits.
#[test]
fn what_was_given_back_for_the_dead_is_not_lost() {
    for threads in [Threads::Serialised, Threads::Concurrent] {
        let (words, accounts) = (
            SemaphoreWords::default(),
            std::array::from_fn::<_, 4, _>(|_| Account::default()),
        );
        let kernel = kernel();
        words.ledger.start(1);
        let books = words.books(&accounts, 1, threads);
        assert!(words.try_acquire(&books, books.open(&kernel)));
        kernel.process.set(2);
        assert!(words.release(&books, books.open(&kernel), 1, 1, &kernel));
        kernel.dead.set(1 << 1);
        // The process that gave it back takes it: its sum is one now, and not zero.
        for holder in [2, 3] {
            kernel.process.set(holder);
            let account = books.open(&kernel);
            assert!(words.try_acquire(&books, account));
            kernel.process.set(4);
            assert_eq!((books.unreported(&kernel), books.repair(&kernel)), (None, 0));
            assert!(!words.try_acquire(&books, books.open(&kernel)));
            assert!(words.release(&books, account, 1, 1, &kernel));
        }
        kernel.process.set(3);
        assert!(words.try_acquire(&books, books.open(&kernel)));
        kernel.process.set(4);
        kernel.dead.set(1 << 1 | 1 << 3);
        // Where permits pass between processes no death is reported, but the repair still works.
        assert_eq!(books.lost(&kernel).map(|(_, count)| count), Some(1));
        assert_eq!(
            (books.unreported(&kernel), books.repair(&kernel), words.ledger.value()),
            (None, 1, 1)
        );
    }
}

/// Putters that sleep on one word, in order of arrival, and how many are to be woken.
struct Sleepers {
    kernel: Modelled,
    woken: Cell<u32>,
}

impl Kernel for Sleepers {
    fn tid(&self) -> u32 {
        self.kernel.tid()
    }
    fn process(&self) -> u64 {
        self.kernel.process()
    }
    fn is_alive(&self, process: u64) -> bool {
        self.kernel.is_alive(process)
    }
    fn died_unmarked(&self, _tid: u32) -> bool {
        false
    }
    fn wake(&self, _word: &AtomicU32, count: u32) {
        self.woken.set(self.woken.get() + count);
    }
    fn begin(&self, _word: &AtomicU32) {}
    fn end(&self) {}
    fn pause(&self) {}
}

/// Fills a ring with records of eight bytes, lets records of these lengths wait, takes one, and has a long record
/// arrive that many times before a woken putter runs. Returns the lengths that were put then, and the attempts.
fn after_one_is_taken(waiting: &[usize], comings: usize) -> (Vec<usize>, usize) {
    let words = RingWords::default();
    let data: Vec<AtomicU64> = (0..16).map(|_| AtomicU64::new(0)).collect();
    let ring = Ring {
        words: &words,
        data: &data,
        max_records: 0,
    };
    let kernel = Sleepers {
        kernel: kernel(),
        woken: Cell::new(0),
    };
    let mut sleepers = VecDeque::new();
    let attempt =
        |length: usize, memory: &PutAttempts, slept| match ring.put(1, &vec![0; length], memory, slept, &kernel) {
            Step::Done(_) => None,
            Step::Sleep(word, _) => Some(Slept::on(word)),
        };
    while ring.fits(8) {
        assert!(attempt(8, &PutAttempts::default(), Slept::NOT).is_none());
    }
    for length in waiting {
        let memory = PutAttempts::default();
        let slept = attempt(*length, &memory, Slept::NOT).expect("the ring is full");
        sleepers.push_back((*length, memory, slept));
    }
    kernel.woken.set(0);
    assert!(matches!(ring.get(Slept::NOT, &kernel), Step::Done(Take::Record(..))));
    let (late, mut slept) = (PutAttempts::default(), Slept::NOT);
    for _ in 0..comings {
        // It finds the word changed each time it is about to sleep.
        slept = attempt(24, &late, slept).expect("it does not fit");
    }
    let (mut put, mut attempts) = (Vec::new(), 0);
    while kernel.woken.get() > 0 {
        kernel.woken.set(kernel.woken.get() - 1);
        let Some((length, memory, slept)) = sleepers.pop_front() else {
            break;
        };
        attempts += 1;
        match attempt(length, &memory, slept) {
            Some(slept) => sleepers.push_back((length, memory, slept)),
            None => put.push(length),
        }
    }
    (put, attempts)
}

#[test]
fn room_for_a_short_record_reaches_it_behind_long_ones() {
    assert_eq!(after_one_is_taken(&[24, 32, 40, 8, 24], 0), (vec![8], 4));
}

#[test]
fn one_that_comes_and_comes_again_does_not_hide_a_shorter_one() {
    for comings in 1..3 {
        assert_eq!(after_one_is_taken(&[24, 24, 8], comings).0, [8], "{comings}");
    }
}

#[test]
fn records_of_one_length_are_woken_one_by_one() {
    assert_eq!(after_one_is_taken(&[8; 6], 0), (vec![8], 1));
    assert_eq!(after_one_is_taken(&[24; 6], 0), (vec![], 1));
}
