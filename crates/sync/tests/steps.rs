//! The number of steps that the wait queues take, independent of time.
//!
//! A step is a call of a waiter's [`Unparker`]: a walk along a queue calls each waiter's.
//!
//! Invariant: `n` waiters are granted, or leave, within a bound that grows with `n` and not with its square.
#![cfg(not(any(loom, shuttle)))]
#![allow(missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use unsnarl_sync::{AtomicU32, Channel, Give, Permits, Store, Take, Unparker, WOKEN, Waiter};

/// Waiters in the queue; fewer where every step is interpreted.
const PARTIES: usize = if cfg!(miri) { 120 } else { 500 };

/// The maximal number of steps of a waiter from its arrival to its end; a walk along the queue takes at least
/// `PARTIES`.
const STEPS_EACH: usize = 60;

/// A party that counts the calls of its methods.
struct Asked {
    is_task: bool,
    steps: Arc<AtomicUsize>,
}

impl Asked {
    fn answer(&self, answer: bool) -> bool {
        self.steps.fetch_add(1, Ordering::Relaxed);
        answer
    }
}

impl Unparker for Asked {
    fn wants_grant(&self) -> bool {
        self.answer(self.is_task)
    }
    fn sleeps_on_word(&self) -> bool {
        self.answer(!self.is_task)
    }
    fn is_alive(&self) -> bool {
        self.answer(true)
    }
    fn wake(&self, _word: &AtomicU32) {}
}

type Party = Arc<Waiter<Asked>>;

struct Count(usize);

impl Store for Count {
    type Item = ();
    fn len(&self) -> usize {
        self.0
    }
    fn push(&mut self, (): ()) {
        self.0 += 1;
    }
    fn pop(&mut self) -> Option<()> {
        self.0 = self.0.checked_sub(1)?;
        Some(())
    }
}

type Pipe = Channel<Count, Asked>;

/// Parties, and their common count of steps.
fn crowd(is_task: bool) -> (Vec<Party>, Arc<AtomicUsize>) {
    let steps = Arc::new(AtomicUsize::new(0));
    let party = |_| {
        Waiter::new(Asked {
            is_task,
            steps: Arc::clone(&steps),
        })
    };
    ((0..PARTIES).map(party).collect(), Arc::clone(&steps))
}

fn assert_few(steps: &AtomicUsize) {
    let taken = steps.load(Ordering::Relaxed);
    assert!(taken <= PARTIES * STEPS_EACH, "{taken} steps for {PARTIES} waiters");
}

/// A channel at which all of these takers wait.
fn line_up(takers: &[Party]) -> Pipe {
    let pipe = Pipe::new(Count(0), 0, false);
    for taker in takers {
        assert!(matches!(pipe.take(Some(taker)), Take::Empty));
    }
    pipe
}

fn take_one_each(pipe: &Pipe, takers: &[Party]) {
    for taker in takers {
        assert!(matches!(pipe.take(Some(taker)), Take::Taken(())));
    }
    assert_eq!(pipe.waiting(), (0, 0, 0));
}

#[test]
fn an_item_for_each_task_is_given_in_few_steps() {
    let (takers, steps) = crowd(true);
    let pipe = line_up(&takers);
    for _ in &takers {
        assert!(matches!(pipe.give((), None), Give::Given));
    }
    assert!(takers.iter().all(|taker| taker.state() == WOKEN), "each is notified");
    take_one_each(&pipe, &takers);
    assert_few(&steps);
}

#[test]
fn a_batch_for_all_tasks_is_given_in_few_steps() {
    let (takers, steps) = crowd(true);
    let pipe = line_up(&takers);
    assert_eq!(pipe.give_many(&mut std::iter::repeat_n((), PARTIES), None), Ok(PARTIES));
    take_one_each(&pipe, &takers);
    assert_few(&steps);
}

#[test]
fn room_for_all_tasks_is_made_in_few_steps() {
    let (givers, steps) = crowd(true);
    let pipe = Pipe::new(Count(1), 1, false);
    for giver in &givers {
        assert!(matches!(pipe.give((), Some(giver)), Give::Full(())));
    }
    pipe.resize(0);
    for giver in &givers {
        assert!(matches!(pipe.give((), Some(giver)), Give::Given));
    }
    assert_few(&steps);
}

#[test]
fn tasks_woken_spuriously_wait_on_in_few_steps() {
    let (takers, steps) = crowd(true);
    let pipe = line_up(&takers);
    for taker in &takers {
        // Another party is faster each time, and another waiter is notified of the next item.
        assert_eq!(pipe.give_many(&mut std::iter::repeat_n((), PARTIES), None), Ok(PARTIES));
        assert!(matches!(
            pipe.take_many(PARTIES, &mut Vec::new(), None),
            Take::Taken(PARTIES)
        ));
        assert!(matches!(pipe.take(Some(taker)), Take::Empty));
    }
    assert_few(&steps);
}

#[test]
fn notified_tasks_that_give_up_leave_in_few_steps() {
    let (takers, steps) = crowd(true);
    let pipe = line_up(&takers);
    for _ in &takers {
        assert!(matches!(pipe.give((), None), Give::Given));
    }
    takers.iter().for_each(|taker| pipe.cancel(taker));
    assert_eq!(pipe.waiting(), (0, 0, 0));
    assert_few(&steps);
}

#[test]
fn a_permit_for_each_thread_is_released_in_few_steps() {
    let (threads, steps) = crowd(false);
    let permits = Permits::new(0);
    assert!(!threads.iter().any(|thread| permits.begin(thread)));
    assert_eq!(permits.release(PARTIES, PARTIES), Ok(()));
    assert!(threads.iter().all(|thread| permits.resume(thread)));
    assert_few(&steps);
}
