//! When to ask the holder, who watches the clock, and who stays awake.
//!
//! Invariants: at most one waiting thread, the timekeeper, has a timer that
//! matters, and `alarm` is when it looks; whoever would have to look earlier takes
//! the office over. A timer on every waiter would be a storm.

use super::Policy;
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
/// While an interactive thread holds the GIL, or left it lingering, somebody
/// looks at least this often: the price of a wrong prediction.
const LINGER_WATCH_NS: Nanos = 1_000 * MICROSECOND;

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

    /// Chooses a sleeping thread to look again, if nobody would look in time: an
    /// interactive one that was passed over, or else the one that will have its
    /// turn last, so that it keeps time longest.
    pub(super) fn appoint(&mut self, now: Nanos) -> Option<ThreadId> {
        let returning = self.returning.take();
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
        if returning.is_some() {
            return None;
        }
        self.queues.iter().rev().find_map(Queue::tail)
    }
}
