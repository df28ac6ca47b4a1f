//! A bounded channel with cancellable waits on both sides: the core of the queues.
//!
//! Items are never granted to a particular waiter. They go into the store, the first waiter is notified, and
//! the first party that runs takes. So a running taker empties the store without one wake-up per item (see
//! [`crate::waiter_queue`] and [`crate::sides`]).
//!
//! Is it fair? Items leave in the store's order. Waiters are notified in order of arrival and keep their
//! place after a spurious wake-up. A party that need not wait may overtake them, as in the standard library's
//! queue.
//!
//! Must never: run a store's foreign code with the mutex held; items are dropped by the caller.
//!
//! Invariant: `unfinished` counts the items that were given and not yet reported done.

use crate::shim::{Arc, Mutex, lock};
use crate::sides::{Done, Sides};
use crate::store::{Closed, Give, Store, Take};
use crate::waiter::{GRANTED, Unparker, Waiter, Wakes};
use crate::waiter_queue::WaiterQueue;

/// A store with room for `capacity` items, and its waiters.
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
    /// Whether the GIL serialises the parties' calls.
    is_serialised: bool,
    sides: Option<Box<Sides<P>>>,
}

impl<S: Store, P: Unparker> State<S, P> {
    fn sides(&mut self) -> &mut Sides<P> {
        self.sides.get_or_insert_default()
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.capacity == 0 || self.store.len() < self.capacity
    }

    /// Whether it is open, and no party has to be notified of one item more or less.
    #[inline]
    fn is_quiet(&mut self) -> bool {
        !self.closed && self.sides.as_deref_mut().is_none_or(Sides::need_no_notice)
    }

    /// Notify the waiters for which there is an item or room now.
    fn notify_sides(&mut self, done: Done, wakes: &mut Wakes<P>) {
        let items = self.store.len();
        let room = match self.capacity {
            0 => usize::MAX,
            capacity => capacity.saturating_sub(items),
        };
        let Some(sides) = self.sides.as_deref_mut() else {
            return;
        };
        if self.closed {
            sides.notify_closed(items, room, wakes);
        } else {
            sides.notify(items, room, done, self.is_serialised, wakes);
        }
    }
}

impl<S: Store, P: Unparker> Channel<S, P> {
    /// Make a channel; `capacity` 0 is unbounded. `is_serialised`: one lock (the GIL) serialises its parties'
    /// calls.
    pub fn new(store: S, capacity: usize, is_serialised: bool) -> Self {
        let state = State {
            store,
            capacity,
            unfinished: 0,
            closed: false,
            is_serialised,
            sides: None,
        };
        Self {
            state: Mutex::new(state),
        }
    }

    /// Read or change the store itself, e.g. to peek or traverse it. No waiter is notified.
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

    /// The maximal number of items; 0 is unbounded.
    pub fn capacity(&self) -> usize {
        lock(&self.state).capacity
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    /// The number of items given and not reported done.
    pub fn unfinished(&self) -> usize {
        lock(&self.state).unfinished
    }

    /// Waiting takers, givers and joiners.
    pub fn waiting(&self) -> (usize, usize, usize) {
        lock(&self.state).sides.as_ref().map_or((0, 0, 0), |sides| {
            (sides.takers.len(), sides.givers.len(), sides.joiners.len())
        })
    }

    /// Give one item if there is room and no waiter: the fast path of most calls.
    ///
    /// # Errors
    /// The item, if [`Channel::give`] must be called instead.
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

    /// Take one item if there is no waiter; None if [`Channel::take`] must be called instead.
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

    /// As [`Channel::give_quietly`], where the items are kept elsewhere: count one item.
    ///
    /// # Errors
    /// The item, if [`Channel::give`] must be called instead.
    #[inline]
    pub fn count_quietly(&self, item: S::Item) -> Result<(), S::Item> {
        self.push_quietly(item, false)
    }

    /// As [`Channel::take_quietly`], where the items are kept elsewhere: count one item less.
    #[inline]
    pub fn uncount_quietly(&self) -> Option<S::Item> {
        self.pop_quietly(false)
    }

    /// Give one item. With a waiter: enqueue it if there is no room, or keep its place if it is enqueued
    /// already.
    pub fn give(&self, item: S::Item, waiter: Option<&Arc<Waiter<P>>>) -> Give<S::Item> {
        self.give_to(false, item, waiter)
    }

    /// As [`Channel::give`], if the items are kept here.
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
                update_place(&mut state.sides().givers, waiter, ready);
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
            state.notify_sides(Done::Give, &mut wakes);
            outcome
        };
        wakes.run();
        outcome
    }

    /// Give as many of `items` as there is room for. Returns their number, 0 if items are kept elsewhere.
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
                update_place(&mut state.sides().givers, waiter, ready);
            }
            let mut given = 0;
            while !state.closed && state.has_room() && state.store.is_here() {
                let Some(item) = items.next() else { break };
                state.store.push(item);
                given += 1;
            }
            state.unfinished += given;
            state.notify_sides(Done::Give, &mut wakes);
            if state.closed { Err(Closed) } else { Ok(given) }
        };
        wakes.run();
        outcome
    }

    /// Take the next item. With a waiter: enqueue it if there is none, or keep its place if it is enqueued
    /// already.
    pub fn take(&self, waiter: Option<&Arc<Waiter<P>>>) -> Take<S::Item> {
        self.take_from(false, waiter)
    }

    /// As [`Channel::take`], if the items are kept here.
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
                update_place(&mut state.sides().takers, waiter, ready);
            }
            let outcome = match state.store.pop() {
                Some(item) => Take::Taken(item),
                None if state.closed => Take::Closed,
                None => Take::Empty,
            };
            state.notify_sides(Done::Take, &mut wakes);
            outcome
        };
        wakes.run();
        outcome
    }

    /// Move up to `count` items into `taken`. Returns their number.
    pub fn take_many(&self, count: usize, taken: &mut Vec<S::Item>, waiter: Option<&Arc<Waiter<P>>>) -> Take<usize> {
        let mut wakes = Wakes::none();
        let outcome = {
            let mut state = lock(&self.state);
            if !state.store.is_here() {
                return Take::Elsewhere;
            }
            let ready = state.closed || !state.store.is_empty();
            if let Some(waiter) = waiter {
                update_place(&mut state.sides().takers, waiter, ready);
            }
            let before = taken.len();
            while taken.len() - before < count {
                let Some(item) = state.store.pop() else { break };
                taken.push(item);
            }
            state.notify_sides(Done::Take, &mut wakes);
            match taken.len() - before {
                0 if state.closed => Take::Closed,
                0 => Take::Empty,
                number => Take::Taken(number),
            }
        };
        wakes.run();
        outcome
    }

    /// Remove an item that was just given, because it could not be stored after all.
    pub fn undo_give(&self, fan_out: usize) -> Option<S::Item> {
        let mut wakes = Wakes::none();
        let item = {
            let mut state = lock(&self.state);
            let item = state.store.pop();
            state.unfinished = state.unfinished.saturating_sub(1);
            release_joiners(&mut state, &mut wakes, fan_out);
            state.notify_sides(Done::Other, &mut wakes);
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

    /// Change the store, and notify the waiters for which there is an item or room now.
    pub fn change_store(&self, change: impl FnOnce(&mut S)) {
        let mut wakes = Wakes::none();
        {
            let mut state = lock(&self.state);
            change(&mut state.store);
            state.notify_sides(Done::Other, &mut wakes);
        }
        wakes.run();
    }

    /// Change the capacity; 0 is unbounded.
    pub fn resize(&self, capacity: usize) {
        let mut wakes = Wakes::none();
        {
            let mut state = lock(&self.state);
            state.capacity = capacity;
            state.notify_sides(Done::Other, &mut wakes);
        }
        wakes.run();
    }

    /// Restart with another store, for an `__init__` that is called again: waiters wait on, for this store,
    /// and nothing is unfinished. Returns the old store.
    pub fn restart(&self, store: S, capacity: usize, fan_out: usize) -> S {
        let mut wakes = Wakes::none();
        let old = {
            let mut state = lock(&self.state);
            state.capacity = capacity;
            state.unfinished = 0;
            state.closed = false;
            let old = std::mem::replace(&mut state.store, store);
            release_joiners(&mut state, &mut wakes, fan_out);
            state.notify_sides(Done::Other, &mut wakes);
            old
        };
        wakes.run();
        old
    }

    /// Remove a giver or taker that gives up. If it was notified, the next waiter is notified instead.
    pub fn cancel(&self, waiter: &Arc<Waiter<P>>) {
        let mut wakes = Wakes::none();
        {
            let mut state = lock(&self.state);
            let sides = state.sides();
            if !sides.takers.leave(waiter) {
                sides.givers.leave(waiter);
            }
            state.notify_sides(Done::Other, &mut wakes);
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

    /// Enqueue until nothing is unfinished. True: nothing is.
    pub fn begin_join(&self, waiter: &Arc<Waiter<P>>) -> bool {
        let mut state = lock(&self.state);
        if state.unfinished == 0 {
            return true;
        }
        state.sides().joiners.push(waiter);
        false
    }

    /// Remove a joiner that gives up. True: everything had been done before.
    pub fn cancel_join(&self, waiter: &Arc<Waiter<P>>) -> bool {
        !lock(&self.state).sides().joiners.remove(waiter) && waiter.state() == GRANTED
    }

    /// Remove all items, and report them done if `done`. The caller drops the items, without the mutex.
    pub fn drain(&self, done: bool, fan_out: usize) -> Vec<S::Item> {
        let mut wakes = Wakes::none();
        let items: Vec<_> = {
            let mut state = lock(&self.state);
            let items: Vec<_> = std::iter::from_fn(|| state.store.pop()).collect();
            if done {
                state.unfinished = state.unfinished.saturating_sub(items.len());
                release_joiners(&mut state, &mut wakes, fan_out);
            }
            state.notify_sides(Done::Other, &mut wakes);
            items
        };
        wakes.run();
        items
    }

    /// Close it: every waiter is notified to re-check.
    pub fn close(&self) {
        let mut wakes = Wakes::none();
        {
            let mut state = lock(&self.state);
            state.closed = true;
            let sides = state.sides();
            sides.takers.notify_all(&mut wakes);
            sides.givers.notify_all(&mut wakes);
        }
        wakes.run();
    }

    /// Open it again. A waiter that was notified of the close re-checks, and waits again if there is nothing.
    pub fn reopen(&self) {
        lock(&self.state).closed = false;
    }
}

/// The waiter re-checks: if `ready` it leaves the queue, else it has a place in it.
fn update_place<P: Unparker>(queue: &mut WaiterQueue<P>, waiter: &Arc<Waiter<P>>, ready: bool) {
    if ready {
        queue.leave(waiter);
    } else {
        queue.requeue(waiter, false);
    }
}

fn release_joiners<S: Store, P: Unparker>(state: &mut State<S, P>, wakes: &mut Wakes<P>, fan_out: usize) {
    if state.unfinished == 0
        && let Some(sides) = state.sides.as_deref_mut()
        && !sides.joiners.is_empty()
    {
        wakes.signal_all(sides.joiners.drain(), GRANTED, fan_out);
    }
}
