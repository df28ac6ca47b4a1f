//! The word on which a thread waits for its notification, as the mechanism's.
//!
//! Invariant: the state table is that of the mechanism's own parker; only waking
//! takes time here.

use crate::Nanos;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Word {
    #[default]
    Awake,
    Asleep,
    Notified,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Parker {
    pub(super) word: Word,
    pub(super) not_before: Nanos,
}

impl Parker {
    /// Notifies; whether the owner has to be woken.
    pub(super) fn notify(&mut self, not_before: Nanos) -> bool {
        self.not_before = match self.word {
            Word::Notified => self.not_before.min(not_before),
            Word::Awake | Word::Asleep => not_before,
        };
        std::mem::replace(&mut self.word, Word::Notified) == Word::Asleep
    }

    /// Takes back a notification for later.
    pub(super) fn revoke(&mut self, now: Nanos) {
        if now < self.not_before && self.word == Word::Notified {
            self.word = Word::Awake;
        }
    }
}
