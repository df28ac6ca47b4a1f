//! Charges each hold of the GIL to its thread, to the statistics, and to the least share.
//!
//! Invariant: GIL time is charged once, at the drop; the credit of CPU-bound threads stays within two
//! quanta either way.

use super::{Heir, Hold, Pick, Policy, Returning};
use crate::class::Class;
use crate::config::Config;
use crate::ports::Arrival;
use crate::{Nanos, ThreadId};

impl Policy {
    pub(super) fn end_hold(&mut self, thread: ThreadId, now: Nanos, hold: Hold) {
        let was_asked = hold.asked_at.is_some();
        let thread_state = &mut self.threads[thread];
        thread_state.is_new = false;
        thread_state.dropped_at = Some(now);
        thread_state.was_asked = was_asked;
        if was_asked {
            self.returning = Some(Returning {
                thread,
                is_batch: hold.class == Class::Batch,
                takes: 0,
            });
            self.stats.classes[hold.class.index()].forced_drops += 1;
        }
        let Some(since) = hold.since else { return };
        let hold_ns = now.saturating_sub(since);
        thread_state.burst_ns = thread_state.burst_ns.saturating_add(hold_ns);
        thread_state.slice_left_ns = thread_state.slice_left_ns.saturating_sub(hold_ns);
        if hold_ns >= self.config.burst_cap_ns {
            thread_state.count_long_hold();
        }
        self.stats.record_hold(thread_state.tag, hold_ns);
        let seen_ns = thread_state.stranger_ns.take().or(hold.holder.is_none().then_some(0));
        if let Some(seen_ns) = seen_ns.map(|before| before + hold_ns) {
            let is_short = seen_ns < self.config.burst_cap_ns;
            // A thread that was asked, and has not run for long, may be of either kind.
            if was_asked && is_short {
                thread_state.stranger_ns = Some(seen_ns);
            } else {
                self.strangers.record(is_short);
            }
        }
        self.account_share(hold.class, hold_ns);
    }

    fn account_share(&mut self, class: Class, hold_ns: Nanos) {
        let bound = 2 * self.config.batch_quantum_ns.cast_signed();
        let hold_ns = hold_ns.cast_signed();
        if class == Class::Batch {
            self.batch_credit_ns = self.batch_credit_ns.saturating_sub(hold_ns).max(-bound);
        } else if self.queues[Class::Batch.index()].len() > 0 {
            // What a hold of others adds: share / (1 - share) of it.
            let permille = i64::from(self.config.batch_share_permille.min(Config::MOST_BATCH_SHARE));
            let credit = self.batch_credit_ns + hold_ns * permille / (1_000 - permille);
            self.batch_credit_ns = credit.min(bound);
        }
    }

    /// Accounts for the end of the wait, or classifies a thread that did not wait.
    pub(super) fn start_hold(&mut self, thread: ThreadId, now: Nanos, arrival: Arrival) -> Class {
        if self.threads[thread].links.is_queued {
            let class = self.threads[thread].class;
            let waited_ns = now.saturating_sub(self.threads[thread].waiting_since);
            self.stats.classes[class.index()].wait_ns.record(waited_ns);
            self.alarm_was_vain(thread, now);
            self.dequeue(thread);
            return class;
        }
        if self.is_lingering {
            self.stats.lingers_hit += 1;
        }
        self.end_return(thread);
        let entry = self.classify(thread, now, arrival);
        if entry.class == Class::Batch && !entry.resumes_slice {
            // A thread gets a new slice by waiting for it, not by barging.
            self.threads[thread].slice_left_ns = 0;
        }
        entry.class
    }

    pub(super) fn barge(&mut self, heir: Heir, by: Class, now: Nanos) -> ThreadId {
        if !self.is_lingering {
            let is_aged = self.is_aged(heir.thread, now);
            let thread_state = &mut self.threads[heir.thread];
            thread_state.was_overtaken |= heir.pick != Pick::First || is_aged || by == Class::Batch;
            self.stats.classes[thread_state.class.index()].barged += 1;
        }
        heir.thread
    }
}
