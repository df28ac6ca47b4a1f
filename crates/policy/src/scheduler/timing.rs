//! When to ask the holder, who watches the clock, and who stays awake.
//!
//! Invariants: at most one waiting thread, the timekeeper, has a timer that
//! matters, and `alarm` is when it looks; whoever would have to look earlier takes
//! the office over. A timer on every waiter would be a storm.

use super::{Policy, Turn};
use crate::class::Class;
use crate::config::MICROSECOND;
use crate::ports::Verdict;
use crate::queue::Queue;
use crate::thread::Awake;
use crate::{Nanos, ThreadId};

/// A picked thread that has not arrived after this time is held up by the
/// kernel's scheduler; whoever is awake may go first.
const HEIR_OVERDUE_NS: Nanos = 200 * MICROSECOND;
/// A timer that is late by no more than this is left alone.
const ALARM_SLACK_NS: Nanos = 100 * MICROSECOND;
/// One that was asked to drop and has not come back after others took the GIL so
/// often is not about to resume: it has blocked.
const RETURN_TAKES: u32 = 16;
/// While an interactive thread holds the GIL, or left it lingering, somebody
/// looks at least this often: the price of a wrong prediction.
pub(super) const LINGER_WATCH_NS: Nanos = 1_000 * MICROSECOND;

impl Policy {
    /// When the holder is to be asked, for the sake of whoever is most urgent.
    pub(super) fn ask_due(&self, now: Nanos) -> Nanos {
        if let Some(asked_at) = self.tenure.asked_at {
            return asked_at + self.config.slice_ns;
        }
        let since = self.tenure.since.unwrap_or(now);
        let by_class = |class: Class| {
            self.queues[class.index()]
                .head()
                .map(|head| since + self.patience(head))
        };
        let due = Class::ALL.into_iter().filter_map(by_class).min().unwrap_or(Nanos::MAX);
        due.max(self.tenure.protected_until)
    }

    /// How long into the holder's tenure `waiter` lets it run.
    pub(super) fn patience(&self, waiter: ThreadId) -> Nanos {
        let record = &self.threads[waiter];
        if record.class == Class::Batch {
            return match self.tenure.holder {
                Some(holder) => self.threads[holder].slice_left_ns.min(self.config.slice_ns),
                None => self.config.slice_ns,
            };
        }
        if self.tenure.class == Class::Batch {
            return 0;
        }
        let holder_burst_ns = self
            .tenure
            .holder
            .map_or(0, |holder| self.threads[holder].burst_mean_ns);
        let usual_ns = 2 * record.burst_mean_ns.max(holder_burst_ns);
        self.config.grace_ns.max(usual_ns).min(self.config.slice_ns)
    }

    pub(super) fn park(&mut self, thread: ThreadId, now: Nanos, due: Nanos) -> Verdict {
        let insurance = now + self.config.insurance_ns.saturating_mul(u64::from(self.waiting));
        let watch = if self.tenure.class == Class::Batch {
            Nanos::MAX
        } else {
            now + LINGER_WATCH_NS
        };
        let until = due.min(watch).min(insurance);
        let spin_ns = self.spin(thread);
        let keeps_time = match self.timekeeper {
            Some(timekeeper) if timekeeper != thread => until + ALARM_SLACK_NS < self.alarm,
            _ => true,
        };
        if !keeps_time {
            return Verdict::Park {
                until: insurance,
                spin_ns,
            };
        }
        self.timekeeper = Some(thread);
        self.alarm = until;
        Verdict::Park { until, spin_ns }
    }

    pub(super) fn spin(&mut self, thread: ThreadId) -> Nanos {
        let config = self.config;
        let holder_is_short = self.tenure.class != Class::Batch;
        let is_next = holder_is_short && self.first() == Some(thread);
        let record = &mut self.threads[thread];
        if record.was_overtaken {
            record.awake = None;
            return config.spin_resume_ns;
        }
        if record.awake.is_none() && is_next {
            record.awake = Some(Awake::ForResume);
        }
        let (score, spin_ns) = match record.awake {
            Some(Awake::ForAnswer) => (&mut record.spin_answer, config.spin_ask_ns),
            Some(Awake::ForResume) if holder_is_short => (&mut record.spin_resume, config.spin_resume_ns),
            _ => return 0,
        };
        if score.is_worth_it() {
            return spin_ns;
        }
        record.awake = None;
        0
    }

    pub(super) fn look_at_free_gil(&self, thread: ThreadId, now: Nanos) -> Verdict {
        match self.heir {
            Some(heir) if heir.thread != thread && now < heir.picked_at + HEIR_OVERDUE_NS => Verdict::Park {
                until: heir.picked_at + HEIR_OVERDUE_NS,
                spin_ns: 0,
            },
            _ => Verdict::Go,
        }
    }

    /// Until when a CPU-bound thread that comes out of a forced switch lets the heir
    /// pass, if it is to: when its own slice is used up, or the heir is overdue.
    ///
    /// On one processor the preempted thread runs before the heir has woken up,
    /// finds the GIL free, and would take it every time.
    #[must_use]
    pub fn lets_pass(&self, thread: ThreadId, now: Nanos) -> Option<Nanos> {
        let heir = self.heir.filter(|heir| heir.thread != thread && !self.is_held)?;
        let record = &self.threads[thread];
        let is_heirs_turn = heir.turn != Turn::Regular
            || self.is_aged(heir.thread, now)
            || record.slice_left_ns <= self.config.slice_ns / 16;
        let until = heir.picked_at + HEIR_OVERDUE_NS;
        (record.class == Class::Batch && is_heirs_turn && !self.is_lingering && now < until).then_some(until)
    }

    /// Chooses a sleeping thread to look again, if nobody would look in time: an
    /// interactive one that was passed over, or else the one that will have its
    /// turn last, so that it keeps time longest.
    pub(super) fn appoint(&mut self, now: Nanos) -> Option<ThreadId> {
        let is_return_due = self.is_return_due();
        if !self.has_waiters() {
            return None;
        }
        let is_in_time = self.timekeeper.is_some() && self.alarm <= self.ask_due(now).saturating_add(ALARM_SLACK_NS);
        if is_in_time {
            return None;
        }
        let passed_over = self.queues[..Class::Batch.index()].iter().find_map(Queue::head);
        if self.tenure.class == Class::Batch && passed_over.is_some() {
            return passed_over;
        }
        if is_return_due {
            return None;
        }
        self.queues.iter().rev().find_map(Queue::tail)
    }

    /// Whether a preempted thread is about to wait for this holder, and will keep
    /// time. Not to be relied on beside a CPU-bound holder: a thread that was
    /// asked when it was about to block does not come back.
    fn is_return_due(&mut self) -> bool {
        let Some(returning) = &mut self.returning else {
            return false;
        };
        let is_due = returning.takes == 0 && returning.is_batch && self.tenure.class != Class::Batch;
        returning.takes += 1;
        if returning.takes > RETURN_TAKES {
            self.returning = None;
        }
        is_due
    }

    /// Whether a sleeping thread looks soon enough at a GIL that is left free.
    pub(super) fn is_watched(&self, now: Nanos) -> bool {
        self.timekeeper.is_some() && self.alarm <= now + LINGER_WATCH_NS + ALARM_SLACK_NS
    }
}
