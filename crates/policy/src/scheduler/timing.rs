//! When to ask the holder to drop, which waiter is the timekeeper, and which waiter spins.
//!
//! Must never: set a timer on every waiter, which would be a storm of wake-ups. Invariants: at most one
//! waiting thread, the timekeeper, has a timer that matters, and `alarm` is when it re-checks; a
//! waiter that would have to re-check earlier becomes the timekeeper.

use super::{Heir, Pick, Policy};
use crate::class::{Class, Hint};
use crate::config::{LATE_NS, MICROSECOND};
use crate::ports::Verdict;
use crate::queue::Queue;
use crate::thread::Awake;
use crate::{Nanos, ThreadId};

/// A picked thread that has not arrived after this time is delayed by the kernel's scheduler; a thread
/// that is awake may take the GIL first.
const HEIR_OVERDUE_NS: Nanos = 200 * MICROSECOND;
/// A timer that is late by no more than this is kept.
const ALARM_SLACK_NS: Nanos = 100 * MICROSECOND;
/// A thread that was asked to drop and has not returned after this many takes by others is not
/// about to resume: it has blocked.
const RETURN_TAKES: u32 = 16;
/// With up to this many waiters the last one to arrive keeps the time; with more, a thread that is woken for it serves for
/// as many hand-overs, and a long hold would wake too many that kept it before.
const MOST_RELIEVED: u32 = 8;
/// While an interactive thread holds the GIL, or the GIL lingers, a waiter re-checks at least this
/// often: the cost of a wrong prediction.
pub(super) const LINGER_WATCH_NS: Nanos = 1_000 * MICROSECOND;

impl Policy {
    /// When the holder is to be asked to drop, on behalf of the most urgent waiter.
    pub(super) fn ask_due(&self, now: Nanos) -> Nanos {
        if let Some(asked_at) = self.hold.asked_at {
            return asked_at + self.config.slice_ns;
        }
        let since = self.hold.since.unwrap_or(now);
        let by_class = |class: Class| {
            self.queues[class.index()]
                .head()
                .map(|head| since + self.hold_limit(head, now))
        };
        let due = Class::ALL.into_iter().filter_map(by_class).min().unwrap_or(Nanos::MAX);
        due.max(self.hold.protected_until)
    }

    /// How long `waiter` lets the present holder hold the GIL.
    pub(super) fn hold_limit(&self, waiter: ThreadId, now: Nanos) -> Nanos {
        let thread_state = &self.threads[waiter];
        if thread_state.class == Class::Batch {
            return self.slice_left();
        }
        if self.hold.class == Class::Batch {
            return self.moderation(waiter, now);
        }
        let holder_burst_ns = self.hold.holder.map_or(0, |holder| self.threads[holder].burst_mean_ns);
        let usual_ns = 2 * thread_state.burst_mean_ns.max(holder_burst_ns);
        self.patience(holder_burst_ns, now)
            .max(usual_ns)
            .min(self.config.slice_ns)
    }

    /// How long a CPU-bound holder may go on although it has itself woken `waiter`. It is often about to wake others, or
    /// the same one again: one hand-over serves them all. The more wait, the more hand-overs follow, perhaps in vain: a
    /// pool's idle workers are woken one for each task, and the first of them does them all.
    ///
    /// The time counts from the last request on behalf of such a waiter, so a single wake-up after a while is not delayed.
    fn moderation(&self, waiter: ThreadId, now: Nanos) -> Nanos {
        if !self.is_woken_by_holder(waiter) {
            return 0;
        }
        let hand_overs_ns = u64::from(self.waiting) * self.config.moderation_each_ns;
        let pause_ns = hand_overs_ns.max(self.config.moderation_ns).min(self.config.slice_ns);
        let since = self.hold.since.unwrap_or(now);
        (self.moderated_at + pause_ns).saturating_sub(since)
    }

    /// Whether the present holder woke `waiter`, which is not one of those that the program wants served at once.
    pub(super) fn is_woken_by_holder(&self, waiter: ThreadId) -> bool {
        let thread_state = &self.threads[waiter];
        thread_state.woken_by.is_some()
            && thread_state.woken_by == self.hold.holder
            && thread_state.hint != Hint::Interactive
    }

    /// How long the present holder, which is not CPU-bound, may exceed its usual burst. A burst that is cut in two costs
    /// two hand-overs, so a thread that is known to block may run as long as one whose bursts are of the longest mean,
    /// while all that wait are of its kind and none has waited for long.
    ///
    /// A holder that took the GIL while no thread waited is not known: an event loop, the main thread of a pool, but also
    /// a CPU-bound thread that has just made a call. It is judged by what such holders were so far.
    fn patience(&self, holder_burst_ns: Nanos, now: Nanos) -> Nanos {
        let blocks_by_itself = match self.hold.holder {
            Some(_) => holder_burst_ns > 0 && self.hold.class.is_interactive(),
            None => self.strangers.is_short_expected(),
        };
        let is_urgent = self.queues[Class::Batch.index()].head().is_some() || self.aged(now).is_some();
        if blocks_by_itself && !is_urgent {
            self.config.burst_cap_ns
        } else {
            self.config.grace_ns
        }
    }

    pub(super) fn park(&mut self, thread: ThreadId, now: Nanos, due: Nanos) -> Verdict {
        let insurance = now + self.config.insurance_ns.saturating_mul(u64::from(self.waiting));
        let watch = if self.hold.class == Class::Batch {
            Nanos::MAX
        } else {
            now + LINGER_WATCH_NS
        };
        let exact = due.min(watch).min(insurance);
        let is_early = exact < now + LATE_NS;
        let until = if is_early { self.tolerable(exact, now) } else { exact };
        let spin_ns = self.spin(thread);
        // The timekeeper is mostly the first to be served, and then another thread would have to be woken for it. The one
        // that is picked last keeps the time for longest, and sets a timer in any case.
        let is_relief = until > exact && self.waiting <= MOST_RELIEVED && self.last() == Some(thread);
        let keeps_time = match self.timekeeper {
            Some(timekeeper) if timekeeper != thread => is_relief || until + ALARM_SLACK_NS < self.alarm,
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
        self.early_alarm = is_early.then_some(exact);
        Verdict::Park { until, spin_ns }
    }

    /// When the timekeeper re-checks at the latest, if it should at `exact`: 4.5 ms from now, where such early alarms have
    /// passed without need.
    ///
    /// A timer that expires before the kernel's next tick is programmed into the processor, and so is the tick again when
    /// the timer is cancelled. In a virtual machine each of the two can cost 11 µs, which is more than the rest of a wait;
    /// the standard interpreter's timer of 5 ms comes after the tick. With several processors the alarm stays exact while a
    /// CPU-bound thread waits: a GIL that lingers relies on it.
    fn tolerable(&self, exact: Nanos, now: Nanos) -> Nanos {
        let may_linger = !self.is_alone && self.queues[Class::Batch.index()].head().is_some();
        if may_linger || self.has_short_slice() || !self.alarms.is_short_expected() {
            return exact;
        }
        exact.max(now + LATE_NS.min(self.config.slice_ns))
    }

    /// Notes that a waiting thread, which looks, is the timekeeper and that its early alarm is over, and whether there was
    /// something to do at it.
    pub(super) fn alarm_was_used(&mut self, thread: ThreadId, now: Nanos, was_needed: bool) {
        if self.timekeeper == Some(thread) && self.early_alarm.is_some_and(|exact| exact <= now) {
            self.early_alarm = None;
            self.alarms.record(!was_needed);
        }
    }

    /// Notes that a waiting thread, which takes the GIL, is the timekeeper, and whether it did so before its early alarm
    /// would have gained more than a timer may be late.
    pub(super) fn alarm_was_vain(&mut self, thread: ThreadId, now: Nanos) {
        if self.timekeeper == Some(thread)
            && let Some(exact) = self.early_alarm.take()
        {
            self.alarms.record(now < exact + ALARM_SLACK_NS);
        }
    }

    pub(super) fn spin(&mut self, thread: ThreadId) -> Nanos {
        let config = self.config;
        let holder_is_short = self.hold.class != Class::Batch;
        let is_next = holder_is_short && self.first() == Some(thread);
        let thread_state = &mut self.threads[thread];
        if thread_state.was_overtaken {
            thread_state.awake = None;
            return config.spin_resume_ns;
        }
        if thread_state.awake.is_none() && is_next {
            thread_state.awake = Some(Awake::ForResume);
        }
        let (score, spin_ns) = match thread_state.awake {
            Some(Awake::ForAnswer) => (&mut thread_state.spin_answer, config.spin_ask_ns),
            Some(Awake::ForResume) if holder_is_short => (&mut thread_state.spin_resume, config.spin_resume_ns),
            _ => return 0,
        };
        if score.is_worth_it() {
            return spin_ns;
        }
        thread_state.awake = None;
        0
    }

    /// When a picked thread that has not arrived is overdue, so that an awake thread need not wait for it. On a single
    /// processor an heir that is not CPU-bound is mostly the next to get that processor, and an early timer would cost more
    /// than the hand-over. Not so where alarms were needed or a thread has waited for long: then every thread that is awake
    /// takes the GIL soon.
    fn overdue_at(&self, heir: &Heir) -> Nanos {
        let is_next = self.is_alone
            && self.threads[heir.thread].class != Class::Batch
            && self.alarms.is_short_expected()
            && self.aged(heir.picked_at).is_none();
        let late_ns = LATE_NS.min(self.config.slice_ns).max(HEIR_OVERDUE_NS);
        heir.picked_at + if is_next { late_ns } else { HEIR_OVERDUE_NS }
    }

    pub(super) fn look_at_free_gil(&mut self, thread: ThreadId, now: Nanos) -> Verdict {
        let until = match self.heir {
            Some(heir) if heir.thread != thread => self.overdue_at(&heir),
            _ => return Verdict::Go,
        };
        if until <= now {
            return Verdict::Go;
        }
        if self.timekeeper.is_none() {
            // Otherwise the heir would wake this thread again to appoint it.
            (self.timekeeper, self.alarm, self.early_alarm) = (Some(thread), until, None);
        }
        Verdict::Park { until, spin_ns: 0 }
    }

    /// Until when a CPU-bound thread at the end of a forced switch lets the heir take the GIL first;
    /// `None` if it need not. It must if its own slice is used up, or if the heir is overdue.
    ///
    /// On a single processor the preempted thread runs before the heir has woken up, finds the GIL
    /// free, and would take it every time.
    #[must_use]
    pub fn lets_pass(&self, thread: ThreadId, now: Nanos) -> Option<Nanos> {
        let heir = self.heir.filter(|heir| heir.thread != thread && !self.is_held)?;
        let thread_state = &self.threads[thread];
        let is_heir_due = heir.pick != Pick::First
            || self.is_aged(heir.thread, now)
            || thread_state.slice_left_ns <= self.config.slice_ns / 16;
        let until = self.overdue_at(&heir);
        (thread_state.class == Class::Batch && is_heir_due && !self.is_lingering && now < until).then_some(until)
    }

    /// Appoints a sleeping thread to re-check, if no thread would re-check in time: an interactive
    /// thread that was passed over, or else the thread that will be picked last, so that it is the
    /// timekeeper for longest.
    pub(super) fn appoint(&mut self, now: Nanos) -> Option<ThreadId> {
        let is_return_due = self.is_return_due();
        if !self.has_waiters() {
            return None;
        }
        let latest = self.tolerable(self.ask_due(now), now).saturating_add(ALARM_SLACK_NS);
        let is_in_time = self.timekeeper.is_some() && self.alarm <= latest;
        if is_in_time {
            return None;
        }
        let passed_over = self.queues[..Class::Batch.index()].iter().find_map(Queue::head);
        if self.hold.class == Class::Batch && passed_over.is_some() {
            return passed_over;
        }
        if is_return_due {
            return None;
        }
        self.last()
    }

    /// The thread that will be picked last.
    fn last(&self) -> Option<ThreadId> {
        self.queues.iter().rev().find_map(Queue::tail)
    }

    /// Whether a preempted thread is about to wait for this holder, and will be the timekeeper. Not
    /// relied on while a CPU-bound thread holds the GIL: a thread that was asked when it was
    /// about to block does not return.
    fn is_return_due(&mut self) -> bool {
        let Some(returning) = &mut self.returning else {
            return false;
        };
        let is_due = returning.takes == 0 && returning.is_batch && self.hold.class != Class::Batch;
        returning.takes += 1;
        if returning.takes > RETURN_TAKES {
            self.returning = None;
        }
        is_due
    }

    /// Whether a sleeping thread re-checks soon enough a GIL that lingers.
    pub(super) fn is_watched(&self, now: Nanos) -> bool {
        self.timekeeper.is_some() && self.alarm <= now + LINGER_WATCH_NS + ALARM_SLACK_NS
    }
}
