//! The cores against plain models, with random sequences of calls.
//!
//! Invariant of the models: permits are neither created nor lost; and if something is available and a party
//! waits, a party has been notified.
#![cfg(not(any(loom, shuttle)))]
#![allow(missing_docs)]

mod tally;

use proptest::prelude::*;
use std::sync::Arc;
use tally::Tally;
use unsnarl_sync::{
    AtomicU32, Borrow, Borrowers, Channel, GRANTED, Give, Ordering, Permits, Store, Take, Unparker, WOKEN, Waiter,
};

/// A task; or a thread, which may be the caller's own.
struct Silent {
    wants_grant: bool,
    is_own: bool,
}

impl Silent {
    fn of(wants_grant: bool) -> Self {
        Self {
            wants_grant,
            is_own: false,
        }
    }
}

impl Unparker for Silent {
    fn wants_grant(&self) -> bool {
        self.wants_grant
    }
    fn sleeps_on_word(&self) -> bool {
        !self.wants_grant
    }
    fn is_prompt(&self) -> bool {
        self.sleeps_on_word() && !self.is_own
    }
    fn task(&self) -> usize {
        usize::from(self.wants_grant)
    }
    fn is_alive(&self) -> bool {
        true
    }
    fn wake(&self, _word: &AtomicU32) {}
}

type Enqueued = Arc<Waiter<Silent>>;

#[derive(Debug, Clone)]
enum Call {
    Begin { wants_grant: bool },
    Resume(usize),
    Cancel(usize),
    Release,
    Barge,
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        any::<bool>().prop_map(|wants_grant| Call::Begin { wants_grant }),
        any::<usize>().prop_map(Call::Resume),
        any::<usize>().prop_map(Call::Cancel),
        Just(Call::Release),
        Just(Call::Barge),
    ]
}

/// Remove one party from the list, if there is any.
fn pick(parties: &mut Vec<Enqueued>, index: usize) -> Option<Enqueued> {
    (!parties.is_empty()).then(|| parties.remove(index % parties.len()))
}

/// Whether one of the parties is a prompt heir.
fn has_prompt_heir(parties: &[Enqueued]) -> bool {
    parties
        .iter()
        .any(|waiter| waiter.state() == WOKEN && waiter.party.is_prompt())
}

/// Whether there is a prompt heir, or one heir for each of the available.
fn are_enough_notified(parties: &[Enqueued], available: usize) -> bool {
    let notified = parties.iter().filter(|waiter| waiter.state() == WOKEN).count();
    has_prompt_heir(parties) || notified >= available.min(parties.len())
}

proptest! {
    #[test]
    fn permits_are_conserved(total in 1usize..4, calls in prop::collection::vec(call(), 0..80)) {
        let permits = Permits::new(total);
        let mut waiting: Vec<Enqueued> = Vec::new();
        let mut held = 0;
        for call in calls {
            match call {
                Call::Begin { wants_grant } => {
                    let waiter = Waiter::new(Silent::of(wants_grant));
                    if permits.begin(&waiter) { held += 1 } else { waiting.push(waiter) }
                }
                Call::Resume(index) => if let Some(waiter) = pick(&mut waiting, index) {
                    if !matches!(waiter.state(), WOKEN | GRANTED) {
                        waiting.push(waiter);
                    } else if permits.resume(&waiter) {
                        held += 1;
                    } else {
                        waiting.push(waiter);
                    }
                },
                Call::Cancel(index) => if let Some(waiter) = pick(&mut waiting, index)
                    && permits.cancel(&waiter) {
                    held += 1;
                },
                Call::Release => if held > 0 {
                    permits.release(1, total).expect("held");
                    held -= 1;
                } else if permits.free() == total {
                    prop_assert!(permits.release(1, total).is_err());
                },
                Call::Barge => if permits.try_acquire() { held += 1 },
            }
            let granted = waiting.iter().filter(|waiter| waiter.state() == GRANTED).count();
            let notified = waiting.iter().any(|waiter| waiter.state() == WOKEN);
            prop_assert_eq!(permits.free() + held + granted, total);
            prop_assert_eq!(permits.waiting() + granted, waiting.len());
            if total == 1 {
                let to_task = waiting.iter().any(|waiter| waiter.state() == GRANTED && waiter.party.wants_grant);
                let grantee = permits.find_grantee(|task| (task != 0).then_some(task));
                prop_assert_eq!(grantee.is_some(), to_task);
            }
            if permits.free() > 0 && permits.waiting() > 0 {
                prop_assert!(notified, "a permit is free, a party waits, no waiter was notified");
            }
        }
    }

    #[test]
    fn channels_keep_order_and_notify_a_waiter(
        capacity in 1usize..4,
        is_serialised: bool,
        calls in prop::collection::vec((0u8..5, any::<usize>()), 0..100),
    ) {
        let channel: Channel<Fifo, Silent> = Channel::new(Fifo::default(), capacity, is_serialised);
        let (mut takers, mut givers): (Vec<Enqueued>, Vec<Enqueued>) = (Vec::new(), Vec::new());
        let (mut next_in, mut next_out) = (0u32, 0u32);
        for (kind, index) in calls {
            match kind {
                0 => {
                    let waiter = Waiter::new(Silent { wants_grant: index % 2 == 0, is_own: index % 3 == 0 });
                    match channel.give(next_in, Some(&waiter)) {
                        Give::Given => next_in += 1,
                        _ => givers.push(waiter),
                    }
                }
                1 => {
                    let waiter = Waiter::new(Silent { wants_grant: index % 2 == 0, is_own: index % 3 == 0 });
                    match channel.take(Some(&waiter)) {
                        Take::Taken(item) => { prop_assert_eq!(item, next_out); next_out += 1 }
                        _ => takers.push(waiter),
                    }
                }
                2 => if let Some(waiter) = pick(&mut givers, index) {
                    match channel.give(next_in, Some(&waiter)) {
                        Give::Given => next_in += 1,
                        _ => givers.push(waiter),
                    }
                },
                3 => if let Some(waiter) = pick(&mut takers, index) {
                    match channel.take(Some(&waiter)) {
                        Take::Taken(item) => { prop_assert_eq!(item, next_out); next_out += 1 }
                        _ => takers.push(waiter),
                    }
                },
                _ => {
                    let parties = if index % 2 == 0 { &mut takers } else { &mut givers };
                    if let Some(waiter) = pick(parties, index) {
                        channel.cancel(&waiter);
                    }
                }
            }
            prop_assert_eq!(channel.len(), (next_in - next_out) as usize);
            prop_assert_eq!(channel.waiting(), (takers.len(), givers.len(), 0));
            let for_takers = is_serialised && has_prompt_heir(&givers);
            let for_givers = is_serialised && has_prompt_heir(&takers);
            if !channel.is_empty() && !takers.is_empty() && !for_takers {
                prop_assert!(are_enough_notified(&takers, channel.len()), "too few takers were notified");
            }
            if !channel.is_full() && !givers.is_empty() && !for_givers {
                prop_assert!(are_enough_notified(&givers, capacity - channel.len()), "too few givers were notified");
            }
        }
    }

    #[test]
    fn tokens_belong_to_their_borrowers(calls in prop::collection::vec((0u8..4, 0usize..6), 0..100)) {
        let limiter: Borrowers<Silent> = Borrowers::new(2);
        let mut waiting: Vec<(usize, Enqueued)> = Vec::new();
        for (kind, borrower) in calls {
            let queued = waiting.iter().position(|(who, _)| *who == borrower);
            match (kind, queued) {
                (0, None) => {
                    let waiter = Waiter::new(Silent::of(true));
                    if limiter.begin(borrower, &waiter) == Borrow::None {
                        waiting.push((borrower, waiter));
                    }
                }
                (0, Some(_)) => {
                    let waiter = Waiter::new(Silent::of(true));
                    prop_assert_eq!(limiter.begin(borrower, &waiter), Borrow::Twice);
                }
                (1, Some(at)) => {
                    let (_, waiter) = waiting.remove(at);
                    if limiter.cancel(&waiter) {
                        prop_assert!(limiter.give_back(borrower));
                    }
                }
                (2, None) => {
                    let held = limiter.holders().contains(&borrower);
                    prop_assert_eq!(limiter.give_back(borrower), held);
                }
                (3, _) => limiter.resize(borrower % 3 + 1),
                _ => {}
            }
            waiting.retain(|(_, waiter)| waiter.state() != GRANTED);
            let (total, borrowed, queue) = limiter.status();
            prop_assert_eq!(queue, waiting.len());
            prop_assert!(queue == 0 || borrowed >= total, "a token is free and a party waits");
        }
    }
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

#[test]
fn what_is_kept_elsewhere_is_counted_within_the_capacity() {
    let channel = Channel::<Tally, Silent>::new(Tally(0), 1, false);
    assert_eq!(channel.uncount_quietly(), None);
    assert_eq!(channel.count_quietly(()), Ok(()));
    assert_eq!(channel.count_quietly(()), Err(()));
    assert_eq!((channel.len(), channel.unfinished()), (1, 1));
    assert_eq!(channel.uncount_quietly(), Some(()));
    channel.close();
    assert_eq!(channel.count_quietly(()), Err(()));
}

#[test]
fn what_is_kept_here_is_not_merely_counted() {
    let channel = Channel::<Fifo, Silent>::new(Fifo(std::iter::once(1).collect()), 0, false);
    assert_eq!(channel.count_quietly(2), Err(2));
    assert_eq!(channel.uncount_quietly(), None);
}

#[test]
fn a_task_that_does_not_run_keeps_no_thread_from_the_items() {
    let channel = Channel::<Fifo, Silent>::new(Fifo::default(), 0, false);
    let parties = [true, false, false].map(|wants_grant| Waiter::new(Silent::of(wants_grant)));
    for waiter in &parties {
        assert!(matches!(channel.take(Some(waiter)), Take::Empty));
    }
    let notified = || parties.each_ref().map(|waiter| waiter.state() == WOKEN);
    assert!(matches!(channel.give(1, None), Give::Given));
    assert_eq!(notified(), [true, false, false]);
    assert!(matches!(channel.give(2, None), Give::Given));
    assert_eq!(notified(), [true, true, false], "the item is for another waiter");
    assert!(matches!(channel.give(3, None), Give::Given));
    assert_eq!(notified(), [true, true, false], "one thread on its way is enough");
    assert!(matches!(channel.take(Some(&parties[1])), Take::Taken(1)));
    assert_eq!(notified(), [true, true, true], "two are left, and one was notified");
}

#[test]
fn while_a_thread_is_on_its_way_nobody_else_is_notified_and_calls_are_quiet() {
    for (is_own, is_quiet) in [(false, true), (true, false)] {
        let channel = Channel::<Fifo, Silent>::new(Fifo::default(), 0, false);
        let [first, second] = [false; 2].map(|wants_grant| Waiter::new(Silent { wants_grant, is_own }));
        for waiter in [&first, &second] {
            assert!(matches!(channel.take(Some(waiter)), Take::Empty));
        }
        assert_eq!(channel.give_quietly(1), Err(1), "a taker is to be notified");
        assert!(matches!(channel.give(1, None), Give::Given));
        // The caller's own thread re-checks only after this call has ended, so the next taker is to be notified as well.
        for item in [2, 3] {
            assert_eq!(channel.give_quietly(item).is_ok(), is_quiet);
        }
        assert_eq!(channel.take_quietly().is_some(), is_quiet);
        assert_eq!(second.state() == WOKEN, is_own);
        assert!(matches!(channel.take(Some(&first)), Take::Taken(_)));
        assert_eq!(second.state(), WOKEN, "an item is left");
    }
}

/// Which of two takers and two givers were notified, after a party that was not enqueued took and gave.
fn notified_on_both_sides(is_serialised: bool, is_own: bool) -> [bool; 4] {
    let channel = Channel::<Fifo, Silent>::new(Fifo::default(), 1, is_serialised);
    let [taker, next_taker, giver, next_giver] =
        [false; 4].map(|wants_grant| Waiter::new(Silent { wants_grant, is_own }));
    for waiter in [&taker, &next_taker] {
        assert!(matches!(channel.take(Some(waiter)), Take::Empty));
    }
    assert!(matches!(channel.give(1, None), Give::Given));
    for waiter in [&giver, &next_giver] {
        assert!(matches!(channel.give(2, Some(waiter)), Give::Full(2)));
    }
    assert!(matches!(channel.take(Some(&taker)), Take::Taken(1)));
    channel.resize(2);
    assert!(matches!(channel.give(2, Some(&giver)), Give::Given));
    [taker, next_taker, giver, next_giver].map(|waiter| waiter.state() == WOKEN)
}

#[test]
fn where_calls_are_serialised_only_the_other_side_is_notified() {
    assert_eq!(notified_on_both_sides(true, false), [true, true, true, false]);
    assert_eq!(notified_on_both_sides(false, false), [true, true, true, true]);
    assert_eq!(
        notified_on_both_sides(true, true),
        [true, true, true, true],
        "a slow one is not relied on"
    );
}

/// The current generation; parties of any other are dead.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// A task, or a thread, of one generation.
struct Mortal {
    is_task: bool,
    generation: u32,
}

impl Unparker for Mortal {
    fn wants_grant(&self) -> bool {
        self.is_task
    }
    fn sleeps_on_word(&self) -> bool {
        !self.is_task
    }
    fn is_alive(&self) -> bool {
        self.generation == Self::generation()
    }
    fn generation() -> u32 {
        GENERATION.load(Ordering::Relaxed)
    }
    fn wake(&self, _word: &AtomicU32) {}
}

#[test]
fn heirs_that_died_keep_no_living_party_from_the_items() {
    let waiter = |is_task| {
        Waiter::new(Mortal {
            is_task,
            generation: Mortal::generation(),
        })
    };
    for is_task in [true, false] {
        let channel = Channel::<Fifo, Mortal>::new(Fifo::default(), 0, false);
        let (heir, waiting) = (waiter(is_task), waiter(is_task));
        assert!([&heir, &waiting].map(|dead| channel.take(Some(dead))) == [Take::Empty, Take::Empty]);
        assert!(matches!(channel.give(1, None), Give::Given));
        assert_eq!(heir.state(), WOKEN);
        GENERATION.fetch_add(1, Ordering::Relaxed);
        assert!(matches!(channel.take(None), Take::Taken(1)));
        let living = waiter(is_task);
        assert!(matches!(channel.take(Some(&living)), Take::Empty));
        assert!(matches!(channel.give(2, None), Give::Given));
        assert_eq!(living.state(), WOKEN);
        assert_eq!(channel.waiting(), (1, 0, 0));
    }
}
