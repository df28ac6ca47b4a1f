//! The policy itself: a state machine, events in, decisions out. The crate's documentation has
//! the rules as formulas.
//!
//! Must never: block, allocate after construction, read a clock, know Python.
//! Invariants:
//! - a waiting thread is in exactly one queue from `wait` until `taken` or `cancel`. A pick does
//!   not remove it, so a picked thread that finds the GIL taken again keeps its class and place;
//! - there is at most one heir; while there is one, the GIL is free;
//! - while threads wait, one of them (the timekeeper) has a timer; or the thread that was just
//!   asked to drop is returning and becomes the timekeeper; or the insurance of the parked
//!   threads wakes one of them.
//!
//! Things that do not work (measured or simulated): a timer on every waiter (a
//! storm); least-GIL-time-first (starting n threads stays quadratic); an aged
//! thread goes first without rationing (inverts under overload); dequeuing the
//! picked thread (it loses its class to every barger).

mod accounting;
mod picking;
mod quick;
mod slices;
mod timing;

use crate::Nanos;
use crate::class::{Class, Hint};
use crate::classify::{QueueEntry, classify, renew_slice};
use crate::config::Config;
use crate::ports::{Arrival, Grant, Taken, Verdict};
use crate::predictor::Predictor;
use crate::queue::Queue;
use crate::stats::Stats;
use crate::thread::{Awake, ThreadId, Threads};

/// The current hold of the GIL.
#[derive(Debug, Clone, Copy)]
struct Hold {
    holder: Option<ThreadId>,
    class: Class,
    /// Its start, or the arrival of the first waiter; `None` if no thread waits.
    since: Option<Nanos>,
    asked_at: Option<Nanos>,
    protected_until: Nanos,
}

impl Hold {
    const fn unknown() -> Self {
        Self {
            holder: None,
            class: Class::Yielded,
            since: None,
            asked_at: None,
            protected_until: 0,
        }
    }
}

/// Why a thread was picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pick {
    /// First of the best class.
    First,
    /// Out of order: CPU-bound threads are owed their least share.
    Share,
    /// Out of order: it has waited for too long. Only such a pick uses the ration of aged picks. If
    /// shares, which are due more often, used it too, aged threads of the classes in between
    /// would starve.
    Aged,
}

/// A picked thread that has not taken the GIL yet.
#[derive(Debug, Clone, Copy)]
struct Heir {
    thread: ThreadId,
    picked_at: Nanos,
    pick: Pick,
}

/// A thread that has dropped the GIL on request. Most return immediately, but a thread that was
/// about to block does not.
#[derive(Debug, Clone, Copy)]
struct Returning {
    thread: ThreadId,
    is_batch: bool,
    /// How often other threads have taken the GIL since.
    takes: u32,
}

/// State of the scheduler of one GIL.
#[derive(Debug)]
pub struct Policy {
    config: Config,
    threads: Threads,
    queues: [Queue; Class::COUNT],
    waiting: u32,
    /// How many of them are CPU-bound and make no calls.
    computing: u32,
    is_held: bool,
    hold: Hold,
    heir: Option<Heir>,
    last_holder: Option<ThreadId>,
    timekeeper: Option<ThreadId>,
    /// When the timekeeper re-checks.
    alarm: Nanos,
    /// When it has to re-check, if that is early ([`timing`]) and not over yet.
    early_alarm: Option<Nanos>,
    /// Predicts whether such a time passes without need: the timekeeper takes the GIL before it.
    alarms: Predictor,
    /// The process may use one processor only.
    is_alone: bool,
    /// The thread that was last asked to drop, until it returns.
    returning: Option<Returning>,
    /// The GIL lingers for a thread that is predicted to return immediately.
    is_lingering: bool,
    /// Since when only CPU-bound threads want the GIL.
    gap_since: Option<Nanos>,
    /// Predicts whether such a gap is short.
    gaps: Predictor,
    /// Predicts whether a holder whose thread is not known drops the GIL by itself before long.
    strangers: Predictor,
    quick: Option<quick::Quick>,
    picks_since_aged: u32,
    /// When a holder was last asked to drop on behalf of a thread that it had woken itself.
    moderated_at: Nanos,
    /// GIL time that CPU-bound threads are owed; negative if they had too much.
    batch_credit_ns: i64,
    stats: Stats,
}

impl Policy {
    /// A policy for at most `capacity` threads at a time.
    #[must_use]
    pub fn new(config: Config, capacity: usize) -> Self {
        Self {
            config,
            threads: Threads::with_capacity(capacity),
            queues: [Queue::default(); Class::COUNT],
            waiting: 0,
            computing: 0,
            is_held: false,
            hold: Hold::unknown(),
            heir: None,
            last_holder: None,
            timekeeper: None,
            alarm: 0,
            early_alarm: None,
            alarms: Predictor::default(),
            is_alone: false,
            returning: None,
            is_lingering: false,
            gap_since: None,
            gaps: Predictor::default(),
            strangers: Predictor::default(),
            quick: None,
            picks_since_aged: 0,
            moderated_at: 0,
            batch_credit_ns: 0,
            stats: Stats::default(),
        }
    }

    /// Makes an entry for a thread; `None` if the table is full.
    ///
    /// `tag` is the caller's name for it, which the statistics return.
    pub fn register(&mut self, tag: u64) -> Option<ThreadId> {
        self.threads.register(&self.config, tag)
    }

    /// Returns a dead thread's entry to the free list.
    pub fn retire(&mut self, thread: ThreadId) {
        self.cancel(thread);
        self.end_return(thread);
        for role in [&mut self.last_holder, &mut self.hold.holder] {
            if *role == Some(thread) {
                *role = None;
            }
        }
        self.threads.retire(thread);
    }

    /// Forgets all waiters: in the child of a fork only `survivor` exists. Another thread may have
    /// been in the middle of a change, so nothing of theirs is relied on.
    pub fn restart_in_child(&mut self, survivor: Option<ThreadId>) {
        self.threads.keep_only(survivor);
        self.queues = [Queue::default(); Class::COUNT];
        self.waiting = 0;
        self.computing = 0;
        self.is_held = false;
        self.hold = Hold::unknown();
        self.heir = None;
        self.last_holder = survivor;
        self.timekeeper = None;
        self.alarm = 0;
        self.early_alarm = None;
        self.returning = None;
        self.is_lingering = false;
        self.gap_since = None;
        self.quick = None;
    }

    /// Resumes after a time in which the policy did not see the GIL change hands; `thread` holds it
    /// now. Waiters keep their places.
    pub fn resume(&mut self, thread: Option<ThreadId>) {
        self.is_held = true;
        self.hold = Hold {
            holder: thread,
            ..Hold::unknown()
        };
        self.heir = None;
        self.last_holder = thread;
        self.returning = None;
        self.is_lingering = false;
        self.quick = None;
    }

    /// Sets the slice of CPU-bound threads, in nanoseconds.
    pub fn set_slice(&mut self, slice_ns: Nanos) {
        self.config.slice_ns = slice_ns;
    }

    /// Sets the least share of CPU-bound threads, in thousandths.
    pub fn set_batch_share(&mut self, permille: u32) {
        self.config.batch_share_permille = permille.min(Config::MOST_BATCH_SHARE);
    }

    /// Sets whether the process may use one processor only.
    pub fn set_alone(&mut self, is_alone: bool) {
        self.is_alone = is_alone;
    }

    /// The values in force.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Sets the program's hint about a thread.
    pub fn set_hint(&mut self, thread: ThreadId, hint: Hint) {
        self.threads[thread].hint = hint;
    }

    /// The program's hint about a thread.
    #[must_use]
    pub fn hint(&self, thread: ThreadId) -> Hint {
        self.threads[thread].hint
    }

    /// Class in which a thread waits, or last waited.
    #[must_use]
    pub fn class(&self, thread: ThreadId) -> Class {
        self.threads[thread].class
    }

    /// Number of threads that wait.
    #[must_use]
    pub const fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Counters so far.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Sets all counters to zero.
    pub fn reset_stats(&mut self) {
        self.stats = Stats::default();
    }

    // ---- a thread wants the GIL -------------------------------------------

    /// Queues `thread`, which found the GIL held, and decides its next step.
    pub fn wait(&mut self, thread: ThreadId, now: Nanos, arrival: Arrival) -> Verdict {
        self.end_quick_returns(now);
        self.is_held = true;
        if !self.threads[thread].links.is_queued {
            self.enqueue(thread, now, arrival);
        }
        self.look(thread, now)
    }

    /// Decides the next step of a waiting thread that has woken up, or has asked.
    pub fn look(&mut self, thread: ThreadId, now: Nanos) -> Verdict {
        self.end_quick_returns(now);
        if !self.is_held {
            return self.look_at_free_gil(thread, now);
        }
        let due = self.ask_due(now);
        self.alarm_was_used(thread, now, due <= now);
        if due <= now {
            if self.first().is_some_and(|head| self.is_woken_by_holder(head)) {
                self.moderated_at = now;
            }
            self.hold.asked_at = Some(now);
            self.threads[thread].awake = Some(Awake::ForAnswer);
            let class = self.threads[thread].class;
            self.stats.classes[class.index()].asks += 1;
            return Verdict::Ask;
        }
        self.park(thread, now, due)
    }

    /// Retracts the verdict [`Verdict::Ask`]: the request was not made.
    pub fn retract_ask(&mut self, thread: ThreadId) {
        self.hold.asked_at = None;
        let thread_state = &mut self.threads[thread];
        thread_state.awake = None;
        self.stats.classes[thread_state.class.index()].asks -= 1;
    }

    /// Calls `visit` for every thread that waits.
    pub fn for_each_waiting(&self, mut visit: impl FnMut(ThreadId)) {
        for queue in &self.queues {
            let mut next = queue.head();
            while let Some(thread) = next {
                visit(thread);
                next = self.threads[thread].links.next;
            }
        }
    }

    /// Entries whether a notification came while `thread` stayed awake.
    pub fn stayed_awake(&mut self, thread: ThreadId, came: bool) {
        let thread_state = &mut self.threads[thread];
        match thread_state.awake.take() {
            Some(Awake::ForAnswer) => thread_state.spin_answer.record(came),
            Some(Awake::ForResume) => thread_state.spin_resume.record(came),
            None => {}
        }
    }

    /// Removes `thread`, which does not get the GIL, from its queue.
    pub fn cancel(&mut self, thread: ThreadId) {
        self.end_quick_returns(0);
        if self.threads[thread].links.is_queued {
            self.dequeue(thread);
        }
        if self.heir.is_some_and(|heir| heir.thread == thread) {
            self.heir = None;
        }
    }

    // ---- the GIL changes hands --------------------------------------------

    /// The holder has dropped the GIL; returns the heir to notify, if there is one.
    pub fn dropped(&mut self, thread: Option<ThreadId>, now: Nanos) -> Option<Grant> {
        self.quick = None;
        self.is_held = false;
        let hold = std::mem::replace(&mut self.hold, Hold::unknown());
        if let Some(thread) = thread {
            self.end_hold(thread, now, hold);
        }
        let was_preempted_for_first = hold.class == Class::Batch && hold.asked_at.is_some();
        let (heir, pick) = if was_preempted_for_first {
            (self.first()?, Pick::First)
        } else {
            self.pick(now)?
        };
        let heir = Heir {
            thread: heir,
            picked_at: now,
            pick,
        };
        self.heir = Some(heir);
        let (linger_ns, wakes) = self.linger(thread, hold, heir, now);
        Some(Grant {
            heir: heir.thread,
            not_before: now + linger_ns,
            wakes,
        })
    }

    /// `thread` has taken the GIL.
    pub fn taken(&mut self, thread: Option<ThreadId>, now: Nanos, arrival: Arrival) -> Taken {
        self.end_quick_returns(now);
        self.is_held = true;
        let heir = self.heir.take();
        let is_heir = heir.is_some_and(|heir| Some(heir.thread) == thread);
        let class = thread.map_or(Class::Yielded, |thread| self.start_hold(thread, now, arrival));
        self.hold = Hold {
            holder: thread,
            class,
            since: self.has_waiters().then_some(now),
            asked_at: None,
            protected_until: self.protection(heir.filter(|_| is_heir), class, now),
        };
        if self.last_holder != thread || thread.is_none() {
            self.stats.hand_overs += 1;
            self.last_holder = thread;
        }
        if heir.is_some_and(|heir| heir.pick == Pick::Aged) && is_heir {
            self.picks_since_aged = 0;
        }
        let revoked = heir.filter(|_| !is_heir).map(|heir| self.barge(heir, class, now));
        self.is_lingering = false;
        Taken {
            revoked,
            appoint: self.appoint(now),
        }
    }

    /// The same as [`dropped`](Self::dropped) if no thread waits: nothing is decided and no clock is
    /// needed. `None` stands for the known holder.
    pub fn dropped_uncontended(&mut self, thread: Option<ThreadId>) {
        self.is_held = false;
        if let Some(holder) = thread.or(self.hold.holder) {
            self.hold = Hold::unknown();
            let thread_state = &mut self.threads[holder];
            thread_state.dropped_at = None;
            thread_state.was_asked = false;
            thread_state.is_new = false;
        }
    }

    /// The same as [`taken`](Self::taken) if no thread waits. `None`: finding out which thread it is
    /// would cost too much; an unknown holder is asked to drop later.
    pub fn taken_uncontended(&mut self, thread: Option<ThreadId>) {
        self.is_held = true;
        self.last_holder = thread;
        if thread.is_some() || self.hold.holder.is_some() {
            self.hold = Hold {
                holder: thread,
                class: thread.map_or(Class::Yielded, |thread| self.threads[thread].class),
                ..Hold::unknown()
            };
        } else {
            self.hold.since = None;
            self.hold.asked_at = None;
        }
    }

    /// Whether a thread waits: selects between [`dropped`](Self::dropped) and its
    /// uncontended form.
    #[must_use]
    pub const fn has_waiters(&self) -> bool {
        self.waiting > 0
    }

    /// Whether a take may be reported by [`taken_uncontended`](Self::taken_uncontended):
    /// no thread waits, and none is about to resume. On a single processor a preempted thread
    /// returns only when the GIL is free again; it would remain unknown for ever, and an unknown
    /// holder has a grace before each request.
    #[must_use]
    pub const fn is_uncontended(&self) -> bool {
        self.waiting == 0 && self.returning.is_none()
    }

    // ---- classification ---------------------------------------------------
    fn enqueue(&mut self, thread: ThreadId, now: Nanos, arrival: Arrival) {
        let entry = self.classify(thread, now, arrival);
        let class = entry.class;
        self.end_return(thread);
        self.hold.since.get_or_insert(now);
        let woken_by = self
            .hold
            .holder
            .filter(|_| class == Class::Handed && arrival.was_on_lock && arrival.holder_has_woken);
        let thread_state = &mut self.threads[thread];
        thread_state.woken_by = woken_by;
        if class != Class::Batch {
            // A thread that never blocks for long would be asked as soon as it has the GIL.
            renew_slice(thread_state, &self.config);
        }
        thread_state.waiting_since = now;
        thread_state.awake = entry.resumes_slice.then_some(Awake::ForResume);
        if entry.resumes_slice {
            self.queues[class.index()].push_front(&mut self.threads, thread);
        } else {
            self.queues[class.index()].push_back(&mut self.threads, thread);
        }
        self.waiting += 1;
        self.count_in(thread);
        self.stats.classes[class.index()].waits += 1;
    }

    fn dequeue(&mut self, thread: ThreadId) {
        let class = self.threads[thread].class;
        self.threads[thread].was_overtaken = false;
        self.threads[thread].lingers = 0;
        self.queues[class.index()].remove(&mut self.threads, thread);
        self.waiting -= 1;
        self.count_out(thread);
        if self.timekeeper == Some(thread) {
            self.timekeeper = None;
        }
    }

    fn classify(&mut self, thread: ThreadId, now: Nanos, arrival: Arrival) -> QueueEntry {
        let entry = classify(&mut self.threads[thread], &self.config, now, arrival);
        self.finish_gap(entry.class, now);
        self.adapt_slice(thread, entry);
        entry
    }

    fn end_return(&mut self, thread: ThreadId) {
        if self.returning.is_some_and(|returning| returning.thread == thread) {
            self.returning = None;
        }
    }
}
