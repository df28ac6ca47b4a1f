//! Where a channel keeps its items, and what its calls answer.
//!
//! Invariant: an item that an answer carries is the caller's; it is nowhere else.

/// Where the items are.
pub trait Store {
    /// What is stored.
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
    /// Whether the items are really in here, for the calls that say so (`_here`, `_quietly`,
    /// `_many`). A store that only counts what is kept elsewhere may take another's place at
    /// any time, and the callers have to notice that under the mutex.
    #[inline]
    fn is_here(&self) -> bool {
        true
    }
}

/// The channel is closed: nothing goes in, and (for takers) nothing is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed;

/// What became of an attempt to give; an item that was not taken comes back.
#[derive(Debug, PartialEq, Eq)]
pub enum Give<T> {
    /// It is in the store.
    Given,
    /// No room; the waiter, if any, is enqueued.
    Full(T),
    /// The channel is closed.
    Closed(T),
    /// The items are not kept here, and the caller said they were; nothing has happened.
    Elsewhere(T),
}

/// What became of an attempt to take.
#[derive(Debug, PartialEq, Eq)]
pub enum Take<T> {
    /// Here it is.
    Taken(T),
    /// Nothing there; the waiter, if any, is enqueued.
    Empty,
    /// Nothing there, and nothing will come.
    Closed,
    /// The items are not kept here, and the caller said they were; nothing has happened.
    Elsewhere,
}
