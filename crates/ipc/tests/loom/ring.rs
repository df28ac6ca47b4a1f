//! Queues: puts, gets and `shut` in every order.

use crate::kernel::{Futex, Modelled};
use loom::sync::Arc;
use loom::thread;
use unsnarl_ipc::{AtomicU64, PutAttempts, Ring, RingWords, Slept, Step, Take};

#[test]
fn records_come_in_order() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let futex = Futex::new();
        let shared: Arc<(RingWords, Vec<AtomicU64>)> =
            Arc::new((RingWords::default(), (0..4).map(|_| AtomicU64::new(0)).collect()));
        let other = {
            let (shared, futex) = (shared.clone(), futex.clone());
            thread::spawn(move || {
                let kernel = Modelled { tid: 2, futex };
                for record in 1..=2 {
                    let mut slept = Slept::NOT;
                    while let Step::Sleep(word, expected) =
                        ring(&shared).put(record, b"12345678", &PutAttempts::default(), slept, &kernel)
                    {
                        kernel.sleep(word, expected);
                        slept = Slept::on(word);
                    }
                }
            })
        };
        let kernel = Modelled { tid: 1, futex };
        for record in 1..=2 {
            assert_eq!(get(&ring(&shared), &kernel), Take::Record(record, b"12345678".to_vec()));
        }
        other.join().unwrap();
    });
}

fn ring(shared: &(RingWords, Vec<AtomicU64>)) -> Ring<'_> {
    Ring {
        words: &shared.0,
        data: &shared.1,
        max_records: 1,
    }
}

/// Waits for a record, or for the end of the queue.
fn get(ring: &Ring<'_>, kernel: &Modelled) -> Take {
    let mut slept = Slept::NOT;
    loop {
        match ring.get(slept, kernel) {
            Step::Sleep(word, expected) => {
                kernel.sleep(word, expected);
                slept = Slept::on(word);
            }
            Step::Done(take) => return take,
        }
    }
}

#[test]
fn an_item_is_had_whole() {
    loom::model(|| {
        let futex = Futex::new();
        let shared: Arc<(RingWords, Vec<AtomicU64>)> =
            Arc::new((RingWords::default(), (0..8).map(|_| AtomicU64::new(0)).collect()));
        let other = {
            let (shared, futex) = (shared.clone(), futex.clone());
            thread::spawn(move || {
                let kernel = Modelled { tid: 2, futex };
                let ring = Ring {
                    words: &shared.0,
                    data: &shared.1,
                    max_records: 0,
                };
                assert!(matches!(
                    ring.put(1, b"0123456789", &PutAttempts::default(), Slept::NOT, &kernel),
                    Step::Done(true)
                ));
            })
        };
        let kernel = Modelled { tid: 1, futex };
        let ring = Ring {
            words: &shared.0,
            data: &shared.1,
            max_records: 0,
        };
        assert_eq!(get(&ring, &kernel), Take::Record(1, b"0123456789".to_vec()));
        other.join().unwrap();
    });
}

#[test]
fn who_waits_for_an_item_learns_that_none_will_come() {
    // Three threads: all their interleavings would take hours.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let futex = Futex::new();
        let shared: Arc<(RingWords, Vec<AtomicU64>)> =
            Arc::new((RingWords::default(), (0..8).map(|_| AtomicU64::new(0)).collect()));
        let getters = [2, 3].map(|tid| {
            let (shared, futex) = (shared.clone(), futex.clone());
            thread::spawn(move || {
                let kernel = Modelled { tid, futex };
                matches!(get(&ring(&shared), &kernel), Take::Record(..))
            })
        });
        let kernel = Modelled { tid: 1, futex };
        assert!(matches!(
            ring(&shared).put(1, b"1", &PutAttempts::default(), Slept::NOT, &kernel),
            Step::Done(true)
        ));
        let mut slept = Slept::NOT;
        while let Step::Sleep(word, expected) = ring(&shared).shut(slept, &kernel) {
            kernel.sleep(word, expected);
            slept = Slept::on(word);
        }
        let had: usize = getters
            .into_iter()
            .map(|getter| usize::from(getter.join().unwrap()))
            .sum();
        assert_eq!(had, 1);
    });
}

/// The woken putter's record does not fit: the shorter one behind it is put without waiting for more room.
#[test]
fn a_short_record_is_not_left_asleep_behind_a_long_one() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let futex = Futex::new();
        let shared: Arc<(RingWords, Vec<AtomicU64>)> =
            Arc::new((RingWords::default(), (0..8).map(|_| AtomicU64::new(0)).collect()));
        let kernel = Modelled {
            tid: 1,
            futex: futex.clone(),
        };
        let by_bytes = |shared: &Arc<(RingWords, Vec<AtomicU64>)>, length: usize, kernel: &Modelled| {
            let ring = Ring {
                words: &shared.0,
                data: &shared.1,
                max_records: 0,
            };
            let (attempts, mut slept) = (PutAttempts::default(), Slept::NOT);
            while let Step::Sleep(word, expected) = ring.put(1, &vec![7; length], &attempts, slept, kernel) {
                kernel.sleep(word, expected);
                slept = Slept::on(word);
            }
        };
        (0..3).for_each(|_| by_bytes(&shared, 8, &kernel));
        // One more word is free: two are for the short record, four for the long one.
        let [long, short] = [(2, 24), (3, 8)].map(|(tid, length)| {
            let (shared, futex) = (shared.clone(), futex.clone());
            thread::spawn(move || by_bytes(&shared, length, &Modelled { tid, futex }))
        });
        let take = || get(&ring(&shared), &kernel);
        take();
        short.join().unwrap();
        (0..2).for_each(|_| drop(take()));
        long.join().unwrap();
    });
}
