//! The queue's ring: records of bytes between two commit words.
//!
//! | word | upper half | lower half |
//! |---|---|---|
//! | `tail` | records put, ever | where the next one goes |
//! | `head` | records taken, ever | where the next one is |
//!
//! A record is a length and its bytes, in words of eight. It is written beyond `tail`,
//! and exists from the moment `tail` moves, in one store that moves both halves; it is
//! gone from the moment `head` does. So a putter that is killed half-way has put
//! nothing, and a getter that is killed half-way has taken nothing.
//!
//! Puts and gets exclude each other by a guard (robust.rs). While the ring is empty both
//! positions go back to the start, so that a queue that is kept empty touches few pages;
//! `rewinding` is set around these two stores, and who enters after a death finishes them.
//!
//! Lengths and positions come from shared memory: they are held against the ring's size
//! before use. Invariant: no value of any word leads outside of the ring.

use crate::bell::Bell;
use crate::kernel::{Kernel, Step};
use crate::robust::{Guarded, release_guard, try_guard};
use crate::shim::{AtomicU32, AtomicU64, Ordering};

const LOW: u64 = 0xffff_ffff;
const ONE: u64 = 1 << 32;

/// The shared words of a ring.
#[derive(Debug, Default)]
#[repr(C)]
pub struct RingWords {
    guard: AtomicU32,
    rewinding: AtomicU32,
    head: AtomicU64,
    tail: AtomicU64,
    /// Records that `task_done` was called for, ever.
    done: AtomicU32,
    /// Deaths inside of the guard.
    deaths: AtomicU32,
    is_shut: AtomicU32,
    /// Rung when a record was put.
    pub not_empty: Bell,
    /// Rung when one was taken.
    pub not_full: Bell,
    /// Rung when all are done.
    pub all_done: Bell,
}

/// A ring: its words and its bytes.
#[derive(Debug, Clone, Copy)]
pub struct Ring<'a> {
    /// The words.
    pub words: &'a RingWords,
    /// The bytes, in words of eight; fewer than 2^32.
    pub data: &'a [AtomicU64],
    /// The largest number of records; 0 for no bound.
    pub max_records: u32,
}

/// What became of a get.
#[derive(Debug, PartialEq, Eq)]
pub enum Take {
    /// A record.
    Record(Vec<u8>),
    /// Nothing is left, and nothing will come.
    Shut,
    /// The words make no sense: somebody wrote over them.
    Damaged,
}

fn words_for(bytes: usize) -> u64 {
    1 + bytes.div_ceil(8) as u64
}

impl<'a> Ring<'a> {
    /// The longest record that can ever be put, in bytes.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.data.len().saturating_sub(2) * 8
    }

    fn used(&self, head: u64, tail: u64) -> Option<u64> {
        let (size, head_at, tail_at) = (self.data.len() as u64, head & LOW, tail & LOW);
        if head_at >= size || tail_at >= size {
            return None;
        }
        if head >> 32 == tail >> 32 {
            return (head_at == tail_at).then_some(0);
        }
        let used = (tail_at + size - head_at) % size;
        (used > 0).then_some(used)
    }

    fn enter<K: Kernel>(&self, has_slept: bool, kernel: &K) -> Guarded<'a> {
        let guarded = try_guard(&self.words.guard, has_slept, kernel);
        if let Guarded::Inside(true) = guarded {
            self.words.deaths.fetch_add(1, Ordering::Relaxed);
            self.recover();
        }
        guarded
    }

    /// Finish what somebody did not live to finish.
    fn recover(&self) {
        if self.words.rewinding.load(Ordering::Relaxed) != 0 {
            let count = self.words.tail.load(Ordering::Relaxed) & !LOW;
            self.words.head.store(count, Ordering::Relaxed);
            self.words.tail.store(count, Ordering::Relaxed);
            self.words.rewinding.store(0, Ordering::Release);
        }
        // The dead one may have owed a wake-up.
        self.words.not_empty.relisten();
        self.words.not_full.relisten();
    }

    /// Put a record; false if the queue is shut. `has_slept` on which word: see `Step`.
    ///
    /// The record is not longer than `longest`.
    pub fn put<K: Kernel>(&self, record: &[u8], has_slept: bool, kernel: &K) -> Step<'a, bool> {
        if let Guarded::Sleep(word, awaited) = self.enter(has_slept, kernel) {
            return Step::Sleep(word, awaited);
        }
        let outcome = self.put_inside(record);
        let wakes = matches!(outcome, Step::Done(true)) && self.words.not_empty.silence();
        // One that was woken for room leaves room for another: it may be asleep still.
        let passes_on = has_slept && matches!(outcome, Step::Done(true));
        release_guard(&self.words.guard, kernel);
        if wakes {
            self.words.not_empty.wake(1, kernel);
        }
        if passes_on {
            self.words.not_full.relisten();
        }
        outcome
    }

    fn put_inside(&self, record: &[u8]) -> Step<'a, bool> {
        let words = self.words;
        if words.is_shut.load(Ordering::Relaxed) != 0 {
            return Step::Done(false);
        }
        let (head, mut tail) = (words.head.load(Ordering::Relaxed), words.tail.load(Ordering::Relaxed));
        let size = self.data.len() as u64;
        // Words that make no sense are a full ring: nothing is written over.
        let used = self.used(head, tail).unwrap_or(size);
        if used == 0 && tail & LOW != 0 {
            self.rewind(tail & !LOW);
            tail &= !LOW;
        }
        let records = ((tail >> 32) as u32).wrapping_sub((words.head.load(Ordering::Relaxed) >> 32) as u32);
        let is_full = self.max_records != 0 && records >= self.max_records;
        if is_full || used + words_for(record.len()) >= size {
            let (word, heard) = words.not_full.listen();
            return Step::Sleep(word, heard);
        }
        let end = self.write(tail & LOW, record);
        // ORDERING: release pairs with the acquire in `take_inside`: the record is there before it exists.
        words
            .tail
            .store((tail & !LOW).wrapping_add(ONE) | end, Ordering::Release);
        Step::Done(true)
    }

    fn rewind(&self, count: u64) {
        self.words.rewinding.store(1, Ordering::Relaxed);
        self.words.head.store(count, Ordering::Release);
        self.words.tail.store(count, Ordering::Release);
        self.words.rewinding.store(0, Ordering::Release);
    }

    fn write(&self, at: u64, record: &[u8]) -> u64 {
        let size = self.data.len();
        let mut at = at as usize;
        self.data[at].store(record.len() as u64, Ordering::Relaxed);
        let (whole, rest) = record.as_chunks::<8>();
        for chunk in whole {
            at = if at + 1 == size { 0 } else { at + 1 };
            self.data[at].store(u64::from_le_bytes(*chunk), Ordering::Relaxed);
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            at = if at + 1 == size { 0 } else { at + 1 };
            self.data[at].store(u64::from_le_bytes(last), Ordering::Relaxed);
        }
        (if at + 1 == size { 0 } else { at + 1 }) as u64
    }

    /// Take the oldest record.
    pub fn get<K: Kernel>(&self, has_slept: bool, kernel: &K) -> Step<'a, Take> {
        if let Guarded::Sleep(word, awaited) = self.enter(has_slept, kernel) {
            return Step::Sleep(word, awaited);
        }
        let outcome = self.take_inside();
        let took = matches!(outcome, Step::Done(Take::Record(_)));
        let wakes = took && self.words.not_full.silence();
        let passes_on = has_slept && took;
        let wakes_next = passes_on && !self.is_empty();
        release_guard(&self.words.guard, kernel);
        if wakes {
            self.words.not_full.wake(1, kernel);
        }
        if wakes_next {
            self.words.not_empty.wake(1, kernel);
        }
        if passes_on {
            self.words.not_empty.relisten();
        }
        outcome
    }

    fn take_inside(&self) -> Step<'a, Take> {
        let words = self.words;
        // ORDERING: acquire pairs with the release in `put_inside`.
        let (head, tail) = (words.head.load(Ordering::Relaxed), words.tail.load(Ordering::Acquire));
        let Some(used) = self.used(head, tail) else {
            return Step::Done(Take::Damaged);
        };
        if used == 0 {
            if words.is_shut.load(Ordering::Relaxed) != 0 {
                return Step::Done(Take::Shut);
            }
            let (word, heard) = words.not_empty.listen();
            return Step::Sleep(word, heard);
        }
        match self.read(head & LOW, used) {
            Some((record, end)) => {
                words
                    .head
                    .store((head & !LOW).wrapping_add(ONE) | end, Ordering::Release);
                Step::Done(Take::Record(record))
            }
            None => Step::Done(Take::Damaged),
        }
    }

    fn read(&self, at: u64, used: u64) -> Option<(Vec<u8>, u64)> {
        let size = self.data.len();
        let mut at = at as usize;
        let length = usize::try_from(self.data[at].load(Ordering::Relaxed)).ok()?;
        if length > self.longest() || words_for(length) > used {
            return None;
        }
        let mut record = Vec::with_capacity(length.next_multiple_of(8));
        for _ in 0..length.div_ceil(8) {
            at = if at + 1 == size { 0 } else { at + 1 };
            record.extend_from_slice(&self.data[at].load(Ordering::Relaxed).to_le_bytes());
        }
        record.truncate(length);
        Some((record, (if at + 1 == size { 0 } else { at + 1 }) as u64))
    }

    /// How many records there are.
    #[must_use]
    pub fn len(&self) -> u32 {
        let head = self.words.head.load(Ordering::Acquire);
        let tail = self.words.tail.load(Ordering::Acquire);
        ((tail >> 32) as u32).wrapping_sub((head >> 32) as u32)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether no record fits, by number.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.max_records != 0 && self.len() >= self.max_records
    }

    /// Say that a record taken before is dealt with; false if all are already.
    pub fn task_done<K: Kernel>(&self, kernel: &K) -> bool {
        let counted = self
            .words
            .done
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |done| {
                (done != self.put_count()).then_some(done.wrapping_add(1))
            });
        if counted.is_ok_and(|before| before.wrapping_add(1) == self.put_count()) {
            self.words.all_done.ring(crate::bell::ALL, kernel);
        }
        counted.is_ok()
    }

    fn put_count(&self) -> u32 {
        (self.words.tail.load(Ordering::SeqCst) >> 32) as u32
    }

    /// Records put and not yet dealt with.
    #[must_use]
    pub fn unfinished(&self) -> u32 {
        self.put_count().wrapping_sub(self.words.done.load(Ordering::SeqCst))
    }

    /// Wait until all records are dealt with.
    pub fn join(&self) -> Step<'a, ()> {
        if self.unfinished() == 0 {
            return Step::Done(());
        }
        let (word, heard) = self.words.all_done.listen();
        if self.unfinished() == 0 {
            return Step::Done(());
        }
        Step::Sleep(word, heard)
    }

    /// Refuse further records; who waits is woken.
    pub fn shut<K: Kernel>(&self, kernel: &K) {
        self.words.is_shut.store(1, Ordering::SeqCst);
        self.words.not_empty.ring(crate::bell::ALL, kernel);
        self.words.not_full.ring(crate::bell::ALL, kernel);
    }

    /// Whether it refuses records.
    #[must_use]
    pub fn is_shut(&self) -> bool {
        self.words.is_shut.load(Ordering::SeqCst) != 0
    }

    /// How many processes have died inside of the guard.
    #[must_use]
    pub fn deaths(&self) -> u32 {
        self.words.deaths.load(Ordering::Relaxed)
    }
}
