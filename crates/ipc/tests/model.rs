//! The ledger and the ring against plain models, over random calls and deaths.
#![cfg(not(loom))]
#![allow(missing_docs, unreachable_pub)]

use proptest::prelude::*;
use std::cell::Cell;
use std::collections::VecDeque;
use unsnarl_ipc::{
    Account, AtomicU32, AtomicU64, Kernel, Ordering, Ring, RingWords, SemaphoreWords, Slept, Step, Take,
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
    fn wake(&self, _word: &AtomicU32, _count: u32) {}
    fn begin(&self, _word: &AtomicU32) {}
    fn end(&self) {}
    fn hold(&self, _word: &AtomicU32) {}
    fn let_go(&self, _word: &AtomicU32) {}
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
        let books = words.books(&accounts, initial);
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
                    if let Step::Done(true) = ring.put(7, &record, Slept::NOT, &kernel) {
                        model.push_back(record);
                    } else {
                        // What is empty has room for every record that is not too long.
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
        let _ = ring.put(0, b"one", Slept::NOT, &kernel);
        for word in &data {
            word.store(content[0], Ordering::Relaxed);
        }
        for _ in 0..4 {
            let _ = ring.get(Slept::NOT, &kernel);
            let _ = ring.put(0, b"another one", Slept::NOT, &kernel);
        }
    }
}
