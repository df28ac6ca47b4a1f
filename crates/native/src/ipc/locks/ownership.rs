//! Holding the robust word of a segment: what Lock, RLock and the writer's side share.
//!
//! The word says who holds it; the words beside it say who that is in readable form, and
//! whether the last holder died without anybody having put things right since.
//!
//! Invariant: `damage` is not zero from a holder's death until `make_consistent`.

use crate::ipc::THREADS;
use crate::ipc::segment::Body;
use crate::ipc::segment::errors;
use crate::ipc::wait::{self, WaitRound, Watch};
use crate::sync::arguments::Patience as Timeout;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};
use unsnarl_ipc::{AtomicU32, AtomicU64, Attempt, Crowd, DIED, Kernel, Ordering, Step, TID_MASK, WAITERS, WakeAhead};
use unsnarl_shm::{Entered, Host, Mapping, SegmentError};

/// The words beside a robust word.
#[derive(Debug, Default)]
#[repr(C)]
pub(in crate::ipc) struct OwnershipWords {
    /// Not zero: a holder died, and nobody has called `make_consistent` since.
    pub(in crate::ipc) damage: AtomicU32,
    /// How often the holder has taken it.
    pub(in crate::ipc) depth: AtomicU32,
    /// The process that holds it, or died with it; 0 while it is free, and for the instants
    /// between taking it and saying who did, and between unsaying it and giving it back.
    pub(in crate::ipc) holder: AtomicU64,
    /// The process that died with it, last.
    pub(in crate::ipc) dead: AtomicU64,
    /// How many to wake when it is given back.
    wake_ahead: WakeAhead,
    /// Those that are in `acquire` for as long as it takes.
    crowd: Crowd,
}

/// The robust word of a segment, and further mappings of it for threads that need one.
#[derive(Default)]
pub(in crate::ipc) struct Ownership {
    aliases: Mutex<Vec<Mapping>>,
}

/// How an acquisition ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ipc) enum Acquired {
    /// The caller holds it.
    Sound,
    /// The caller holds it, and what it protects may be half-changed.
    Damaged,
}

/// The state behind the header: always first in it.
pub(in crate::ipc) fn words(mapping: &Mapping) -> &OwnershipWords {
    // SAFETY: atomics alone.
    unsafe { mapping.state::<OwnershipWords>() }
}

impl Ownership {
    /// Take it if nobody holds it.
    #[inline]
    pub(in crate::ipc) fn try_acquire(&self, body: &Body) -> Option<Acquired> {
        // Known beforehand: a fork makes the child learn it anew, which takes longer than all the rest.
        let taker = unsnarl_shm::identity();
        match unsnarl_shm::try_acquire(body.segment.mapping.robust_word(), THREADS) {
            Entered::Listed(Attempt::Busy(_)) => None,
            Entered::Listed(attempt) => Some(self.record_holder(body, attempt, taker)),
            Entered::Unlisted(attempt) => {
                let had = self.record_holder(body, attempt, taker);
                self.enter_elsewhere(body).ok().map(|()| had)
            }
        }
    }

    /// Somebody else released what another thread of this process had taken: its entry is in use
    /// until that thread comes back or ends. Use that of another mapping; without one, the word is given back.
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
            debug_assert!(is_held, "nobody knows the mapping yet");
            aliases.push(mapping);
        }
        Ok(())
    }

    /// Note who holds it now.
    #[inline]
    fn record_holder(&self, body: &Body, attempt: Attempt, taker: u64) -> Acquired {
        let words = words(&body.segment.mapping);
        if attempt == Attempt::TakenFromDead {
            words
                .dead
                .store(words.holder.load(Ordering::Relaxed), Ordering::Relaxed);
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

    /// Take it, or name what to sleep on; the kernel keeps watch until `end` is called.
    pub(in crate::ipc) fn attempt<'a>(&'a self, body: &'a Body, round: WaitRound) -> PyResult<Step<'a, Acquired>> {
        let word = body.segment.mapping.robust_word();
        let taker = unsnarl_shm::identity();
        Host.begin(word);
        match unsnarl_ipc::lock_or_sleep(word, Host.tid(), round.slept.has_slept()) {
            Step::Sleep(word, expected) => Ok(Step::Sleep(word, expected)),
            Step::Done(attempt) => {
                let had = self.record_holder(body, attempt, taker);
                if unsnarl_shm::hold(word) {
                    Host.end();
                } else if let Err(error) = self.enter_elsewhere(body) {
                    return Err(Python::attach(|py| errors::segment(py, error)));
                }
                Ok(Step::Done(had))
            }
        }
    }

    /// Wait for it; None if the time is up.
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

    /// Give it back, whoever took it, and wake `count`, or as many as come in time where that is one.
    #[inline]
    pub(in crate::ipc) fn release(&self, body: &Body, count: u32) {
        let words = words(&body.segment.mapping);
        // Whoever dies right after taking it is never taken for the one that had it before.
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

    /// Of all mappings, the entry may be in this thread's list through any, or through none.
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

    /// Whether the calling thread holds it.
    #[inline]
    pub(in crate::ipc) fn is_mine(&self, body: &Body) -> bool {
        unsnarl_shm::is_mine(body.segment.mapping.robust_word().load(Ordering::Relaxed))
    }

    /// Whether a living thread holds it.
    #[inline]
    pub(in crate::ipc) fn is_held(&self, body: &Body) -> bool {
        body.segment.mapping.robust_word().load(Ordering::Acquire) & TID_MASK != 0
    }

    /// Say that what a dead holder left is repaired.
    pub(in crate::ipc) fn make_consistent(&self, body: &Body) -> PyResult<()> {
        let words = words(&body.segment.mapping);
        if !self.is_held(body) {
            return Err(PyRuntimeError::new_err(
                "make_consistent() needs the lock: acquire it first",
            ));
        }
        words.damage.store(0, Ordering::Release);
        Ok(())
    }

    /// OwnerDied for the last death, also one that no successor has noted yet.
    pub(in crate::ipc) fn death(&self, py: Python<'_>, body: &Body, what: &str) -> PyErr {
        let words = words(&body.segment.mapping);
        let is_unnoted = body.segment.mapping.robust_word().load(Ordering::Relaxed) & DIED != 0;
        let dead = if is_unnoted { &words.holder } else { &words.dead };
        errors::owner_died(py, &format!("{what}{}", body.label()), dead.load(Ordering::Relaxed))
    }

    /// For `statistics()`.
    pub(in crate::ipc) fn describe<'py>(
        &self,
        py: Python<'py>,
        body: &Body,
    ) -> PyResult<Bound<'py, pyo3::types::PyDict>> {
        let statistics = body.describe(py)?;
        let words = words(&body.segment.mapping);
        let word = body.segment.mapping.robust_word().load(Ordering::Relaxed);
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

    /// `locked by process 42, started …`, or `unlocked`, for `repr`.
    pub(in crate::ipc) fn state(&self, body: &Body) -> String {
        let word = body.segment.mapping.robust_word().load(Ordering::Relaxed);
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
