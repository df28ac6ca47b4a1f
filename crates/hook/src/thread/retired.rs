//! A lock-free list of the entries of ended threads, linked by index.
//!
//! A thread's end may come while the GIL's mutex is held by another thread, so it cannot
//! change the policy. It pushes its index; the next thread that registers drains the list.
//!
//! Must never: lock, allocate, wait, since `push` runs in a destructor of thread-local storage.
//! Invariant: an index is in the list once, between the thread's end and the next `drain`.

use super::table::{CAPACITY, Table};
use std::sync::atomic::{AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use unsnarl_policy::{Policy, ThreadId};

const NONE: u32 = u32::MAX;

static NEXT: Table<AtomicU32> = [const { AtomicU32::new(NONE) }; CAPACITY];
static HEAD: AtomicU32 = AtomicU32::new(NONE);

/// Adds the entry of the calling thread, which ends.
pub(super) fn push(thread: ThreadId) {
    let index = thread.index() as u32;
    let mut head = HEAD.load(Relaxed);
    loop {
        NEXT[thread.index()].store(head, Relaxed);
        // ORDERING: Release publishes the link to the Acquire in `drain`.
        match HEAD.compare_exchange_weak(head, index, AcqRel, Relaxed) {
            Ok(_) => return,
            Err(current) => head = current,
        }
    }
}

/// Returns the entries of ended threads to the policy; the GIL's mutex is held.
pub(super) fn drain(policy: &mut Policy) {
    // ORDERING: Acquire pairs with the Release in `push`, which publishes the link before
    // the index.
    let mut index = HEAD.swap(NONE, Acquire);
    while index != NONE {
        let next = NEXT[index as usize].load(Relaxed);
        policy.retire(ThreadId::new(index as usize));
        index = next;
    }
}

/// Empties the list in the child of a fork, which has one thread; the policy frees the entries itself.
pub(crate) fn restart_in_child() {
    HEAD.store(NONE, Relaxed);
}
