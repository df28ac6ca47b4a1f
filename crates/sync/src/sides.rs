//! The two wait queues of a channel: givers that wait for room, and takers that wait for items.
//!
//! Where a queue is the bottleneck both sides wait, and each party that re-checks leaves something for both:
//! an item for the takers, room for the givers. Where the GIL serialises the parties, only the other side is
//! notified, and the notified party notifies this side's next when it has re-checked. So a giver runs just as
//! the taker leaves that made the room, and the other way round. With one heir on each side, every heir was
//! woken one round early: it waited in the GIL's queue for that round and slept there a second time.
//!
//! No waiter is delayed by that. A prompt heir waits for nothing but the GIL, without which no other party
//! could re-check either. A side does not rely on an heir of the other side that is not prompt.
//!
//! Invariant: if there is an item and takers wait, or room and givers wait, there is an heir on the same
//! side, or a prompt heir on the other.

use crate::waiter::{Unparker, WaiterList, Wakes};
use crate::waiter_queue::WaiterQueue;

/// The waiters of a channel.
#[derive(Debug)]
pub(crate) struct Sides<P> {
    pub(crate) takers: WaiterQueue<P>,
    pub(crate) givers: WaiterQueue<P>,
    /// Waiters for the moment when nothing is unfinished.
    pub(crate) joiners: WaiterList<P>,
}

impl<P> Default for Sides<P> {
    fn default() -> Self {
        Self {
            takers: WaiterQueue::default(),
            givers: WaiterQueue::default(),
            joiners: WaiterList::default(),
        }
    }
}

/// The operation on the channel after which its waiters are notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// A giver checked for room, and gave or not.
    Give,
    /// A taker checked for items.
    Take,
    /// Anything else, by a party that was not notified of an item or of room.
    Other,
}

impl<P: Unparker> Sides<P> {
    /// Whether no party waits for an item or for room, or a prompt heir on each side where parties wait takes care of
    /// what is there. Woken threads take tens of microseconds to run: without this, each put and get meanwhile would
    /// take the slow way to notify no party.
    #[inline]
    pub(crate) fn need_no_notice(&mut self) -> bool {
        self.takers.needs_no_notice() && self.givers.needs_no_notice()
    }

    /// Restore the invariant for this many items and this much room. `is_serialised`: parties check one at a
    /// time anyway.
    pub(crate) fn notify(&mut self, items: usize, room: usize, done: Done, is_serialised: bool, wakes: &mut Wakes<P>) {
        let one_side = is_serialised && done != Done::Other;
        if done == Done::Take {
            self.notify_givers(room, one_side, wakes);
            self.notify_takers(items, one_side, wakes);
        } else {
            self.notify_takers(items, one_side, wakes);
            self.notify_givers(room, one_side, wakes);
        }
    }

    /// The channel is closed: notify both sides, so that their waiters find out.
    pub(crate) fn notify_closed(&mut self, items: usize, room: usize, wakes: &mut Wakes<P>) {
        self.takers.notify_next(items, wakes);
        self.givers.notify_next(room, wakes);
    }

    fn notify_takers(&mut self, items: usize, one_side: bool, wakes: &mut Wakes<P>) {
        if items > 0 && !(one_side && self.givers.has_prompt_heir()) {
            self.takers.notify_next(items, wakes);
        }
    }

    fn notify_givers(&mut self, room: usize, one_side: bool, wakes: &mut Wakes<P>) {
        if room > 0 && !(one_side && self.takers.has_prompt_heir()) {
            self.givers.notify_next(room, wakes);
        }
    }
}
