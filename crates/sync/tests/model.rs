//! The cores against plain models, with random sequences of calls.
//!
//! Invariant of the models: permits are never created or lost, and whenever
//! something could be taken and somebody waits, somebody has been told.
#![cfg(not(any(loom, shuttle)))]
#![allow(missing_docs)]

mod tally;

use proptest::prelude::*;
use std::sync::Arc;
use tally::Tally;
use unsnarl_sync::{
    AtomicU32, Borrow, Borrowers, Channel, GRANTED, Give, Ordering, Permits, Port, Store, Take, WOKEN, Waiter,
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

impl Port for Silent {
    fn wants_grant(&self) -> bool {
        self.wants_grant
    }
    fn sleeps_on_word(&self) -> bool {
        !self.wants_grant
    }
    fn comes_soon(&self) -> bool {
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

type Party = Arc<Waiter<Silent>>;

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

/// Take one party out of the list, if there is any.
fn pick(parties: &mut Vec<Party>, index: usize) -> Option<Party> {
    (!parties.is_empty()).then(|| parties.remove(index % parties.len()))
}

/// Whether one of them was told and comes soon.
fn is_one_soon(parties: &[Party]) -> bool {
    parties
        .iter()
        .any(|party| party.state() == WOKEN && party.port.comes_soon())
}

/// A thread that was told and comes soon, or as many others as there is something for: each of them may be slow.
fn are_enough_told(parties: &[Party], available: usize) -> bool {
    let told = parties.iter().filter(|party| party.state() == WOKEN).count();
    is_one_soon(parties) || told >= available.min(parties.len())
}

proptest! {
    #[test]
    fn permits_are_conserved(total in 1usize..4, calls in prop::collection::vec(call(), 0..80)) {
        let permits = Permits::new(total);
        let mut waiting: Vec<Party> = Vec::new();
        let mut held = 0;
        for call in calls {
            match call {
                Call::Begin { wants_grant } => {
                    let party = Waiter::new(Silent::of(wants_grant));
                    if permits.begin(&party) { held += 1 } else { waiting.push(party) }
                }
                Call::Resume(index) => if let Some(party) = pick(&mut waiting, index) {
                    if !matches!(party.state(), WOKEN | GRANTED) {
                        waiting.push(party);
                    } else if permits.resume(&party) {
                        held += 1;
                    } else {
                        waiting.push(party);
                    }
                },
                Call::Cancel(index) => if let Some(party) = pick(&mut waiting, index)
                    && permits.cancel(&party) {
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
            let granted = waiting.iter().filter(|party| party.state() == GRANTED).count();
            let told = waiting.iter().any(|party| party.state() == WOKEN);
            prop_assert_eq!(permits.free() + held + granted, total);
            prop_assert_eq!(permits.waiting() + granted, waiting.len());
            if total == 1 {
                let to_task = waiting.iter().any(|party| party.state() == GRANTED && party.port.wants_grant);
                let grantee = permits.find_grantee(|task| (task != 0).then_some(task));
                prop_assert_eq!(grantee.is_some(), to_task);
            }
            if permits.free() > 0 && permits.waiting() > 0 {
                prop_assert!(told, "a permit is free, somebody waits, nobody was told");
            }
        }
    }

    #[test]
    fn channels_keep_order_and_tell_somebody(
        capacity in 1usize..4,
        in_turn: bool,
        calls in prop::collection::vec((0u8..5, any::<usize>()), 0..100),
    ) {
        let channel: Channel<Fifo, Silent> = Channel::new(Fifo::default(), capacity, in_turn);
        let (mut takers, mut givers): (Vec<Party>, Vec<Party>) = (Vec::new(), Vec::new());
        let (mut next_in, mut next_out) = (0u32, 0u32);
        for (kind, index) in calls {
            match kind {
                0 => {
                    let party = Waiter::new(Silent { wants_grant: index % 2 == 0, is_own: index % 3 == 0 });
                    match channel.give(next_in, Some(&party)) {
                        Give::Given => next_in += 1,
                        _ => givers.push(party),
                    }
                }
                1 => {
                    let party = Waiter::new(Silent { wants_grant: index % 2 == 0, is_own: index % 3 == 0 });
                    match channel.take(Some(&party)) {
                        Take::Taken(item) => { prop_assert_eq!(item, next_out); next_out += 1 }
                        _ => takers.push(party),
                    }
                }
                2 => if let Some(party) = pick(&mut givers, index) {
                    match channel.give(next_in, Some(&party)) {
                        Give::Given => next_in += 1,
                        _ => givers.push(party),
                    }
                },
                3 => if let Some(party) = pick(&mut takers, index) {
                    match channel.take(Some(&party)) {
                        Take::Taken(item) => { prop_assert_eq!(item, next_out); next_out += 1 }
                        _ => takers.push(party),
                    }
                },
                _ => {
                    let parties = if index % 2 == 0 { &mut takers } else { &mut givers };
                    if let Some(party) = pick(parties, index) {
                        channel.cancel(&party);
                    }
                }
            }
            prop_assert_eq!(channel.len(), (next_in - next_out) as usize);
            prop_assert_eq!(channel.waiting(), (takers.len(), givers.len(), 0));
            let (for_takers, for_givers) = (is_one_soon(&givers) && in_turn, is_one_soon(&takers) && in_turn);
            if !channel.is_empty() && !takers.is_empty() && !for_takers {
                prop_assert!(are_enough_told(&takers, channel.len()), "too few takers were told");
            }
            if !channel.is_full() && !givers.is_empty() && !for_givers {
                prop_assert!(are_enough_told(&givers, capacity - channel.len()), "too few givers were told");
            }
        }
    }

    #[test]
    fn tokens_belong_to_their_borrowers(calls in prop::collection::vec((0u8..4, 0usize..6), 0..100)) {
        let limiter: Borrowers<Silent> = Borrowers::new(2);
        let mut waiting: Vec<(usize, Party)> = Vec::new();
        for (kind, borrower) in calls {
            let queued = waiting.iter().position(|(who, _)| *who == borrower);
            match (kind, queued) {
                (0, None) => {
                    let party = Waiter::new(Silent::of(true));
                    if limiter.begin(borrower, &party) == Borrow::None {
                        waiting.push((borrower, party));
                    }
                }
                (0, Some(_)) => {
                    let party = Waiter::new(Silent::of(true));
                    prop_assert_eq!(limiter.begin(borrower, &party), Borrow::Twice);
                }
                (1, Some(at)) => {
                    let (_, party) = waiting.remove(at);
                    if limiter.cancel(&party) {
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
            waiting.retain(|(_, party)| party.state() != GRANTED);
            let (total, borrowed, queue) = limiter.status();
            prop_assert_eq!(queue, waiting.len());
            prop_assert!(queue == 0 || borrowed >= total, "a token is free and somebody waits");
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
fn a_task_that_does_not_come_keeps_no_thread_from_the_items() {
    let channel = Channel::<Fifo, Silent>::new(Fifo::default(), 0, false);
    let parties = [true, false, false].map(|wants_grant| Waiter::new(Silent::of(wants_grant)));
    for party in &parties {
        assert!(matches!(channel.take(Some(party)), Take::Empty));
    }
    let told = || parties.each_ref().map(|party| party.state() == WOKEN);
    assert!(matches!(channel.give(1, None), Give::Given));
    assert_eq!(told(), [true, false, false]);
    assert!(matches!(channel.give(2, None), Give::Given));
    assert_eq!(told(), [true, true, false], "the item is for somebody else");
    assert!(matches!(channel.give(3, None), Give::Given));
    assert_eq!(told(), [true, true, false], "one thread on its way is enough");
    assert!(matches!(channel.take(Some(&parties[1])), Take::Taken(1)));
    assert_eq!(told(), [true, true, true], "two are left, and one was told");
}

/// Both a giver and a taker wait, after somebody outside of the lines took and gave: who of them was told?
fn told_on_both_sides(in_turn: bool, is_own: bool) -> [bool; 4] {
    let channel = Channel::<Fifo, Silent>::new(Fifo::default(), 1, in_turn);
    let [taker, next_taker, giver, next_giver] =
        [false; 4].map(|wants_grant| Waiter::new(Silent { wants_grant, is_own }));
    for party in [&taker, &next_taker] {
        assert!(matches!(channel.take(Some(party)), Take::Empty));
    }
    assert!(matches!(channel.give(1, None), Give::Given));
    for party in [&giver, &next_giver] {
        assert!(matches!(channel.give(2, Some(party)), Give::Full(2)));
    }
    assert!(matches!(channel.take(Some(&taker)), Take::Taken(1)));
    channel.resize(2);
    assert!(matches!(channel.give(2, Some(&giver)), Give::Given));
    [taker, next_taker, giver, next_giver].map(|party| party.state() == WOKEN)
}

#[test]
fn where_all_look_in_turn_only_the_other_side_is_told() {
    assert_eq!(told_on_both_sides(true, false), [true, true, true, false]);
    assert_eq!(told_on_both_sides(false, false), [true, true, true, true]);
    assert_eq!(
        told_on_both_sides(true, true),
        [true, true, true, true],
        "a slow one is not relied on"
    );
}

/// The generation of now, of which parties of another are dead.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// A task, or a thread, of one generation.
struct Mortal {
    is_task: bool,
    generation: u32,
}

impl Port for Mortal {
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
    let party = |is_task| {
        Waiter::new(Mortal {
            is_task,
            generation: Mortal::generation(),
        })
    };
    for is_task in [true, false] {
        let channel = Channel::<Fifo, Mortal>::new(Fifo::default(), 0, false);
        let (heir, waiting) = (party(is_task), party(is_task));
        assert!([&heir, &waiting].map(|dead| channel.take(Some(dead))) == [Take::Empty, Take::Empty]);
        assert!(matches!(channel.give(1, None), Give::Given));
        assert_eq!(heir.state(), WOKEN);
        GENERATION.fetch_add(1, Ordering::Relaxed);
        assert!(matches!(channel.take(None), Take::Taken(1)));
        let living = party(is_task);
        assert!(matches!(channel.take(Some(&living)), Take::Empty));
        assert!(matches!(channel.give(2, None), Give::Given));
        assert_eq!(living.state(), WOKEN);
        assert_eq!(channel.waiting(), (1, 0, 0));
    }
}
