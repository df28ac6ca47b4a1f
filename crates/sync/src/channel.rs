//! A bounded store between givers and takers: the core of the queues.
//!
//! Items are never handed to a particular waiter: they go into the store, and
//! the first waiter is told to look. Whoever runs takes. So a running taker
//! empties the store without one wake-up per item (see [`crate::waiter_queue`] and [`crate::sides`]).
//!
//! Is it fair? Items leave in the store's order. Waiters are told in order of
//! arrival, and keep their place when they come in vain; a party that does not
//! have to wait may overtake them. The standard library's queue does the same.
//!
//! Invariant: `unfinished` counts items given and not yet reported done.

use crate::shim::{Arc, Mutex, lock};
use crate::sides::{Done, Sides};
use crate::store::{Closed, Give, Store, Take};
use crate::waiter::{GRANTED, Port, Waiter, Wakes};
use crate::waiter_queue::Line;

/// A store with room for `capacity` items, and those who wait at it.
#[derive(Debug)]
pub struct Channel<S, P> {
    state: Mutex<State<S, P>>,
}

#[derive(Debug)]
struct State<S, P> {
    store: S,
    capacity: usize,
    unfinished: usize,
    closed: bool,
    /// Whether parties look one at a time anyway.
    in_turn: bool,
    sides: Option<Box<Sides<P>>>,
}

impl<S: Store, P: Port> State<S, P> {
    fn sides(&mut self) -> &mut Sides<P> {
        self.sides.get_or_insert_default()
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.capacity == 0 || self.store.len() < self.capacity
    }

    /// Whether it is open and nobody stands in a line that an item or room could be for.
    #[inline]
    fn is_quiet(&self) -> bool {
        !self.closed && self.sides.as_deref().is_none_or(Sides::are_empty)
    }

    /// Tell whom it concerns what there is now.
    fn settle(&mut self, done: Done, wakes: &mut Wakes<P>) {
        let items = self.store.len();
        let room = match self.capacity {
            0 => usize::MAX,
            capacity => capacity.saturating_sub(items),
        };
        let Some(sides) = self.sides.as_deref_mut() else {
            return;
        };
        if self.closed {
            sides.settle_closed(items, room, wakes);
        } else {
            sides.settle(items, room, done, self.in_turn, wakes);
        }
    }
}

impl<S: Store, P: Port> Channel<S, P> {
    /// Make a channel; `capacity` 0 is unbounded. `in_turn`: its parties look one at a time anyway, since each needs
    /// one lock for it (the GIL).
    pub fn new(store: S, capacity: usize, in_turn: bool) -> Self {
        let state = State {
            store,
            capacity,
            unfinished: 0,
            closed: false,
            in_turn,
            sides: None,
        };
        Self {
            state: Mutex::new(state),
        }
    }

    /// Look at or change the store itself, e.g. to peek or traverse it.
    pub fn with_store<R>(&self, look: impl FnOnce(&mut S) -> R) -> R {
        look(&mut lock(&self.state).store)
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        lock(&self.state).store.len()
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a giver would have to wait.
    pub fn is_full(&self) -> bool {
        !lock(&self.state).has_room()
    }

    /// Room for how many; 0 is unbounded.
    pub fn capacity(&self) -> usize {
        lock(&self.state).capacity
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    /// Items given and not reported done.
    pub fn unfinished(&self) -> usize {
        lock(&self.state).unfinished
    }

    /// Waiting takers, givers and joiners.
    pub fn waiting(&self) -> (usize, usize, usize) {
        lock(&self.state).sides.as_ref().map_or((0, 0, 0), |sides| {
            (sides.takers.len(), sides.givers.len(), sides.joiners.len())
        })
    }

    /// Give one item if that concerns nobody else: there is room, and no line. What most
    /// calls need, without what the others need.
    ///
    /// # Errors
    /// The item, if [`Channel::give`] has to see to it.
    #[inline]
    pub fn give_quietly(&self, item: S::Item) -> Result<(), S::Item> {
        self.push_quietly(item, true)
    }

    #[inline]
    fn push_quietly(&self, item: S::Item, is_here: bool) -> Result<(), S::Item> {
        let mut state = lock(&self.state);
        if !state.is_quiet() || !state.has_room() || state.store.is_here() != is_here {
            return Err(item);
        }
        state.store.push(item);
        state.unfinished += 1;
        Ok(())
    }

    /// Take one item if that concerns nobody else; else [`Channel::take`] has to see to it.
    #[inline]
    pub fn take_quietly(&self) -> Option<S::Item> {
        self.pop_quietly(true)
    }

    #[inline]
    fn pop_quietly(&self, is_here: bool) -> Option<S::Item> {
        let mut state = lock(&self.state);
        if state.is_quiet() && state.store.is_here() == is_here {
            state.store.pop()
        } else {
            None
        }
    }

    /// The same as [`Channel::give_quietly`], where the items are kept elsewhere: count one.
    ///
    /// # Errors
    /// The item, if [`Channel::give`] has to see to it.
    #[inline]
    pub fn count_quietly(&self, item: S::Item) -> Result<(), S::Item> {
        self.push_quietly(item, false)
    }

    /// The same as [`Channel::take_quietly`], where the items are kept elsewhere: count one less.
    #[inline]
    pub fn uncount_quietly(&self) -> Option<S::Item> {
        self.pop_quietly(false)
    }

    /// Give one item. With a waiter: enqueue it when there is no room, or keep
    /// its place if it is enqueued already.
    pub fn give(&self, item: S::Item, waiter: Option<&Arc<Waiter<P>>>) -> Give<S::Item> {
        self.give_to(false, item, waiter)
    }

    /// The same, if the items are kept here.
    pub fn give_here(&self, item: S::Item, waiter: Option<&Arc<Waiter<P>>>) -> Give<S::Item> {
        self.give_to(true, item, waiter)
    }

    fn give_to(&self, here: bool, item: S::Item, waiter: Option<&Arc<Waiter<P>>>) -> Give<S::Item> {
        let mut wakes = Wakes::none();
        let outcome = {
            let mut state = lock(&self.state);
            if here && !state.store.is_here() {
                return Give::Elsewhere(item);
            }
            let ready = state.closed || state.has_room();
            if let Some(waiter) = waiter {
                take_place(&mut state.sides().givers, waiter, ready);
            }
            let outcome = if state.closed {
                Give::Closed(item)
            } else if ready {
                state.store.push(item);
                state.unfinished += 1;
                Give::Given
            } else {
                Give::Full(item)
            };
            state.settle(Done::Give, &mut wakes);
            outcome
        };
        wakes.run();
        outcome
    }

    /// Give as many of `items` as there is room for; their number, 0 if they are not kept here.
    ///
    /// # Errors
    /// [`Closed`] if the channel is closed.
    pub fn give_many(
        &self,
        items: &mut impl Iterator<Item = S::Item>,
        waiter: Option<&Arc<Waiter<P>>>,
    ) -> Result<usize, Closed> {
        let mut wakes = Wakes::none();
        let outcome = {
            let mut state = lock(&self.state);
            let ready = state.closed || state.has_room();
            if let Some(waiter) = waiter {
                take_place(&mut state.sides().givers, waiter, ready);
            }
            let mut given = 0;
            while !state.closed && state.has_room() && state.store.is_here() {
                let Some(item) = items.next() else { break };
                state.store.push(item);
                given += 1;
            }
            state.unfinished += given;
            state.settle(Done::Give, &mut wakes);
            if state.closed { Err(Closed) } else { Ok(given) }
        };
        wakes.run();
        outcome
    }

    /// Take the next item. With a waiter: enqueue it when there is none, or keep
    /// its place if it is enqueued already.
    pub fn take(&self, waiter: Option<&Arc<Waiter<P>>>) -> Take<S::Item> {
        self.take_from(false, waiter)
    }

    /// The same, if the items are kept here.
    pub fn take_here(&self, waiter: Option<&Arc<Waiter<P>>>) -> Take<S::Item> {
        self.take_from(true, waiter)
    }

    fn take_from(&self, here: bool, waiter: Option<&Arc<Waiter<P>>>) -> Take<S::Item> {
        let mut wakes = Wakes::none();
        let outcome = {
            let mut state = lock(&self.state);
            if here && !state.store.is_here() {
                return Take::Elsewhere;
            }
            let ready = state.closed || !state.store.is_empty();
            if let Some(waiter) = waiter {
                take_place(&mut state.sides().takers, waiter, ready);
            }
            let outcome = match state.store.pop() {
                Some(item) => Take::Taken(item),
                None if state.closed => Take::Closed,
                None => Take::Empty,
            };
            state.settle(Done::Take, &mut wakes);
            outcome
        };
        wakes.run();
        outcome
    }

    /// Take up to `count` items into `taken`; their number.
    pub fn take_many(&self, count: usize, taken: &mut Vec<S::Item>, waiter: Option<&Arc<Waiter<P>>>) -> Take<usize> {
        let mut wakes = Wakes::none();
        let outcome = {
            let mut state = lock(&self.state);
            if !state.store.is_here() {
                return Take::Elsewhere;
            }
            let ready = state.closed || !state.store.is_empty();
            if let Some(waiter) = waiter {
                take_place(&mut state.sides().takers, waiter, ready);
            }
            let before = taken.len();
            while taken.len() - before < count {
                let Some(item) = state.store.pop() else { break };
                taken.push(item);
            }
            state.settle(Done::Take, &mut wakes);
            match taken.len() - before {
                0 if state.closed => Take::Closed,
                0 => Take::Empty,
                number => Take::Taken(number),
            }
        };
        wakes.run();
        outcome
    }

    /// Take back what was just given, because it could not be stored after all.
    pub fn undo_give(&self, fan_out: usize) -> Option<S::Item> {
        let mut wakes = Wakes::none();
        let item = {
            let mut state = lock(&self.state);
            let item = state.store.pop();
            state.unfinished = state.unfinished.saturating_sub(1);
            release_joiners(&mut state, &mut wakes, fan_out);
            state.settle(Done::Other, &mut wakes);
            item
        };
        wakes.run();
        item
    }

    /// Set how many items count as given and not yet done.
    pub fn set_unfinished(&self, unfinished: usize, fan_out: usize) {
        let mut wakes = Wakes::none();
        {
            let mut state = lock(&self.state);
            state.unfinished = unfinished;
            release_joiners(&mut state, &mut wakes, fan_out);
        }
        wakes.run();
    }

    /// Look at or change the store, and tell those whom that concerns.
    pub fn change_store(&self, change: impl FnOnce(&mut S)) {
        let mut wakes = Wakes::none();
        {
            let mut state = lock(&self.state);
            change(&mut state.store);
            state.settle(Done::Other, &mut wakes);
        }
        wakes.run();
    }

    /// Change the capacity; 0 is unbounded.
    pub fn resize(&self, capacity: usize) {
        let mut wakes = Wakes::none();
        {
            let mut state = lock(&self.state);
            state.capacity = capacity;
            state.settle(Done::Other, &mut wakes);
        }
        wakes.run();
    }

    /// Start anew with an empty store, for `__init__`: if it comes again, who waits goes on with this one, and
    /// nothing is unfinished.
    pub fn restart(&self, store: S, capacity: usize, fan_out: usize) -> S {
        let mut wakes = Wakes::none();
        let old = {
            let mut state = lock(&self.state);
            state.capacity = capacity;
            state.unfinished = 0;
            state.closed = false;
            let old = std::mem::replace(&mut state.store, store);
            release_joiners(&mut state, &mut wakes, fan_out);
            state.settle(Done::Other, &mut wakes);
            old
        };
        wakes.run();
        old
    }

    /// Withdraw a giver or taker; what it was called for goes to the next in line.
    pub fn cancel(&self, waiter: &Arc<Waiter<P>>) {
        let mut wakes = Wakes::none();
        {
            let mut state = lock(&self.state);
            let sides = state.sides();
            if !sides.takers.leave(waiter) {
                sides.givers.leave(waiter);
            }
            state.settle(Done::Other, &mut wakes);
        }
        wakes.run();
    }

    /// Report `count` items done. False, and nothing changes, if there were fewer.
    pub fn done(&self, count: usize, fan_out: usize) -> bool {
        let mut wakes = Wakes::none();
        {
            let mut state = lock(&self.state);
            if count > state.unfinished {
                return false;
            }
            state.unfinished -= count;
            release_joiners(&mut state, &mut wakes, fan_out);
        }
        wakes.run();
        true
    }

    /// Enqueue for the moment when nothing is unfinished. True: it is now.
    pub fn begin_join(&self, waiter: &Arc<Waiter<P>>) -> bool {
        let mut state = lock(&self.state);
        if state.unfinished == 0 {
            return true;
        }
        state.sides().joiners.push(waiter);
        false
    }

    /// Withdraw a joiner. True: everything had been done.
    pub fn cancel_join(&self, waiter: &Arc<Waiter<P>>) -> bool {
        !lock(&self.state).sides().joiners.remove(waiter) && waiter.state() == GRANTED
    }

    /// Take everything out, reporting it done if `done`; the items are the
    /// caller's to drop, outside of the mutex.
    pub fn drain(&self, done: bool, fan_out: usize) -> Vec<S::Item> {
        let mut wakes = Wakes::none();
        let items: Vec<_> = {
            let mut state = lock(&self.state);
            let items: Vec<_> = std::iter::from_fn(|| state.store.pop()).collect();
            if done {
                state.unfinished = state.unfinished.saturating_sub(items.len());
                release_joiners(&mut state, &mut wakes, fan_out);
            }
            state.settle(Done::Other, &mut wakes);
            items
        };
        wakes.run();
        items
    }

    /// Close it: everybody who waits looks again.
    pub fn close(&self) {
        let mut wakes = Wakes::none();
        {
            let mut state = lock(&self.state);
            state.closed = true;
            let sides = state.sides();
            sides.takers.call_all(&mut wakes);
            sides.givers.call_all(&mut wakes);
        }
        wakes.run();
    }

    /// Open it again. Who was told to look because it was closed looks, and waits on if there is nothing.
    pub fn reopen(&self) {
        lock(&self.state).closed = false;
    }
}

/// The waiter looks: if `ready` it leaves the line, else it has a place in it.
fn take_place<P: Port>(line: &mut Line<P>, waiter: &Arc<Waiter<P>>, ready: bool) {
    if ready {
        line.leave(waiter);
    } else {
        line.stay(waiter, false);
    }
}

fn release_joiners<S: Store, P: Port>(state: &mut State<S, P>, wakes: &mut Wakes<P>, fan_out: usize) {
    if state.unfinished == 0
        && let Some(sides) = state.sides.as_deref_mut()
        && !sides.joiners.is_empty()
    {
        wakes.signal_all(sides.joiners.drain(), GRANTED, fan_out);
    }
}
