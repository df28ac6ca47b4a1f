//! Robust ownership of a segment's word: what Lock, RLock and the writer's side of RWLock share.
//!
//! The word names the holder's thread. The words next to it name its process in readable form, and record whether the
//! last holder died without a repair since.
//!
//! Invariant: `damage` is not zero from a holder's death until `make_consistent`.

use crate::ipc::segment::Body;
use crate::ipc::segment::errors;
use crate::ipc::threads::THREADS;
use crate::ipc::wait::{self, WaitRound, Watch};
use crate::sync::calls::arguments::Timeout;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};
use unsnarl_ipc::{AtomicU32, AtomicU64, Attempt, Crowd, DIED, Kernel, Ordering, Step, TID_MASK, WAITERS, WakeAhead};
use unsnarl_shm::{Entered, Host, Mapping, SegmentError};

/// The words next to a robust word.
#[derive(Debug, Default)]
#[repr(C)]
pub(in crate::ipc) struct OwnershipWords {
    /// Not zero after a holder died, until `make_consistent` is called.
    pub(in crate::ipc) damage: AtomicU32,
    /// How many levels the holder has taken.
    pub(in crate::ipc) depth: AtomicU32,
    /// The process that holds the word, or died with it. 0 while the word is free, between taking it and recording
    /// the holder, and between clearing the record and releasing it.
    pub(in crate::ipc) holder: AtomicU64,
    /// The last process that died with it.
    pub(in crate::ipc) dead: AtomicU64,
    /// How many sleepers a release wakes.
    wake_ahead: WakeAhead,
    /// The threads in `acquire`, while they wait.
    crowd: Crowd,
}

/// The robust word of a segment, and further mappings of it for threads that need one.
#[derive(Default)]
pub(in crate::ipc) struct Ownership {
    aliases: Mutex<Vec<Mapping>>,
}

/// The state in which the caller acquired the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ipc) enum Acquired {
    /// The caller holds the word.
    Sound,
    /// The caller holds the word, and the data it protects may be half-changed.
    Damaged,
}

/// The ownership words, which always come first in the state behind the header.
pub(in crate::ipc) fn words(mapping: &Mapping) -> &OwnershipWords {
    // SAFETY: atomics alone.
    unsafe { mapping.state::<OwnershipWords>() }
}

/// The robust word, marked if its holder died.
#[inline]
fn look(body: &Body) -> u32 {
    unsnarl_ipc::observe(body.segment.mapping.robust_word(), &Host)
}

impl Ownership {
    /// Takes the word if it is free.
    #[inline]
    pub(in crate::ipc) fn try_acquire(&self, body: &Body) -> Option<Acquired> {
        // Read before the word is taken: after a fork the child reads its identity from /proc, which takes longer
        // than all other steps.
        let taker = unsnarl_shm::identity();
        match unsnarl_shm::try_acquire(body.segment.mapping.robust_word(), THREADS) {
            Entered::Listed(Attempt::Busy(_)) => self.try_acquire_from_unmarked(body),
            Entered::Listed(attempt) => Some(self.record_holder(body, attempt, taker)),
            Entered::Unlisted(attempt) => {
                let acquired = self.record_holder(body, attempt, taker);
                self.enter_elsewhere(body).ok().map(|()| acquired)
            }
        }
    }

    /// Takes the word if its holder died without the kernel's mark.
    #[inline]
    fn try_acquire_from_unmarked(&self, body: &Body) -> Option<Acquired> {
        if unsnarl_shm::is_unmarked() && !self.is_held(body) {
            return self.try_acquire(body);
        }
        None
    }

    /// Another thread released what a thread of this process had taken: the robust-list entry stays in use until that
    /// thread returns or ends. Uses the entry of another mapping; without one, the word is released again.
    #[cold]
    fn enter_elsewhere(&self, body: &Body) -> Result<(), SegmentError> {
        let entered = self.enter_alias(body);
        match entered {
            Ok(()) => Host.end(),
            Err(_) => self.release(body, 1),
        }
        entered
    }

    fn enter_alias(&self, body: &Body) -> Result<(), SegmentError> {
        let _alone = unsnarl_shm::alone();
        let mut aliases = self.aliases.lock().unwrap_or_else(PoisonError::into_inner);
        if !aliases.iter().any(|mapping| unsnarl_shm::hold(mapping.robust_word())) {
            let mapping = body.segment.alias()?;
            let is_held = unsnarl_shm::hold(mapping.robust_word());
            debug_assert!(is_held, "no other thread knows the mapping yet");
            aliases.push(mapping);
        }
        Ok(())
    }

    /// Records the new holder.
    #[inline]
    fn record_holder(&self, body: &Body, attempt: Attempt, taker: u64) -> Acquired {
        let words = words(&body.segment.mapping);
        if attempt == Attempt::TakenFromDead {
            words
                .dead
                .store(words.holder.load(Ordering::Relaxed), Ordering::Relaxed);
            // ORDERING: pairs with the acquire in `IpcRWLock::is_damaged`: `dead` is stored before it.
            words.damage.store(1, Ordering::Release);
        }
        words.holder.store(taker, Ordering::Relaxed);
        words.depth.store(1, Ordering::Relaxed);
        if words.damage.load(Ordering::Relaxed) == 0 {
            Acquired::Sound
        } else {
            Acquired::Damaged
        }
    }

    /// Takes the word, or names the word to sleep on. The registration with the kernel stays until `end` is called.
    pub(in crate::ipc) fn attempt<'a>(&'a self, body: &'a Body, round: WaitRound) -> PyResult<Step<'a, Acquired>> {
        let word = body.segment.mapping.robust_word();
        let taker = unsnarl_shm::identity();
        Host.begin(word);
        match unsnarl_ipc::lock_or_sleep(word, round.slept.has_slept(), &Host) {
            Step::Sleep(word, expected) => Ok(Step::Sleep(word, expected)),
            Step::Done(attempt) => {
                let acquired = self.record_holder(body, attempt, taker);
                if unsnarl_shm::hold(word) {
                    Host.end();
                } else if let Err(error) = self.enter_elsewhere(body) {
                    return Err(Python::attach(|py| errors::segment(py, error)));
                }
                Ok(Step::Done(acquired))
            }
        }
    }

    /// Waits for the word; None if the time is up.
    pub(in crate::ipc) fn acquire(&self, py: Python<'_>, body: &Body, timeout: Timeout) -> PyResult<Option<Acquired>> {
        if matches!(timeout, Timeout::None) {
            return Ok(self.try_acquire(body));
        }
        let word = body.segment.mapping.robust_word();
        let is_ready = || word.load(Ordering::Relaxed) & TID_MASK == 0;
        let OwnershipWords { wake_ahead, crowd, .. } = words(&body.segment.mapping);
        let standing = crowd.join(word.load(Ordering::Relaxed) & WAITERS == 0);
        if standing.is_in_crowd() && matches!(timeout, Timeout::Endless) {
            wait::give_way(py, &is_ready)?;
        }
        let outcome = wait::block(py, timeout, Some(&body.spin), Watch::Kernel, &is_ready, |round| {
            let step = self.attempt(body, round)?;
            if round.slept.has_slept() && !round.is_recheck {
                match step {
                    Step::Done(_) => wake_ahead.acquired(unsnarl_shm::microseconds()),
                    Step::Sleep(..) => wake_ahead.found_busy(),
                }
            }
            Ok(step)
        });
        Host.end();
        drop(standing);
        outcome
    }

    /// Releases the word, whichever thread took it. Wakes `count` sleepers; a count of 1 is raised by wake-ahead.
    #[inline]
    pub(in crate::ipc) fn release(&self, body: &Body, count: u32) {
        let words = words(&body.segment.mapping);
        // Cleared first, so that a thread that dies right after taking the word is never taken for its previous
        // holder.
        words.holder.store(0, Ordering::Relaxed);
        let word = body.segment.mapping.robust_word();
        let is_awaited = word.load(Ordering::Relaxed) & WAITERS != 0;
        let count = if is_awaited && count == 1 {
            words.wake_ahead.sleepers_to_wake(unsnarl_shm::microseconds())
        } else {
            count
        };
        if !unsnarl_shm::is_listed(word) {
            return self.release_elsewhere(body, count);
        }
        unsnarl_shm::release(word, count);
    }

    /// Releases the word through the mapping whose entry is in this thread's list, or through any if none is.
    #[cold]
    fn release_elsewhere(&self, body: &Body, count: u32) {
        let _alone = unsnarl_shm::alone();
        let aliases = self.aliases.lock().unwrap_or_else(PoisonError::into_inner);
        let own = aliases
            .iter()
            .map(|mapping| mapping.robust_word())
            .find(|word| unsnarl_shm::is_listed(word));
        unsnarl_shm::release(own.unwrap_or_else(|| body.segment.mapping.robust_word()), count);
    }

    /// Whether the calling thread holds the word.
    #[inline]
    pub(in crate::ipc) fn is_mine(&self, body: &Body) -> bool {
        unsnarl_shm::is_mine(body.segment.mapping.robust_word().load(Ordering::Relaxed))
    }

    /// Whether a living thread holds the word.
    #[inline]
    pub(in crate::ipc) fn is_held(&self, body: &Body) -> bool {
        look(body) & TID_MASK != 0
    }

    /// Declares repaired what a dead holder left.
    pub(in crate::ipc) fn make_consistent(&self, body: &Body) -> PyResult<()> {
        let words = words(&body.segment.mapping);
        if !self.is_held(body) {
            return Err(PyRuntimeError::new_err(
                "make_consistent() needs the lock: acquire it first",
            ));
        }
        // ORDERING: pairs with the acquire in `IpcRWLock::is_damaged`: the repair precedes the release.
        words.damage.store(0, Ordering::Release);
        Ok(())
    }

    /// Returns OwnerDied for the last death, also if no successor has recorded it yet.
    pub(in crate::ipc) fn death(&self, py: Python<'_>, body: &Body, what: &str) -> PyErr {
        let words = words(&body.segment.mapping);
        let is_unnoted = look(body) & DIED != 0;
        let dead = if is_unnoted { &words.holder } else { &words.dead };
        errors::owner_died(py, &format!("{what}{}", body.label()), dead.load(Ordering::Relaxed))
    }

    /// The dictionary for `statistics()`.
    pub(in crate::ipc) fn describe<'py>(
        &self,
        py: Python<'py>,
        body: &Body,
    ) -> PyResult<Bound<'py, pyo3::types::PyDict>> {
        let statistics = body.describe(py)?;
        let words = words(&body.segment.mapping);
        let word = look(body);
        let holder = (words.holder.load(Ordering::Relaxed) >> 32) as u32;
        let is_locked = word & TID_MASK != 0;
        statistics.set_item("locked", is_locked)?;
        statistics.set_item("holder", (is_locked && holder != 0).then_some(holder))?;
        statistics.set_item("waiting", word & WAITERS != 0)?;
        statistics.set_item(
            "owner_died",
            word & DIED != 0 || words.damage.load(Ordering::Relaxed) != 0,
        )?;
        Ok(statistics)
    }

    /// The text for `repr`: `locked by process 42, started …`, or `unlocked`.
    pub(in crate::ipc) fn state(&self, body: &Body) -> String {
        let word = look(body);
        let words = words(&body.segment.mapping);
        let holder = match words.holder.load(Ordering::Relaxed) {
            0 => "a process that is not named".to_owned(),
            process => unsnarl_shm::describe(process),
        };
        match (word & TID_MASK, word & DIED) {
            (0, 0) if words.damage.load(Ordering::Relaxed) != 0 => "unlocked, to be repaired".into(),
            (0, 0) => "unlocked".into(),
            (0, _) => format!("its owner died: {holder}"),
            _ => format!("locked by {holder}"),
        }
    }
}
