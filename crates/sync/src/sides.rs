//! The two sides of a channel: givers that wait for room, and takers that wait for items.
//!
//! Where a queue is the bottleneck both sides wait, and whoever looks leaves something for
//! both: an item for the takers, room for the givers. Where parties look in turn
//! anyway, because each needs the same lock for it (the GIL), only the other side is told;
//! who was told tells this side's next when it has looked. So a giver comes just as the taker leaves
//! who made the room, and the other way round. With one told on each side, every
//! one of them came a turn too early, stood in the GIL's line for that turn, and slept there a second time.
//!
//! Nobody is kept waiting by that: a party that was told and comes soon waits for nothing but
//! the GIL, without which nobody else could look either. On one that may be slow the other
//! side does not rely.
//!
//! Invariant: if there is an item and takers wait, or room and givers wait, then somebody that was told is on its
//! way, on the same side; or on the other one, and then it comes soon.

use crate::waiter::{Port, WaitQueue, Wakes};
use crate::waiter_queue::Line;

/// Who waits at a channel.
#[derive(Debug)]
pub(crate) struct Sides<P> {
    pub(crate) takers: Line<P>,
    pub(crate) givers: Line<P>,
    /// Those who wait until nothing is unfinished.
    pub(crate) joiners: WaitQueue<P>,
}

impl<P> Default for Sides<P> {
    fn default() -> Self {
        Self {
            takers: Line::default(),
            givers: Line::default(),
            joiners: WaitQueue::default(),
        }
    }
}

/// What has just been done to the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// A giver looked, and gave or not.
    Give,
    /// A taker looked.
    Take,
    /// Anything else, and not by one who was told because there was something.
    Other,
}

impl<P: Port> Sides<P> {
    /// Whether nobody waits for an item or for room.
    #[inline]
    pub(crate) fn are_empty(&self) -> bool {
        self.takers.is_empty() && self.givers.is_empty()
    }

    /// Restore the invariant, with so many items and so much room. `in_turn`: parties look one at a time anyway.
    pub(crate) fn settle(&mut self, items: usize, room: usize, done: Done, in_turn: bool, wakes: &mut Wakes<P>) {
        let one_side = in_turn && done != Done::Other;
        if done == Done::Take {
            self.tell_givers(room, one_side, wakes);
            self.tell_takers(items, one_side, wakes);
        } else {
            self.tell_takers(items, one_side, wakes);
            self.tell_givers(room, one_side, wakes);
        }
    }

    /// The channel is closed, and there is something for either side: to learn that. With so many items, and so much
    /// room.
    pub(crate) fn settle_closed(&mut self, items: usize, room: usize, wakes: &mut Wakes<P>) {
        self.takers.call_next(items, wakes);
        self.givers.call_next(room, wakes);
    }

    fn tell_takers(&mut self, items: usize, one_side: bool, wakes: &mut Wakes<P>) {
        if items > 0 && !(one_side && self.givers.has_one_soon()) {
            self.takers.call_next(items, wakes);
        }
    }

    fn tell_givers(&mut self, room: usize, one_side: bool, wakes: &mut Wakes<P>) {
        if room > 0 && !(one_side && self.takers.has_one_soon()) {
            self.givers.call_next(room, wakes);
        }
    }
}
