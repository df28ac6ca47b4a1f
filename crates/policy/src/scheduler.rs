//! The policy proper: events in, decisions out. See the crate's documentation
//! for the rules as formulas.
//!
//! Must never: block, allocate after construction, read a clock, know Python.
//! Invariants:
//! - a waiting thread is in exactly one queue from `wait` until `taken` or
//!   `cancel`; being picked does not remove it, so a picked thread that finds
//!   the GIL taken again keeps its class and its place;
//! - there is at most one heir; while there is one, the GIL is free;
//! - while threads wait, one of them (the timekeeper) has a timer, or the thread
//!   that was just asked to drop is on its way back to become it, or the
//!   insurance of every parked thread wakes one.
//!
//! Things that do not work (measured or simulated): a timer on every waiter (a
//! storm); least-GIL-time-first (starting n threads stays quadratic); an aged
//! thread goes first without rationing (inverts under overload); dequeuing the
//! picked thread (it loses its class to every barger).

use crate::Nanos;
use crate::class::{Class, Hint};
use crate::config::{Config, MICROSECOND};
use crate::queue::Queue;
use crate::stats::Stats;
use crate::thread::{Awake, Thread, ThreadId, Threads};

/// A thread that returns within this time of a drop it was asked for was
/// preempted between two bytecodes: `drop_gil` and `take_gil` follow each other
/// in `_Py_HandlePending`.
const PREEMPTED_WITHIN_NS: Nanos = 10 * MICROSECOND;
/// A picked thread that has not arrived after this time is held up by the
/// kernel's scheduler; whoever is awake may go first.
const HEIR_OVERDUE_NS: Nanos = 200 * MICROSECOND;
/// A timer that is late by no more than this is left alone.
const ALARM_SLACK_NS: Nanos = 100 * MICROSECOND;
/// While an interactive thread holds the GIL, or left it lingering, somebody
/// looks at least this often: the price of a wrong prediction.
const LINGER_WATCH_NS: Nanos = 1_000 * MICROSECOND;

/// How a thread came to want the GIL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrival {
    /// It was blocked on a lock of the interpreter since it last had the GIL.
    pub was_on_lock: bool,
    /// When it came out of the wait that a requested drop imposes, if it was in
    /// one; that wait is not time it blocked.
    pub switched_at: Option<Nanos>,
}

/// What a waiting thread does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Ask the holder to drop the GIL, then look again.
    Ask,
    /// Wait to be notified: awake for `spin_ns`, then asleep until `until`.
    Park {
        /// When to look again if nobody notifies (the policy's clock).
        until: Nanos,
        /// How long to stay awake first.
        spin_ns: Nanos,
    },
    /// The GIL is free and this thread's to take.
    Go,
}

/// Whom to notify after a drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// The thread the GIL is meant for.
    pub heir: ThreadId,
    /// If it is awake, it leaves the GIL alone until then.
    pub not_before: Nanos,
}

/// Consequences of a thread having taken the GIL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Taken {
    /// The heir whose grant is void: it waits on, in its place.
    pub revoked: Option<ThreadId>,
    /// A sleeping thread to wake so that it keeps time.
    pub appoint: Option<ThreadId>,
}

/// The current hold of the GIL.
#[derive(Debug, Clone, Copy)]
struct Tenure {
    holder: Option<ThreadId>,
    class: Class,
    /// Its start, or the arrival of the first waiter; `None` if nobody waits.
    since: Option<Nanos>,
    asked_at: Option<Nanos>,
    protected_until: Nanos,
}

impl Tenure {
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

/// A pick that has not been taken up yet.
#[derive(Debug, Clone, Copy)]
struct Heir {
    thread: ThreadId,
    picked_at: Nanos,
    is_share: bool,
}

/// State of the scheduler of one GIL.
#[derive(Debug)]
pub struct Policy {
    config: Config,
    threads: Threads,
    queues: [Queue; Class::COUNT],
    waiting: u32,
    is_held: bool,
    tenure: Tenure,
    heir: Option<Heir>,
    last_holder: Option<ThreadId>,
    timekeeper: Option<ThreadId>,
    /// When the timekeeper looks again.
    alarm: Nanos,
    /// A preempted thread that is about to wait again.
    returning: Option<ThreadId>,
    /// The thread for which the GIL was left lingering.
    lingering_for: Option<ThreadId>,
    picks_since_aged: u32,
    batch_credit_ns: Nanos,
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
            is_held: false,
            tenure: Tenure::unknown(),
            heir: None,
            last_holder: None,
            timekeeper: None,
            alarm: 0,
            returning: None,
            lingering_for: None,
            picks_since_aged: 0,
            batch_credit_ns: 0,
            stats: Stats::default(),
        }
    }

    /// Makes a record for a thread; `None` when the table is full.
    ///
    /// `tag` is the caller's name for it, given back in the statistics.
    pub fn register(&mut self, tag: u64) -> Option<ThreadId> {
        self.threads.register(&self.config, tag)
    }

    /// Gives the record of a thread that will not come back to reuse.
    pub fn retire(&mut self, thread: ThreadId) {
        self.cancel(thread);
        for role in [
            &mut self.last_holder,
            &mut self.returning,
            &mut self.lingering_for,
            &mut self.tenure.holder,
        ] {
            if *role == Some(thread) {
                *role = None;
            }
        }
        self.threads.retire(thread);
    }

    /// Forgets all waiters; in the child of a fork only `survivor` exists.
    pub fn restart_in_child(&mut self, survivor: Option<ThreadId>) {
        self.threads.keep_only(survivor);
        self.queues = [Queue::default(); Class::COUNT];
        self.waiting = 0;
        self.is_held = false;
        self.tenure = Tenure::unknown();
        self.heir = None;
        self.last_holder = survivor;
        self.timekeeper = None;
        self.returning = None;
        self.lingering_for = None;
    }

    /// Takes up work again after a time in which the GIL changed hands unseen;
    /// `thread` holds it now. Those who wait keep their places.
    pub fn resume(&mut self, thread: Option<ThreadId>) {
        self.is_held = true;
        self.tenure = Tenure {
            holder: thread,
            ..Tenure::unknown()
        };
        self.heir = None;
        self.last_holder = thread;
        self.returning = None;
        self.lingering_for = None;
    }

    /// Sets the slice of CPU-bound threads, in nanoseconds.
    pub fn set_slice(&mut self, slice_ns: Nanos) {
        self.config.slice_ns = slice_ns;
    }

    /// The values in force.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Replaces what the program says about a thread.
    pub fn set_hint(&mut self, thread: ThreadId, hint: Hint) {
        self.threads[thread].hint = hint;
    }

    /// What the program said about a thread.
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

    /// Enters `thread`, which found the GIL held, into its queue, and decides.
    pub fn wait(&mut self, thread: ThreadId, now: Nanos, arrival: Arrival) -> Verdict {
        self.is_held = true;
        if !self.threads[thread].links.is_queued {
            self.enqueue(thread, now, arrival);
        }
        self.look(thread, now)
    }

    /// Decides for a thread that waits already and has woken up, or asked.
    pub fn look(&mut self, thread: ThreadId, now: Nanos) -> Verdict {
        if !self.is_held {
            return self.look_at_free_gil(thread, now);
        }
        let due = self.ask_due(now);
        if due <= now {
            self.tenure.asked_at = Some(now);
            self.threads[thread].awake = Some(Awake::ForAnswer);
            let class = self.threads[thread].class;
            self.stats.classes[class.index()].asks += 1;
            return Verdict::Ask;
        }
        self.park(thread, now, due)
    }

    /// Takes back the verdict [`Verdict::Ask`]: it was not passed on.
    pub fn retract_ask(&mut self, thread: ThreadId) {
        self.tenure.asked_at = None;
        let record = &mut self.threads[thread];
        record.awake = None;
        self.stats.classes[record.class.index()].asks -= 1;
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

    /// Records whether a notification came while `thread` stayed awake.
    pub fn stayed_awake(&mut self, thread: ThreadId, came: bool) {
        let record = &mut self.threads[thread];
        match record.awake.take() {
            Some(Awake::ForAnswer) => record.spin_answer.record(came),
            Some(Awake::ForResume) => record.spin_resume.record(came),
            None => {}
        }
    }

    /// Takes `thread` out of its queue without the GIL.
    pub fn cancel(&mut self, thread: ThreadId) {
        if self.threads[thread].links.is_queued {
            self.dequeue(thread);
        }
        if self.heir.is_some_and(|heir| heir.thread == thread) {
            self.heir = None;
        }
    }

    // ---- the GIL changes hands --------------------------------------------

    /// The holder has dropped the GIL: whom to notify, if anybody.
    pub fn dropped(&mut self, thread: Option<ThreadId>, now: Nanos) -> Option<Grant> {
        self.is_held = false;
        let tenure = std::mem::replace(&mut self.tenure, Tenure::unknown());
        if let Some(thread) = thread {
            self.end_tenure(thread, now, tenure);
        }
        let was_preempted_for_first = tenure.class == Class::Batch && tenure.asked_at.is_some();
        let (heir, is_share) = if was_preempted_for_first {
            (self.first()?, false)
        } else {
            self.pick(now)?
        };
        self.heir = Some(Heir {
            thread: heir,
            picked_at: now,
            is_share,
        });
        let not_before = now + self.linger(thread, tenure, heir);
        Some(Grant { heir, not_before })
    }

    /// `thread` has taken the GIL.
    pub fn taken(&mut self, thread: Option<ThreadId>, now: Nanos, arrival: Arrival) -> Taken {
        self.is_held = true;
        let heir = self.heir.take();
        let is_heir = heir.is_some_and(|heir| Some(heir.thread) == thread);
        let class = thread.map_or(Class::Yielded, |thread| self.start_tenure(thread, now, arrival));
        self.tenure = Tenure {
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
        let revoked = heir.filter(|_| !is_heir).map(|heir| self.barge(heir.thread, thread));
        self.lingering_for = None;
        Taken {
            revoked,
            appoint: self.appoint(now),
        }
    }

    /// The same as [`dropped`](Self::dropped) when nobody waits: nothing is
    /// decided and no clock is needed.
    pub fn dropped_uncontended(&mut self, thread: Option<ThreadId>) {
        self.is_held = false;
        self.tenure = Tenure::unknown();
        if let Some(thread) = thread {
            let record = &mut self.threads[thread];
            record.dropped_at = None;
            record.was_asked = false;
            record.is_new = false;
        }
    }

    /// The same as [`taken`](Self::taken) when nobody waits.
    pub fn taken_uncontended(&mut self, thread: Option<ThreadId>) {
        self.is_held = true;
        self.last_holder = thread;
        self.tenure.holder = thread;
        self.tenure.class = thread.map_or(Class::Yielded, |thread| self.threads[thread].class);
        self.tenure.since = None;
        self.tenure.asked_at = None;
    }

    /// Whether anybody waits: decides between the calls above and their
    /// uncontended forms.
    #[must_use]
    pub const fn has_waiters(&self) -> bool {
        self.waiting > 0
    }

    // ---- classification ---------------------------------------------------

    fn enqueue(&mut self, thread: ThreadId, now: Nanos, arrival: Arrival) {
        let (class, keeps_turn) = self.classify(thread, now, arrival);
        if self.returning == Some(thread) {
            self.returning = None;
        }
        self.tenure.since.get_or_insert(now);
        let record = &mut self.threads[thread];
        record.waiting_since = now;
        record.awake = keeps_turn.then_some(Awake::ForResume);
        if keeps_turn {
            self.queues[class.index()].push_front(&mut self.threads, thread);
        } else {
            self.queues[class.index()].push_back(&mut self.threads, thread);
        }
        self.waiting += 1;
        self.stats.classes[class.index()].waits += 1;
    }

    fn dequeue(&mut self, thread: ThreadId) {
        let class = self.threads[thread].class;
        self.queues[class.index()].remove(&mut self.threads, thread);
        self.waiting -= 1;
        if self.timekeeper == Some(thread) {
            self.timekeeper = None;
        }
    }

    /// Class of an arriving thread, and whether it goes to the head of it.
    fn classify(&mut self, thread: ThreadId, now: Nanos, arrival: Arrival) -> (Class, bool) {
        let config = self.config;
        let record = &mut self.threads[thread];
        let away_ns = record
            .dropped_at
            .take()
            .map(|dropped_at| now.saturating_sub(arrival.switched_at.unwrap_or(dropped_at)));
        let was_preempted =
            record.was_asked && !arrival.was_on_lock && away_ns.is_some_and(|away| away < PREEMPTED_WITHIN_NS);
        if !was_preempted && let Some(away) = away_ns {
            record.predictor.record(away < config.short_ns);
        }
        let has_blocked = arrival.was_on_lock || (!was_preempted && away_ns.is_none_or(|away| away >= config.block_ns));
        if has_blocked {
            record.finish_burst(&config);
        } else if let Some(away) = away_ns {
            record.burst_ns = record.burst_ns.saturating_sub(away);
        }
        let class = if record.is_new {
            Class::Handed
        } else {
            Self::class_by_history(record, &config, arrival, was_preempted, has_blocked)
        };
        let class = match record.hint {
            Hint::None => class,
            Hint::Interactive => class.min(Class::Io),
            Hint::Batch => Class::Batch,
        };
        record.class = class;
        let keeps_turn = class == Class::Batch && !has_blocked && Self::keep_turn(record, &config);
        (class, keeps_turn)
    }

    fn class_by_history(
        record: &Thread,
        config: &Config,
        arrival: Arrival,
        was_preempted: bool,
        has_blocked: bool,
    ) -> Class {
        let is_long = if has_blocked {
            record.burst_mean_ns > config.burst_cap_ns
        } else {
            record.burst_ns >= config.batch_after_ns
        };
        if has_blocked {
            match (is_long, arrival.was_on_lock) {
                (true, _) => Class::Batch,
                (false, true) => Class::Handed,
                (false, false) => Class::Io,
            }
        } else if is_long && (was_preempted || record.class == Class::Batch || record.burst_ns > config.burst_cap_ns) {
            Class::Batch
        } else if was_preempted {
            Class::Yielded
        } else {
            Class::Io
        }
    }

    /// Whether an interrupted thread resumes its slice; else it gets a new one.
    fn keep_turn(record: &mut Thread, config: &Config) -> bool {
        let keeps = record.slice_left_ns > config.slice_ns / 16;
        if !keeps {
            record.slice_left_ns = config.slice_ns;
        }
        keeps
    }

    // ---- when to ask, and who watches the clock ---------------------------

    /// When the holder is to be asked, for the sake of whoever is most urgent.
    fn ask_due(&self, now: Nanos) -> Nanos {
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
    fn patience(&self, waiter: ThreadId) -> Nanos {
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
        self.config
            .grace_ns
            .max(2 * record.burst_mean_ns)
            .min(self.config.slice_ns)
    }

    fn park(&mut self, thread: ThreadId, now: Nanos, due: Nanos) -> Verdict {
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

    fn spin(&mut self, thread: ThreadId) -> Nanos {
        let config = self.config;
        let holder_is_short = self.tenure.class != Class::Batch;
        let record = &mut self.threads[thread];
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

    fn look_at_free_gil(&self, thread: ThreadId, now: Nanos) -> Verdict {
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
    fn appoint(&mut self, now: Nanos) -> Option<ThreadId> {
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

    // ---- picking ----------------------------------------------------------

    fn pick(&mut self, now: Nanos) -> Option<(ThreadId, bool)> {
        let first = self.first()?;
        if self.threads[first].class != Class::Batch
            && self.batch_credit_ns >= self.config.batch_quantum_ns
            && let Some(batch) = self.queues[Class::Batch.index()].head()
        {
            self.stats.share_picks += 1;
            return Some((batch, true));
        }
        self.picks_since_aged = self.picks_since_aged.saturating_add(1);
        if self.picks_since_aged >= self.config.aged_pick_every
            && let Some(aged) = self.aged(now)
            && aged != first
        {
            self.picks_since_aged = 0;
            self.stats.aged_picks += 1;
            return Some((aged, true));
        }
        Some((first, false))
    }

    fn first(&self) -> Option<ThreadId> {
        self.queues.iter().find_map(Queue::head)
    }

    /// The longest waiting head, if it has waited past the age.
    fn aged(&self, now: Nanos) -> Option<ThreadId> {
        let heads = self.queues.iter().filter_map(Queue::head);
        let oldest = heads.min_by_key(|&head| self.threads[head].waiting_since)?;
        (self.threads[oldest].waiting_since + self.config.age_ns <= now).then_some(oldest)
    }

    /// How long an awake heir leaves the GIL alone after this drop.
    fn linger(&mut self, dropper: Option<ThreadId>, tenure: Tenure, heir: ThreadId) -> Nanos {
        let Some(dropper) = dropper else { return 0 };
        let comes_back = tenure.class != Class::Batch && self.threads[dropper].predictor.is_short_expected();
        if tenure.asked_at.is_some() || !comes_back || self.threads[heir].class != Class::Batch {
            return 0;
        }
        self.stats.lingers += 1;
        self.lingering_for = Some(dropper);
        self.config.linger_ns
    }

    // ---- accounting -------------------------------------------------------

    fn end_tenure(&mut self, thread: ThreadId, now: Nanos, tenure: Tenure) {
        let was_asked = tenure.asked_at.is_some();
        let record = &mut self.threads[thread];
        record.is_new = false;
        record.dropped_at = Some(now);
        record.was_asked = was_asked;
        self.returning = was_asked.then_some(thread);
        if was_asked {
            self.stats.classes[tenure.class.index()].forced_drops += 1;
        }
        let Some(since) = tenure.since else { return };
        let hold_ns = now.saturating_sub(since);
        record.burst_ns = record.burst_ns.saturating_add(hold_ns);
        record.slice_left_ns = record.slice_left_ns.saturating_sub(hold_ns);
        self.stats.record_hold(record.tag, hold_ns);
        self.account_share(tenure.class, hold_ns);
    }

    fn account_share(&mut self, class: Class, hold_ns: Nanos) {
        if class == Class::Batch {
            self.batch_credit_ns = self.batch_credit_ns.saturating_sub(hold_ns);
        } else if self.queues[Class::Batch.index()].len() > 0 {
            let credit = self.batch_credit_ns + hold_ns / self.config.batch_share_of;
            self.batch_credit_ns = credit.min(2 * self.config.batch_quantum_ns);
        }
    }

    /// Books the end of the wait, or classifies a thread that did not wait.
    fn start_tenure(&mut self, thread: ThreadId, now: Nanos, arrival: Arrival) -> Class {
        if self.threads[thread].links.is_queued {
            let class = self.threads[thread].class;
            let waited_ns = now.saturating_sub(self.threads[thread].waiting_since);
            self.stats.classes[class.index()].wait_ns.record(waited_ns);
            self.dequeue(thread);
            return class;
        }
        if self.lingering_for == Some(thread) {
            self.stats.lingers_hit += 1;
        }
        if self.returning == Some(thread) {
            self.returning = None;
        }
        self.classify(thread, now, arrival).0
    }

    /// Until when nobody asks: a CPU-bound thread that is owed its least share,
    /// or one that was picked out of order, runs at least for a quantum.
    fn protection(&self, heir: Option<Heir>, class: Class, now: Nanos) -> Nanos {
        let is_owed = class == Class::Batch && self.batch_credit_ns >= self.config.batch_quantum_ns;
        if is_owed || heir.is_some_and(|heir| heir.is_share) {
            now + self.config.batch_quantum_ns
        } else {
            0
        }
    }

    fn barge(&mut self, heir: ThreadId, by: Option<ThreadId>) -> ThreadId {
        let is_expected = self.lingering_for.is_some() && self.lingering_for == by;
        if !is_expected {
            let class = self.threads[heir].class;
            self.stats.classes[class.index()].barged += 1;
        }
        heir
    }
}
