//! The queue's ring: a bounded buffer of whole records between two commit words, with one guard for putters and one
//! for getters.
//!
//! | word | upper half | lower half |
//! |---|---|---|
//! | `tail` | records put, ever | position of the next record to put |
//! | `head` | records taken, ever | position of the next record to take |
//! | `origin` | number of a record that was put into an empty ring | its position, which overrides `head` |
//!
//! A record is a word with its tag and length, followed by its bytes in words of eight. A putter writes it beyond
//! `tail`. The record exists from the moment one store moves both halves of `tail`, and no longer exists once `head`
//! moves. So a putter that is killed half-way has put nothing, and a getter that is killed half-way has taken
//! nothing.
//!
//! Putters exclude each other by one guard (robust.rs) and getters by another, so a putter and a getter never
//! contend. Each side writes its own cache lines, and remembers the last value it read of the other side's word. It
//! reads the word again when the remembered value is not enough. A remembered value is a past value of a word that
//! only grows, so it errs on the safe side.
//!
//! A putter that finds the ring empty, far from the start, starts over at the start: a queue that is kept empty
//! touches few pages. `head` belongs to the getters, so the putter writes the record's position into `origin` before
//! it moves `tail`. If the putter is killed in between, the next putter writes `origin` again. `origin` is cleared
//! after the record is taken, long before its number recurs.
//!
//! `shortest.rs` decides which sleeper a putter wakes that found no room. `unfinished.rs` counts what `join` waits
//! for.
//!
//! Lengths and positions come from shared memory: they are checked against the ring's size before use.
//!
//! Invariant: no value of any word leads outside the ring.

use super::shortest::{PutAttempts, Shortest};
use super::unfinished::Promises;
use crate::kernel::{Kernel, Slept, Step};
use crate::ownership::{Guarded, release_guard, try_guard};
use crate::shim::{AtomicU32, AtomicU64, Ordering};
use crate::wake::Bell;

const LOW: u64 = 0xffff_ffff;
const ONE: u64 = 1 << 32;
/// The value of `origin` without a record.
const NOWHERE: u64 = u64::MAX;
/// Words after which an empty ring starts over: a page.
const LAP: u64 = 512;
/// Puts after which a putter reads `head` although it has room.
const PATROL: u32 = 32;
const TAG_SHIFT: u32 = 56;

/// The words that putters write, in cache lines of their own.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct PutSide {
    guard: AtomicU32,
    is_shut: AtomicU32,
    pub(crate) tail: AtomicU64,
    head_seen: AtomicU64,
    /// Rung when a record was put.
    not_empty: Bell,
    shortest: Shortest,
}

/// The words that getters write.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct GetSide {
    guard: AtomicU32,
    _reserved: AtomicU32,
    head: AtomicU64,
    tail_seen: AtomicU64,
    /// Rung when a record was taken.
    not_full: Bell,
}

/// The word that putters write occasionally and both sides read.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Origin(AtomicU64);

/// The shared words of a ring.
#[derive(Debug, Default)]
#[repr(C)]
pub struct RingWords {
    pub(crate) put: PutSide,
    get: GetSide,
    origin: Origin,
    /// Number of `task_done` calls.
    pub(crate) done: AtomicU32,
    /// Number of deaths inside a guard.
    deaths: AtomicU32,
    /// Rung when all are done.
    pub(crate) all_done: Bell,
    pub(crate) promises: Promises,
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

/// The outcome of a get.
#[derive(Debug, PartialEq, Eq)]
pub enum Take {
    /// A record: its tag and its bytes.
    Record(u8, Vec<u8>),
    /// The queue is empty and shut.
    Shut,
    /// The words are inconsistent: a process overwrote them.
    Damaged,
}

fn words_for(bytes: usize) -> u64 {
    1 + bytes.div_ceil(8) as u64
}

pub(crate) fn count_of(word: u64) -> u32 {
    (word >> 32) as u32
}

impl<'a> Ring<'a> {
    /// The longest record that can ever be put, in bytes.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.data.len().saturating_sub(2) * 8
    }

    fn size(&self) -> u64 {
        self.data.len() as u64
    }

    /// The position of the record that `head` names.
    fn record_position(&self, head: u64) -> u64 {
        // ORDERING: relaxed: written before `tail` moved, and the caller has read `tail` since.
        let origin = self.words.origin.0.load(Ordering::Relaxed);
        let is_there = origin != NOWHERE && count_of(origin) == count_of(head);
        (if is_there { origin } else { head }) & LOW
    }

    /// Whether that many words fit. Inconsistent words count as a full ring: nothing is overwritten.
    fn has_room(&self, head: u64, tail: u64, need: u64) -> bool {
        let (size, tail_at) = (self.size(), tail & LOW);
        let records = count_of(tail).wrapping_sub(count_of(head));
        if records == 0 {
            return tail_at < size && need < size;
        }
        if self.max_records != 0 && records >= self.max_records {
            return false;
        }
        let head_at = self.record_position(head);
        if head_at >= size || tail_at >= size || head_at == tail_at {
            return false;
        }
        (tail_at + size - head_at) % size + need < size
    }

    /// Whether a record of that many bytes would fit, checked without the guard. If not, at some moment there was no
    /// room.
    #[must_use]
    pub fn fits(&self, bytes: usize) -> bool {
        // ORDERING: `head` before `tail` and again after it, in one order; pairs with the stores in `take_inside` and
        // `put_inside`.
        let head = self.words.get.head.load(Ordering::SeqCst);
        let tail = self.words.put.tail.load(Ordering::SeqCst);
        // A record taken and another put between the loads would look like one more record.
        self.has_room(head, tail, words_for(bytes)) || self.words.get.head.load(Ordering::SeqCst) != head
    }

    /// Whether the word is one of the guards. A thread that sleeps there waits to enter, not for room or a record.
    #[must_use]
    pub fn is_guard(&self, word: &AtomicU32) -> bool {
        std::ptr::eq(word, &raw const self.words.put.guard) || std::ptr::eq(word, &raw const self.words.get.guard)
    }

    fn enter<K: Kernel>(&self, guard: &'a AtomicU32, slept: Slept, kernel: &K) -> Guarded<'a> {
        // A thread that slept for a record or for room left no sleeper behind at the guard.
        let guarded = try_guard(guard, slept.was_on(guard), kernel);
        if let Guarded::Inside(true) = guarded {
            self.words.deaths.fetch_add(1, Ordering::Relaxed);
            // The dead thread may have owed a wake-up.
            self.words.put.not_empty.relisten();
            self.words.get.not_full.relisten();
        }
        guarded
    }

    /// Passes a wake-up on after a bell woke the caller: other sleepers may still be there, and there may be more for
    /// them.
    fn pass_on<K: Kernel>(&self, bell: &Bell, has_more: bool, kernel: &K) {
        bell.relisten();
        if has_more {
            bell.ring(1, kernel);
        }
    }

    /// Puts a record; false if the queue is shut.
    ///
    /// The record is not longer than `longest`; `attempts` belongs to this record alone.
    pub fn put<K: Kernel>(
        &self,
        tag: u8,
        record: &[u8],
        attempts: &PutAttempts,
        slept: Slept,
        kernel: &K,
    ) -> Step<'a, bool> {
        let (put, not_full) = (&self.words.put, &self.words.get.not_full);
        if let Guarded::Sleep(word, awaited) = self.enter(&put.guard, slept, kernel) {
            if slept.has_slept() && !slept.was_on(&put.guard) {
                // The bell woke it, and it may give up before it enters the guard.
                self.pass_on(not_full, self.has_room_for_shortest(), kernel);
            }
            return Step::Sleep(word, awaited);
        }
        let outcome = self.put_inside(tag, record);
        let was_spurious = match outcome {
            Step::Sleep(..) => {
                let (need, taken) = (words_for(record.len()), count_of(put.head_seen.load(Ordering::Relaxed)));
                let may_another_fit = put.shortest.refuse(need as u32, taken, attempts, slept);
                may_another_fit && slept.has_slept() && self.has_room_for_shortest()
            }
            Step::Done(_) => false,
        };
        release_guard(&put.guard, kernel);
        if matches!(outcome, Step::Done(true)) {
            put.not_empty.ring(1, kernel);
            if slept.has_slept() {
                self.pass_on(not_full, self.has_room_for_shortest(), kernel);
            }
        }
        if was_spurious {
            // The bell was rung already; a thread about to sleep has re-checked since.
            not_full.wake(1, kernel);
        }
        outcome
    }

    /// Whether the shortest of the waiting records would fit; a guess, without the guard.
    fn has_room_for_shortest(&self) -> bool {
        // ORDERING: pairs with the stores in `take_inside` and `put_inside`; a guess needs no order of the two.
        let head = self.words.get.head.load(Ordering::Acquire);
        let tail = self.words.put.tail.load(Ordering::Acquire);
        self.has_room(head, tail, self.words.put.shortest.words())
    }

    fn put_inside(&self, tag: u8, record: &[u8]) -> Step<'a, bool> {
        let put = &self.words.put;
        if put.is_shut.load(Ordering::Relaxed) != 0 {
            return Step::Done(false);
        }
        let (tail, need) = (put.tail.load(Ordering::Relaxed), words_for(record.len()));
        let mut head = put.head_seen.load(Ordering::Relaxed);
        let is_patrol = count_of(tail).is_multiple_of(PATROL);
        if is_patrol || !self.has_room(head, tail, need) {
            head = self.reload_head();
            self.forget_origin(head);
        }
        if !self.has_room(head, tail, need) {
            let (word, heard) = self.words.get.not_full.listen();
            head = self.reload_head();
            if !self.has_room(head, tail, need) {
                return Step::Sleep(word, heard);
            }
        }
        let start = self.start(head, tail, need);
        let end = self.write(start, tag, record);
        // ORDERING: pairs with the load in `reload_tail`: the record's bytes are written before it exists.
        // Sequentially consistent with the load of the bell that follows, and with a getter's opposite order.
        put.tail.store((tail & !LOW).wrapping_add(ONE) | end, Ordering::SeqCst);
        Step::Done(true)
    }

    fn reload_head(&self) -> u64 {
        // ORDERING: pairs with the store in `take_inside`: a getter has read the record before it moves `head`.
        // ORDERING: pairs with the stores in `take_inside` and `put_inside`.
        let head = self.words.get.head.load(Ordering::SeqCst);
        self.words.put.head_seen.store(head, Ordering::Relaxed);
        head
    }

    fn forget_origin(&self, head: u64) {
        let origin = &self.words.origin.0;
        let known = origin.load(Ordering::Relaxed);
        if known != NOWHERE && count_of(head).wrapping_sub(count_of(known)).cast_signed() > 0 {
            origin.store(NOWHERE, Ordering::Relaxed);
        }
    }

    /// The position of the next record.
    fn start(&self, head: u64, tail: u64, need: u64) -> u64 {
        let at = tail & LOW;
        if count_of(head) != count_of(tail) {
            return at;
        }
        let starts_over = at >= LAP.min(self.size() / 2) && need <= at;
        let start = if starts_over { 0 } else { at };
        if self.record_position(tail) != start {
            self.words.origin.0.store(tail & !LOW | start, Ordering::Relaxed);
        }
        start
    }

    fn after(&self, at: usize) -> usize {
        if at + 1 == self.data.len() { 0 } else { at + 1 }
    }

    fn write(&self, at: u64, tag: u8, record: &[u8]) -> u64 {
        let mut at = at as usize;
        self.data[at].store(u64::from(tag) << TAG_SHIFT | record.len() as u64, Ordering::Relaxed);
        let (whole, rest) = record.as_chunks::<8>();
        for chunk in whole {
            at = self.after(at);
            self.data[at].store(u64::from_le_bytes(*chunk), Ordering::Relaxed);
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            at = self.after(at);
            self.data[at].store(u64::from_le_bytes(last), Ordering::Relaxed);
        }
        self.after(at) as u64
    }

    /// Takes the oldest record.
    pub fn get<K: Kernel>(&self, slept: Slept, kernel: &K) -> Step<'a, Take> {
        let (get, not_empty) = (&self.words.get, &self.words.put.not_empty);
        if let Guarded::Sleep(word, awaited) = self.enter(&get.guard, slept, kernel) {
            if slept.has_slept() && !slept.was_on(&get.guard) {
                // The bell woke it, and it may give up before it enters the guard.
                self.pass_on(not_empty, !self.is_empty(), kernel);
            }
            return Step::Sleep(word, awaited);
        }
        let outcome = self.take_inside();
        release_guard(&get.guard, kernel);
        if matches!(outcome, Step::Done(Take::Record(..))) {
            get.not_full.ring(1, kernel);
            if slept.has_slept() {
                self.pass_on(not_empty, !self.is_empty(), kernel);
            }
        }
        outcome
    }

    fn take_inside(&self) -> Step<'a, Take> {
        let (get, not_empty) = (&self.words.get, &self.words.put.not_empty);
        let head = get.head.load(Ordering::Relaxed);
        let has_record = |tail: u64| count_of(tail) != count_of(head);
        if !has_record(get.tail_seen.load(Ordering::Relaxed)) && !has_record(self.reload_tail()) {
            let (word, heard) = not_empty.listen();
            // A `shut` after `listen` rings. No putter puts once the queue is seen to be shut, so the check that
            // follows is final.
            let is_shut = self.is_shut();
            if !has_record(self.reload_tail()) {
                return if is_shut {
                    Step::Done(Take::Shut)
                } else {
                    Step::Sleep(word, heard)
                };
            }
        }
        match self.read(self.record_position(head)) {
            Some((tag, record, end)) => {
                // ORDERING: pairs with the load in `reload_head`; sequentially consistent with the load of the bell.
                get.head.store((head & !LOW).wrapping_add(ONE) | end, Ordering::SeqCst);
                Step::Done(Take::Record(tag, record))
            }
            None => Step::Done(Take::Damaged),
        }
    }

    fn reload_tail(&self) -> u64 {
        // ORDERING: pairs with the store in `put_inside`.
        let tail = self.words.put.tail.load(Ordering::SeqCst);
        self.words.get.tail_seen.store(tail, Ordering::Relaxed);
        tail
    }

    fn read(&self, at: u64) -> Option<(u8, Vec<u8>, u64)> {
        let mut at = usize::try_from(at).ok()?;
        let first = self.data.get(at)?.load(Ordering::Relaxed);
        let tag = (first >> TAG_SHIFT) as u8;
        let length = usize::try_from(first & ((1 << TAG_SHIFT) - 1)).ok()?;
        if length > self.longest() {
            return None;
        }
        let mut record = Vec::with_capacity(length.next_multiple_of(8));
        for _ in 0..length.div_ceil(8) {
            at = self.after(at);
            record.extend_from_slice(&self.data[at].load(Ordering::Relaxed).to_le_bytes());
        }
        record.truncate(length);
        Some((tag, record, self.after(at) as u64))
    }

    /// The number of records.
    #[must_use]
    pub fn len(&self) -> u32 {
        // ORDERING: pairs with the stores in `take_inside` and `put_inside`.
        let head = self.words.get.head.load(Ordering::SeqCst);
        let tail = self.words.put.tail.load(Ordering::SeqCst);
        count_of(tail).wrapping_sub(count_of(head))
    }

    /// Whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the number of records has reached its bound.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.max_records != 0 && self.len() >= self.max_records
    }

    /// Refuses further records and wakes all waiters. Every put that began earlier has ended by then.
    pub fn shut<K: Kernel>(&self, slept: Slept, kernel: &K) -> Step<'a, ()> {
        let put = &self.words.put;
        if let Guarded::Sleep(word, awaited) = self.enter(&put.guard, slept, kernel) {
            return Step::Sleep(word, awaited);
        }
        // ORDERING: pairs with the load in `is_shut`, which a getter does after `listen`.
        put.is_shut.store(1, Ordering::SeqCst);
        release_guard(&put.guard, kernel);
        // All sleepers are woken, whether or not HEARD is set: a bell may have been rung for one of them, which does
        // not ring for the others when it finds nothing more.
        for bell in [&put.not_empty, &self.words.get.not_full] {
            bell.silence();
            bell.wake(crate::wake::ALL, kernel);
        }
        Step::Done(())
    }

    /// Whether the queue refuses records.
    #[must_use]
    pub fn is_shut(&self) -> bool {
        // ORDERING: pairs with the store in `shut`.
        self.words.put.is_shut.load(Ordering::SeqCst) != 0
    }

    /// The number of processes that died inside a guard.
    #[must_use]
    pub fn deaths(&self) -> u32 {
        self.words.deaths.load(Ordering::Relaxed)
    }
}
