//! The store of a channel's items, and the results of a channel's calls.
//!
//! Invariant: an item in a result is owned by the caller; it is nowhere else.

/// The container of the items.
pub trait Store {
    /// The items' type.
    type Item;
    /// Number of items.
    fn len(&self) -> usize;
    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Add one.
    fn push(&mut self, item: Self::Item);
    /// Remove the next one.
    fn pop(&mut self) -> Option<Self::Item>;
    /// Whether the items are in this store, as the calls named `_here`, `_quietly` and `_many` require. A
    /// store that only counts items kept elsewhere may replace another at any time; the callers detect that
    /// under the mutex.
    #[inline]
    fn is_here(&self) -> bool {
        true
    }
}

/// The channel is closed: no item is accepted, and (for takers) none is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed;

/// The result of giving an item; an item that was not accepted is returned.
#[derive(Debug, PartialEq, Eq)]
pub enum Give<T> {
    /// The item is in the store.
    Given,
    /// No room; the waiter, if any, is enqueued.
    Full(T),
    /// The channel is closed.
    Closed(T),
    /// The caller requires the items to be in the store, but they are kept elsewhere; nothing has happened.
    Elsewhere(T),
}

/// The result of taking an item.
#[derive(Debug, PartialEq, Eq)]
pub enum Take<T> {
    /// The item.
    Taken(T),
    /// No item; the waiter, if any, is enqueued.
    Empty,
    /// No item, and none will follow: the channel is closed.
    Closed,
    /// The caller requires the items to be in the store, but they are kept elsewhere; nothing has happened.
    Elsewhere,
}
