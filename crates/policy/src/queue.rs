//! FIFO queues threaded through a table of entries by index.
//!
//! Must never: allocate; every operation is O(1). Invariant: a thread is in at most one queue; links
//! are valid only while `Links::is_queued` is true.

use crate::ThreadId;

/// The links of an entry in the queue that it is in.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Links {
    pub(crate) next: Option<ThreadId>,
    previous: Option<ThreadId>,
    pub(crate) is_queued: bool,
}

/// A table of entries that carry [`Links`].
pub(crate) trait Table {
    fn links(&mut self, thread: ThreadId) -> &mut Links;
}

/// Head, tail and length of one queue.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Queue {
    head: Option<ThreadId>,
    tail: Option<ThreadId>,
    length: u32,
}

impl Queue {
    pub(crate) const fn head(&self) -> Option<ThreadId> {
        self.head
    }

    pub(crate) const fn tail(&self) -> Option<ThreadId> {
        self.tail
    }

    pub(crate) const fn len(&self) -> u32 {
        self.length
    }

    pub(crate) fn push_back(&mut self, table: &mut impl Table, thread: ThreadId) {
        *table.links(thread) = Links {
            next: None,
            previous: self.tail,
            is_queued: true,
        };
        match self.tail {
            Some(tail) => table.links(tail).next = Some(thread),
            None => self.head = Some(thread),
        }
        self.tail = Some(thread);
        self.length += 1;
    }

    pub(crate) fn push_front(&mut self, table: &mut impl Table, thread: ThreadId) {
        *table.links(thread) = Links {
            next: self.head,
            previous: None,
            is_queued: true,
        };
        match self.head {
            Some(head) => table.links(head).previous = Some(thread),
            None => self.tail = Some(thread),
        }
        self.head = Some(thread);
        self.length += 1;
    }

    pub(crate) fn remove(&mut self, table: &mut impl Table, thread: ThreadId) {
        let links = std::mem::take(table.links(thread));
        debug_assert!(links.is_queued, "a thread is removed from a queue it is in");
        match links.previous {
            Some(previous) => table.links(previous).next = links.next,
            None => self.head = links.next,
        }
        match links.next {
            Some(next) => table.links(next).previous = links.previous,
            None => self.tail = links.previous,
        }
        self.length -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::{Links, Queue, Table};
    use crate::ThreadId;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    struct Entries(Vec<Links>);
    impl Table for Entries {
        fn links(&mut self, thread: ThreadId) -> &mut Links {
            &mut self.0[thread.index()]
        }
    }

    proptest! {
        #[test]
        fn behaves_as_a_deque_without_duplicates(steps in prop::collection::vec((0usize..8, 0u8..3), 0..200)) {
            let mut entries = Entries(vec![Links::default(); 8]);
            let mut queue = Queue::default();
            let mut model = VecDeque::new();
            for (index, step) in steps {
                let thread = ThreadId::new(index);
                let is_queued = model.contains(&thread);
                prop_assert_eq!(entries.0[index].is_queued, is_queued);
                match (step, is_queued) {
                    (0, false) => { queue.push_back(&mut entries, thread); model.push_back(thread); }
                    (1, false) => { queue.push_front(&mut entries, thread); model.push_front(thread); }
                    (2, true) => { queue.remove(&mut entries, thread); model.retain(|&other| other != thread); }
                    _ => {}
                }
                prop_assert_eq!(queue.head(), model.front().copied());
                prop_assert_eq!(queue.tail(), model.back().copied());
                prop_assert_eq!(queue.len() as usize, model.len());
            }
        }
    }
}
