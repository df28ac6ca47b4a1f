//! Threads of one process at one robust word, without a GIL: each thread's list stays consistent.
#![allow(missing_docs)]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use unsnarl_ipc::{DIED, Kernel, Kind, Threads};
use unsnarl_shm::{Entered, Host, Mapping, Segment, hold, release, try_acquire};

const CREW: usize = 4;
const ROUNDS: usize = 100_000;

fn lock() -> Segment {
    Segment::anonymous(Kind::Lock, 0, 0, |_: &Mapping| {}).unwrap()
}

/// Takes the shared word or releases it, whichever thread holds it, so that entries stay behind in other lists.
fn take_and_give(shared: &Segment, alias: &Mapping, number: usize) {
    let word = shared.mapping.robust_word();
    for round in 0..ROUNDS {
        if (round + number).is_multiple_of(2) {
            if let Entered::Unlisted(_) = try_acquire(word, Threads::Concurrent) {
                assert!(hold(alias.robust_word()), "only this thread knows that mapping");
                Host.end();
            }
        } else {
            release(alias.robust_word(), 1);
            release(word, 1);
        }
    }
}

/// An entry that two threads linked hides the rest of a list: then the kernel misses a death.
#[test]
fn the_kernel_finds_what_a_dying_thread_held() {
    unsnarl_shm::watch_forks();
    for _ in 0..5 {
        let shared = Arc::new(lock());
        let crew: Vec<_> = (0..CREW)
            .map(|number| {
                let shared = shared.clone();
                std::thread::spawn(move || {
                    let (own, alias) = (lock(), shared.alias().unwrap());
                    let taken = try_acquire(own.mapping.robust_word(), Threads::Concurrent);
                    assert!(matches!(taken, Entered::Listed(attempt) if attempt.is_taken()));
                    take_and_give(&shared, &alias, number);
                    (own, alias)
                })
            })
            .collect();
        for thread in crew {
            let (own, _alias) = thread.join().unwrap();
            assert_eq!(own.mapping.robust_word().load(Ordering::Relaxed) & DIED, DIED);
        }
    }
}
