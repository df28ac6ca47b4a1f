//! Permits: the core of Lock (one permit) and of the semaphores.
//!
//! | word | meaning |
//! |---|---|
//! | bit 0 | CONTENDED: somebody may be in the queue. Legal to be set with an empty queue; illegal to be clear with a waiter in it |
//! | other bits | number of free permits |
//!
//! Is it fair? A thread that does not have to wait may overtake a waiter that
//! was told to try and is still on its way: otherwise each release under
//! contention would cost two context switches (a lock convoy). But a waiter that
//! came in vain is handed the next permit, so it is overtaken once at most after
//! it arrived; and tasks are always handed theirs. Among waiters: first come,
//! first served.
//!
//! Where calls are serialised by the GIL more than one waiter may be told to try for
//! the same permit (see [`crate::wake_ahead`]): they come one after the other anyway.
//!
//! Things that don't work: granting always (convoys: 20 times slower with two
//! threads); never granting (a task that needs a loop iteration to come back
//! never wins against a thread).

use crate::shim::{Arc, Ordering, Slow, Word, is_serialised};
use crate::waiter::{GRANTED, Port, Waiter, Wakes};
use crate::waiter_queue::Line;

const CONTENDED: usize = 1;
const ONE: usize = 2;

/// A release that would exceed the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow;

/// A number of permits and a line of those who want one.
#[derive(Debug)]
pub struct Permits<P> {
    word: Word,
    slow: Slow<Line<P>>,
}

impl<P: Port> Permits<P> {
    /// Start with `free` permits.
    pub fn new(free: usize) -> Self {
        Self {
            word: Word::new(free.saturating_mul(ONE)),
            slow: Slow::new(),
        }
    }

    /// Permits that nobody holds.
    pub fn free(&self) -> usize {
        self.word.load(Ordering::Relaxed) / ONE
    }

    /// Parties in the queue.
    pub fn waiting(&self) -> usize {
        self.slow.peek().map_or(0, |line| line.len())
    }

    /// Of a single permit: the task that was granted it and has not come for it yet, if it `is_one`.
    pub fn find_grantee<T>(&self, is_one: impl Fn(usize) -> Option<T>) -> Option<T> {
        self.slow.peek().and_then(|line| is_one(line.grantee))
    }

    /// Whether a task has ever waited.
    pub fn has_seen_tasks(&self) -> bool {
        self.slow.peek().is_some_and(|line| line.has_seen_tasks)
    }

    /// The first task in the queue that `is_one`.
    pub fn find_waiting<T>(&self, is_one: impl Fn(usize) -> Option<T>) -> Option<T> {
        let line = self.slow.peek()?;
        line.iter().find_map(|waiter| is_one(waiter.port.task()))
    }

    /// Take one permit if there is one.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        // ORDERING: acquires what the last holder released in `put_back`.
        let take = |word: usize| word.checked_sub(ONE);
        self.word.update(Ordering::Acquire, take).is_some()
    }

    /// Give `count` permits back; at most `bound` may be free afterwards.
    ///
    /// # Errors
    /// [`Overflow`] if more than `bound` would be free; then nothing changed.
    #[inline]
    pub fn release(&self, count: usize, bound: usize) -> Result<(), Overflow> {
        let word = self.word.load(Ordering::Relaxed);
        if word & CONTENDED == 0 && word / ONE + count <= bound {
            // ORDERING: releases to the next `try_acquire`.
            if self.word.replace(word, word + count * ONE, Ordering::Release) {
                return Ok(());
            }
        }
        self.release_slow(count, bound)
    }

    #[cold]
    fn release_slow(&self, mut count: usize, bound: usize) -> Result<(), Overflow> {
        let mut wakes = Wakes::none();
        {
            let mut line = self.slow.lock();
            if self.free() + count > bound {
                return Err(Overflow);
            }
            while count > 0 && line.heirs() == 0 {
                match line.first_idle() {
                    Some(first) if first.must_grant() => {
                        line.grant_first(&mut wakes);
                        count -= 1;
                    }
                    _ => break,
                }
            }
            self.add(count, bound)?;
            self.settle(&mut line, &mut wakes);
        }
        wakes.run();
        Ok(())
    }

    /// Add free permits, if there are not too many by now: with an empty queue others release
    /// without the mutex, since it was last looked. With a waiter in it nobody does, so
    /// what has been granted is never followed by an error.
    fn add(&self, count: usize, bound: usize) -> Result<(), Overflow> {
        let add = |word: usize| (word / ONE + count <= bound).then_some(word + count * ONE);
        self.word.update(Ordering::Release, add).map(drop).ok_or(Overflow)
    }

    /// Enqueue the waiter unless a permit is free. True: it has one.
    pub fn begin(&self, waiter: &Arc<Waiter<P>>) -> bool {
        let mut line = self.slow.lock();
        // ORDERING: whoever releases after this sees CONTENDED and comes to the mutex.
        self.word.set(CONTENDED, Ordering::AcqRel);
        if self.try_acquire() {
            self.tidy(&mut line);
            return true;
        }
        line.append(waiter);
        false
    }

    /// Take over a waiter from another queue, as if it had called `begin` and
    /// must be woken: a notified party moves on to the lock without running.
    pub(crate) fn adopt(&self, waiter: &Arc<Waiter<P>>, wakes: &mut Wakes<P>) {
        let mut line = self.slow.lock();
        self.word.set(CONTENDED, Ordering::AcqRel);
        line.append(waiter);
        self.settle(&mut line, wakes);
    }

    /// After a wake-up: true if the waiter has its permit now, else it keeps its place.
    pub fn resume(&self, waiter: &Arc<Waiter<P>>) -> bool {
        let mut wakes = Wakes::none();
        let served = {
            let mut line = self.slow.lock();
            let served = if waiter.state() == GRANTED {
                line.grantee = 0;
                true
            } else if self.try_acquire() {
                line.leave(waiter);
                line.eagerness.served(waiter.was_held_up());
                true
            } else {
                line.eagerness.in_vain();
                line.stay(waiter, true);
                false
            };
            self.settle(&mut line, &mut wakes);
            served
        };
        wakes.run();
        served
    }

    /// Withdraw. True: it was granted before, the caller owns the permit.
    pub fn cancel(&self, waiter: &Arc<Waiter<P>>) -> bool {
        let mut wakes = Wakes::none();
        let granted = {
            let mut line = self.slow.lock();
            line.leave(waiter);
            let granted = waiter.state() == GRANTED;
            if granted {
                line.grantee = 0;
            }
            self.settle(&mut line, &mut wakes);
            granted
        };
        wakes.run();
        granted
    }

    /// Restore the line's invariant: grant or call for as long as permits are free.
    fn settle(&self, line: &mut Line<P>, wakes: &mut Wakes<P>) {
        while self.free() > line.heirs() {
            let Some(next) = line.first_idle() else {
                break;
            };
            if !next.must_grant() {
                line.call_first(wakes);
            } else if self.try_acquire() {
                line.grant_first(wakes);
            }
        }
        let free = self.free();
        if free > 0 && is_serialised() {
            line.call_up_to(line.eagerness.heirs(free), wakes);
        }
        self.tidy(line);
    }

    fn tidy(&self, line: &mut Line<P>) {
        if line.is_empty() {
            self.word.clear(CONTENDED, Ordering::Relaxed);
        }
    }

    /// Start anew with `free` permits, for an `__init__` that comes again: who waits goes on waiting, for these.
    pub fn restart(&self, free: usize) {
        let put = |word: usize| Some(word & CONTENDED | free.wrapping_mul(ONE));
        // ORDERING: as `release`; who finds CONTENDED comes to the mutex.
        let before = self.word.update(Ordering::AcqRel, put);
        if before.unwrap_or_default() & CONTENDED == 0 {
            return;
        }
        let mut wakes = Wakes::none();
        self.settle(&mut self.slow.lock(), &mut wakes);
        wakes.run();
    }

    /// Start anew: for the child of a fork, where the holder does not exist.
    pub fn reset(&self, free: usize) {
        if let Some(mut line) = self.slow.peek() {
            *line = Line::default();
        }
        self.word.store(free * ONE, Ordering::Release);
    }
}
