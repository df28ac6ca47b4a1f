//! A counting semaphore with a fair wait queue: the core of Lock (one permit) and of the semaphores.
//!
//! | word | meaning |
//! |---|---|
//! | bit 0 | CONTENDED: a waiter may be in the queue. Legal to be set with an empty queue; illegal to be clear with a waiter in it |
//! | other bits | number of free permits |
//!
//! Is it fair? A thread that need not wait may overtake a waiter that was notified and has not run yet.
//! Otherwise each release under contention would cost two context switches (a lock convoy). But a waiter
//! whose wake-up was spurious is granted the next permit, so it is overtaken at most once after it ran; and
//! tasks are always granted theirs. Among waiters: first come, first served.
//!
//! Where the GIL serialises all calls, more than one waiter may be notified for the same permit (see
//! [`crate::wake_ahead`]): they re-check one after the other anyway.
//!
//! Things that don't work: always granting (convoys: 20 times slower with two threads); never granting (a
//! task, which needs a loop iteration to run again, never wins against a thread).
//!
//! Invariant: while a waiter is in the queue, permits are released only under the mutex.

use crate::shim::{Arc, Ordering, Slow, Word, is_serialised};
use crate::waiter::{GRANTED, Unparker, Waiter, Wakes};
use crate::waiter_queue::WaiterQueue;

const CONTENDED: usize = 1;
const ONE: usize = 2;

/// A release that would exceed the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow;

/// A number of permits, and the queue of those who wait for one.
#[derive(Debug)]
pub struct Permits<P> {
    word: Word,
    slow: Slow<WaiterQueue<P>>,
}

impl<P: Unparker> Permits<P> {
    /// Start with `free` permits.
    pub fn new(free: usize) -> Self {
        Self {
            word: Word::new(free.saturating_mul(ONE)),
            slow: Slow::new(),
        }
    }

    /// The number of free permits.
    pub fn free(&self) -> usize {
        self.word.load(Ordering::Relaxed) / ONE
    }

    /// The number of waiters.
    pub fn waiting(&self) -> usize {
        self.slow.peek().map_or(0, |queue| queue.len())
    }

    /// For a single permit: `is_one` of the task that was granted it and has not run since.
    pub fn find_grantee<T>(&self, is_one: impl Fn(usize) -> Option<T>) -> Option<T> {
        self.slow.peek().and_then(|queue| is_one(queue.grantee))
    }

    /// Whether a task has ever waited.
    pub fn has_seen_tasks(&self) -> bool {
        self.slow.peek().is_some_and(|queue| queue.has_seen_tasks)
    }

    /// `is_one` of the first task in the queue for which that is not None.
    pub fn find_waiting<T>(&self, is_one: impl Fn(usize) -> Option<T>) -> Option<T> {
        let queue = self.slow.peek()?;
        queue.iter().find_map(|waiter| is_one(waiter.party.task()))
    }

    /// Acquire one permit if one is free.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        // ORDERING: pairs with the release in `release` and `add`: acquires what the last holder wrote.
        let take = |word: usize| word.checked_sub(ONE);
        self.word.update(Ordering::Acquire, take).is_some()
    }

    /// Release `count` permits; at most `bound` may be free afterwards.
    ///
    /// # Errors
    /// [`Overflow`] if more than `bound` would be free; then nothing has changed.
    #[inline]
    pub fn release(&self, count: usize, bound: usize) -> Result<(), Overflow> {
        let word = self.word.load(Ordering::Relaxed);
        if word & CONTENDED == 0 && word / ONE + count <= bound {
            // ORDERING: pairs with the acquire in `try_acquire`.
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
            let mut queue = self.slow.lock();
            if self.free() + count > bound {
                return Err(Overflow);
            }
            while count > 0 && queue.heirs() == 0 {
                match queue.first_idle() {
                    Some(first) if first.must_grant() => {
                        queue.grant_first(&mut wakes);
                        count -= 1;
                    }
                    _ => break,
                }
            }
            self.add(count, bound)?;
            self.serve_waiters(&mut queue, &mut wakes);
        }
        wakes.run();
        Ok(())
    }

    /// Add free permits, unless there would be more than `bound`. With an empty queue other threads release
    /// without the mutex, so the number may have changed since it was read. With a waiter in the queue no
    /// thread does, so a grant is never followed by an error.
    fn add(&self, count: usize, bound: usize) -> Result<(), Overflow> {
        let add = |word: usize| (word / ONE + count <= bound).then_some(word + count * ONE);
        // ORDERING: pairs with the acquire in `try_acquire`.
        self.word.update(Ordering::Release, add).map(drop).ok_or(Overflow)
    }

    /// Enqueue the waiter, unless a permit is free. True: the waiter has one.
    pub fn begin(&self, waiter: &Arc<Waiter<P>>) -> bool {
        let mut queue = self.slow.lock();
        // ORDERING: pairs with `release`: a thread that releases after this sees CONTENDED and takes the
        // mutex.
        self.word.set(CONTENDED, Ordering::AcqRel);
        if self.try_acquire() {
            self.clear_if_empty(&mut queue);
            return true;
        }
        queue.append(waiter);
        false
    }

    /// Take over a waiter from another queue, as if it had called `begin` and slept: a notified party of a
    /// condition moves to the lock's queue without running.
    pub(crate) fn adopt(&self, waiter: &Arc<Waiter<P>>, wakes: &mut Wakes<P>) {
        let mut queue = self.slow.lock();
        // ORDERING: pairs with `release`, as in `begin`.
        self.word.set(CONTENDED, Ordering::AcqRel);
        queue.append(waiter);
        self.serve_waiters(&mut queue, wakes);
    }

    /// After a wake-up: true if the waiter has a permit now, else it keeps its place.
    pub fn resume(&self, waiter: &Arc<Waiter<P>>) -> bool {
        let mut wakes = Wakes::none();
        let served = {
            let mut queue = self.slow.lock();
            let served = if waiter.state() == GRANTED {
                queue.grantee = 0;
                true
            } else if self.try_acquire() {
                queue.leave(waiter);
                queue.wake_ahead.served(waiter.was_held_up());
                true
            } else {
                queue.wake_ahead.spurious();
                queue.requeue(waiter, true);
                false
            };
            self.serve_waiters(&mut queue, &mut wakes);
            served
        };
        wakes.run();
        served
    }

    /// Remove a waiter that gives up. True: it was granted before, and the caller owns the permit.
    pub fn cancel(&self, waiter: &Arc<Waiter<P>>) -> bool {
        let mut wakes = Wakes::none();
        let granted = {
            let mut queue = self.slow.lock();
            queue.leave(waiter);
            let granted = waiter.state() == GRANTED;
            if granted {
                queue.grantee = 0;
            }
            self.serve_waiters(&mut queue, &mut wakes);
            granted
        };
        wakes.run();
        granted
    }

    /// Restore the queue's invariant: grant or notify while permits are free.
    fn serve_waiters(&self, queue: &mut WaiterQueue<P>, wakes: &mut Wakes<P>) {
        while !queue.has_dependable_heirs(self.free()) {
            let Some(next) = queue.first_idle() else {
                break;
            };
            if !next.must_grant() {
                queue.notify_first(wakes);
            } else if self.try_acquire() {
                queue.grant_first(wakes);
            }
        }
        let free = self.free();
        if free > 0 && is_serialised() {
            queue.notify_up_to(queue.wake_ahead.heirs(free), wakes);
        }
        self.clear_if_empty(queue);
    }

    fn clear_if_empty(&self, queue: &mut WaiterQueue<P>) {
        if queue.is_empty() {
            self.word.clear(CONTENDED, Ordering::Relaxed);
        }
    }

    /// Restart with `free` permits, for an `__init__` that is called again: waiters wait on, for these
    /// permits.
    pub fn restart(&self, free: usize) {
        let put = |word: usize| Some(word & CONTENDED | free.wrapping_mul(ONE));
        // ORDERING: pairs with `try_acquire` and `begin`, as in `release`: if CONTENDED was set, the mutex
        // follows.
        let before = self.word.update(Ordering::AcqRel, put);
        if before.unwrap_or_default() & CONTENDED == 0 {
            return;
        }
        let mut wakes = Wakes::none();
        self.serve_waiters(&mut self.slow.lock(), &mut wakes);
        wakes.run();
    }

    /// Restart in the child of a fork, where the holder and the waiters do not exist.
    pub fn reset(&self, free: usize) {
        if let Some(mut queue) = self.slow.peek() {
            *queue = WaiterQueue::default();
        }
        // ORDERING: pairs with the acquire in `try_acquire`.
        self.word.store(free * ONE, Ordering::Release);
    }
}
