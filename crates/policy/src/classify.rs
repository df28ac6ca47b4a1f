//! Classifies a thread that requests the GIL, by its history.
//!
//! Pure: one thread's state and one arrival in, a class out. Invariants: a thread is CPU-bound only
//! after it had to be preempted, or if it never stays off the GIL as long as on it; a requested
//! drop alone proves nothing (an I/O thread may drop voluntarily at that moment), so it never
//! lowers a class by itself.

use crate::Nanos;
use crate::class::{Class, Hint};
use crate::config::{Config, MICROSECOND, MILLISECOND};
use crate::ports::Arrival;
use crate::thread::Thread;

/// A thread that returns within this time after a requested drop was preempted between two
/// bytecodes: `drop_gil` and `take_gil` follow each other in `_Py_HandlePending`.
const PREEMPTED_WITHIN_NS: Nanos = 10 * MICROSECOND;
/// A thread that returns within this time may have been preempted so: on a busy machine the
/// kernel preempts it between the two calls. It keeps its class.
const PERHAPS_PREEMPTED_WITHIN_NS: Nanos = MILLISECOND;

/// The class and the end of the queue at which an arriving thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueEntry {
    pub(crate) class: Class,
    /// It resumes its slice, at the head of its class.
    pub(crate) resumes_slice: bool,
    /// How long the short call took that it returns from; 0 if it returns from no such call.
    pub(crate) call_ns: Nanos,
}

/// How the thread's time off the GIL ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Return {
    /// From a lock, or after so long that it must have waited for something.
    Blocked,
    /// From a short call that released the GIL.
    Short,
    /// From a drop it was asked for.
    Preempted,
}

/// Accounts for the return of a thread; returns where it queues.
pub(crate) fn classify(thread_state: &mut Thread, config: &Config, now: Nanos, arrival: Arrival) -> QueueEntry {
    let dropped_at = arrival
        .switched_at
        .or(thread_state.dropped_at)
        .filter(|_| thread_state.dropped_at.is_some());
    let away_ns = dropped_at.map(|dropped_at| now.saturating_sub(dropped_at));
    thread_state.dropped_at = None;
    let how = how_it_returned(thread_state, config, away_ns, arrival);
    match (how, away_ns) {
        (Return::Blocked, _) => thread_state.finish_burst(config),
        (Return::Short, Some(away)) => {
            thread_state.count_call();
            thread_state.burst_ns = thread_state.burst_ns.saturating_sub(away);
        }
        (_, Some(away)) => thread_state.burst_ns = thread_state.burst_ns.saturating_sub(away),
        (_, None) => {}
    }
    let by_history = if thread_state.is_new {
        Class::Handed
    } else {
        class_by_history(thread_state, config, arrival, how)
    };
    thread_state.class = match thread_state.hint {
        Hint::None => by_history,
        Hint::Interactive => by_history.min(Class::Io),
        Hint::Batch => Class::Batch,
    };
    let is_resuming = thread_state.class == Class::Batch && how != Return::Blocked;
    QueueEntry {
        class: thread_state.class,
        resumes_slice: is_resuming && !renew_slice(thread_state, config),
        call_ns: away_ns.filter(|_| how == Return::Short).unwrap_or(0),
    }
}

fn how_it_returned(thread_state: &mut Thread, config: &Config, away_ns: Option<Nanos>, arrival: Arrival) -> Return {
    let Some(away) = away_ns else { return Return::Blocked };
    let was_preempted = thread_state.was_asked && !arrival.was_on_lock && away < PERHAPS_PREEMPTED_WITHIN_NS;
    if !(was_preempted && away < PREEMPTED_WITHIN_NS) {
        thread_state.predictor.record(away < config.short_ns);
    }
    if was_preempted {
        Return::Preempted
    } else if arrival.was_on_lock || away >= config.block_ns {
        Return::Blocked
    } else {
        Return::Short
    }
}

fn class_by_history(thread_state: &Thread, config: &Config, arrival: Arrival, how: Return) -> Class {
    let is_on_and_on = thread_state.burst_ns >= config.batch_after_ns;
    let was_batch = thread_state.class == Class::Batch;
    match how {
        Return::Blocked if thread_state.burst_mean_ns > config.burst_cap_ns => Class::Batch,
        Return::Blocked if arrival.was_on_lock => Class::Handed,
        Return::Blocked => Class::Io,
        Return::Short if thread_state.burst_ns > config.burst_cap_ns || (was_batch && is_on_and_on) => Class::Batch,
        Return::Short => Class::Io,
        Return::Preempted if is_on_and_on => Class::Batch,
        Return::Preempted if was_batch => Class::Yielded,
        Return::Preempted => thread_state.class,
    }
}

/// Gives a new slice to a thread that has used up its own; returns whether it did.
pub(crate) const fn renew_slice(thread_state: &mut Thread, config: &Config) -> bool {
    let is_used_up = thread_state.slice_left_ns <= config.slice_ns / 16;
    if is_used_up {
        thread_state.slice_left_ns = config.slice_ns;
    }
    is_used_up
}
