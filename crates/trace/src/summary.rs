//! The summary of one process's trace, as plain data for a report.
//!
//! Invariant: its size is bounded for any trace: the shortest stretches are merged until
//! [`MAX_STRETCHES`] are left, and each list has its `MAX_`.

use crate::Nanos;
use crate::contention::{self, Contention};
use crate::imports::{self, Import};
use crate::locks::{self, LockWaits};
use crate::reader::{self, Malformed, Thread, Trace};
use crate::record::Kind;
use crate::samples::{PeerWaits, Places, SAMPLED, Samples};
use crate::timeline::{self, State, Stretch};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Stretches of all threads together. As many take some 4.5 MB of the page (`python/unsnarl/trace/views/stretches.py`),
/// which may have 5 MB; with 60,000, a minute of 1,000 threads was merged to steps of a second.
pub const MAX_STRETCHES: usize = 900_000;
const MAX_PAIRS: usize = 200;
const MAX_LONG_HOLDS: usize = 100;
const MAX_LOCKS: usize = 200;
const MAX_IMPORTS: usize = 5000;
const MAX_STACKS: usize = 2000;
/// Bins of the rates over time.
const BINS: usize = 240;

/// The summary of a thread.
#[derive(Debug, Clone, Serialize)]
#[allow(
    missing_docs,
    reason = "the totals are those of `layout::thread`, which documents them"
)]
pub struct ThreadSummary {
    pub ident: u64,
    pub tid: u32,
    pub name: Option<String>,
    pub begin_ns: Nanos,
    pub end_ns: Nanos,
    pub has_ended: bool,
    pub running_ns: Nanos,
    pub waiting_ns: Nanos,
    pub on_lock_ns: Nanos,
    pub asleep_ns: Nanos,
    pub io_ns: Nanos,
    pub takes: u64,
    pub waits: u64,
    pub lock_waits: u64,
    pub wakeups: u64,
    pub longest_hold_ns: Nanos,
    pub longest_wait_ns: Nanos,
    pub forced_drops: u64,
    pub computing_ns: Nanos,
    /// Begin, length, state and node of each stretch.
    pub stretches: Vec<(Nanos, Nanos, u8, u32)>,
}

/// Hand-overs and lock waits over time.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Rates {
    /// Length of a bin.
    pub bin_ns: Nanos,
    /// When the first begins.
    pub begin_ns: Nanos,
    /// Times the GIL was taken after a wait.
    pub hand_overs: Vec<u64>,
    /// Wake-ups of waits for the GIL that ended in it.
    pub wakeups: Vec<u64>,
    /// Times a thread blocked on a lock.
    pub lock_waits: Vec<u64>,
}

/// One process.
#[derive(Debug, Clone, Serialize)]
#[allow(
    missing_docs,
    reason = "the names are those of `layout::header`, which documents them"
)]
pub struct Summary {
    pub pid: u32,
    pub parent: u32,
    pub started_ns: Nanos,
    pub started_real_ns: Nanos,
    /// Length since the start; up to the last event if the end is unknown.
    pub length_ns: Nanos,
    /// Whether the recording was ended in order.
    pub is_complete: bool,
    pub is_scheduled: bool,
    pub is_counted: bool,
    pub overwritten: u64,
    pub stacks_left_out: u64,
    pub lost: u64,
    pub executed_ns: Nanos,
    pub first_line_ns: Nanos,
    pub interval_ns: Nanos,
    pub thread_count: u64,
    /// The recorder's text about the program.
    pub text: String,
    /// Stretches shorter than this may have been merged.
    pub resolution_ns: Nanos,
    /// Start of the records; before it there are only totals.
    pub records_from_ns: Nanos,
    /// End of the imports of the start; the end of the recording, if no records were overwritten.
    pub start_until_ns: Nanos,
    pub threads: Vec<ThreadSummary>,
    pub contention: Contention,
    pub locks: Vec<LockWaits>,
    pub imports: Vec<Import>,
    pub rates: Rates,
    /// File, function, line.
    pub locations: BTreeMap<u32, (String, String, u32)>,
    /// Parent and location.
    pub nodes: BTreeMap<u32, (u32, u32)>,
    /// Thread, state, node, nanoseconds: for flame graphs.
    pub stacks: Vec<(usize, u8, u32, Nanos)>,
    /// How many stacks the sampler read.
    pub samples: u64,
    /// What threads waited for in I/O, as far as the sampler saw it.
    pub peers: Vec<PeerWaits>,
    /// Thread, time and node of each sample in a hold without a stack of the thread's own.
    pub sampled: Vec<(usize, Nanos, u32)>,
}

/// Summarises a trace file.
///
/// # Errors
/// [`Malformed`] if it is not a trace.
pub fn summarise(bytes: &[u8]) -> Result<Summary, Malformed> {
    summarise_with(bytes, &Samples::default())
}

/// Summarises a trace file and what the sampler read of its process.
///
/// # Errors
/// [`Malformed`] if it is not a trace.
pub fn summarise_with(bytes: &[u8], samples: &Samples) -> Result<Summary, Malformed> {
    let trace = reader::read(bytes)?;
    let last = trace.threads.iter().map(|thread| thread.span.1).max().unwrap_or(0);
    let end = if trace.header.ended == 0 {
        last.max(samples.latest())
    } else {
        trace.header.ended.max(last)
    };
    let mut stretches: Vec<Vec<Stretch>> = trace
        .threads
        .iter()
        .map(|thread| timeline::stretches(thread, end))
        .collect();
    samples.place_waits(&trace.threads, &mut stretches);
    let sampled = samples.place(&trace.threads, &mut stretches);
    let mut contention = contention::examine(&stretches, trace.header.interval, trace.extent.from);
    contention.pairs.truncate(MAX_PAIRS);
    contention.long_holds.truncate(MAX_LONG_HOLDS);
    let mut locks = locks::examine(&trace.threads, &stretches, trace.extent.from);
    locks.truncate(MAX_LOCKS);
    let mut imports = imports::imports(&trace);
    imports.truncate(MAX_IMPORTS);
    let (resolution_ns, shown) = merged(&stretches);
    let mut summary = Summary {
        length_ns: end,
        records_from_ns: trace.extent.from,
        start_until_ns: trace.extent.start_until.min(end),
        resolution_ns,
        threads: trace
            .threads
            .iter()
            .zip(&stretches)
            .zip(shown)
            .map(|((thread, all), shown)| sum_up(thread, all, shown, end))
            .collect(),
        rates: rates(&trace, &stretches, end),
        stacks: stacks(&stretches, &sampled),
        contention,
        locks,
        imports,
        samples: samples.taken.len() as u64,
        peers: samples.peers(&trace.threads, &stretches),
        sampled: samples.within_holds(&trace.threads, &stretches),
        ..head(trace)
    };
    samples.add_to(&mut summary.locations, &mut summary.nodes);
    Ok(summary)
}

/// A summary with the parts of the trace that are moved unchanged.
fn head(trace: Trace) -> Summary {
    let header = trace.header;
    Summary {
        pid: header.pid,
        parent: header.parent,
        started_ns: header.started,
        started_real_ns: header.started_real,
        length_ns: 0,
        is_complete: header.ended != 0,
        is_scheduled: header.is_scheduled,
        is_counted: header.is_counted,
        overwritten: header.overwritten,
        stacks_left_out: header.stacks_left_out,
        lost: header.lost,
        executed_ns: header.executed,
        first_line_ns: header.first_line,
        interval_ns: header.interval,
        thread_count: header.thread_count,
        text: header.text,
        resolution_ns: 0,
        records_from_ns: 0,
        start_until_ns: 0,
        threads: Vec::new(),
        contention: Contention::default(),
        locks: Vec::new(),
        imports: Vec::new(),
        rates: Rates::default(),
        locations: trace
            .locations
            .into_iter()
            .map(|(number, location)| (number, (location.file, location.function, location.line)))
            .collect(),
        nodes: trace.nodes.into_iter().collect(),
        stacks: Vec::new(),
        samples: 0,
        peers: Vec::new(),
        sampled: Vec::new(),
    }
}

fn time_in(stretches: &[Stretch], state: State) -> Nanos {
    stretches
        .iter()
        .filter(|stretch| stretch.state == state)
        .map(Stretch::length)
        .sum()
}

/// The totals that the thread kept itself, and the time since its last event, which it could not
/// add. For a thread that kept none, the totals are computed from its stretches.
#[allow(clippy::too_many_lines, reason = "a line a field")]
fn sum_up(thread: &Thread, stretches: &[Stretch], shown: Vec<Stretch>, end: Nanos) -> ThreadSummary {
    let counted = |kind| thread.records.iter().filter(|record| record.kind == kind).count() as u64;
    let mut totals = thread.totals.unwrap_or_else(|| {
        let mut totals = [0; 13];
        let states = [
            State::Running,
            State::Waiting,
            State::OnLock,
            State::Asleep,
            State::InIo,
        ];
        for (total, state) in totals.iter_mut().zip(states) {
            *total = time_in(stretches, state);
        }
        totals[12] = time_in(stretches, State::Computing);
        totals[5] = counted(Kind::Take);
        totals[7] = counted(Kind::LockBegin);
        totals
    });
    if thread.totals.is_some() && !thread.has_ended {
        let place = match stretches.last().map(|stretch| stretch.state) {
            Some(State::Running) => Some(0),
            Some(State::Waiting) => Some(1),
            Some(State::OnLock) => Some(2),
            Some(State::Asleep) => Some(3),
            Some(State::InIo) => Some(4),
            Some(State::Computing) => Some(12),
            None => None,
        };
        if let Some(place) = place {
            totals[place] += end.saturating_sub(thread.span.1);
        }
    }
    ThreadSummary {
        ident: thread.ident,
        tid: thread.tid,
        name: thread.name.clone(),
        begin_ns: thread.span.0,
        end_ns: if thread.has_ended { thread.span.1 } else { end },
        has_ended: thread.has_ended,
        running_ns: totals[0],
        waiting_ns: totals[1],
        on_lock_ns: totals[2],
        asleep_ns: totals[3],
        io_ns: totals[4],
        takes: totals[5],
        waits: totals[6],
        lock_waits: totals[7],
        wakeups: totals[8],
        longest_hold_ns: totals[9],
        longest_wait_ns: totals[10],
        forced_drops: totals[11],
        computing_ns: totals[12],
        stretches: shown
            .iter()
            .map(|stretch| (stretch.begin, stretch.length(), stretch.state as u8, stretch.node))
            .collect(),
    }
}

/// Merges stretches shorter than some length until few enough are left; returns that
/// length, and them.
fn merged(threads: &[Vec<Stretch>]) -> (Nanos, Vec<Vec<Stretch>>) {
    let mut shown: Vec<Vec<Stretch>> = threads.to_vec();
    let mut resolution = 0;
    while shown.iter().map(Vec::len).sum::<usize>() > MAX_STRETCHES.max(threads.len() * 2)
        && resolution < Nanos::MAX / 4
    {
        resolution = if resolution == 0 { 1000 } else { resolution * 2 };
        shown = shown.iter().map(|stretches| merge(stretches, resolution)).collect();
    }
    (resolution, shown)
}

/// Groups neighbours until each group is long enough; a group has its most frequent state.
fn merge(stretches: &[Stretch], resolution: Nanos) -> Vec<Stretch> {
    let mut result: Vec<Stretch> = Vec::new();
    let mut group: Vec<Stretch> = Vec::new();
    for stretch in stretches {
        if stretch.length() >= resolution {
            flush(&mut group, &mut result);
            result.push(*stretch);
            continue;
        }
        group.push(*stretch);
        if group[0].begin + resolution <= stretch.end {
            flush(&mut group, &mut result);
        }
    }
    flush(&mut group, &mut result);
    result
}

fn flush(group: &mut Vec<Stretch>, result: &mut Vec<Stretch>) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return;
    };
    let mut times: HashMap<State, Nanos> = HashMap::new();
    for stretch in group.iter() {
        *times.entry(stretch.state).or_default() += stretch.length();
    }
    let state = times
        .into_iter()
        .max_by_key(|&(state, time)| (time, state))
        .map(|(state, _)| state);
    let longest = group
        .iter()
        .filter(|stretch| Some(stretch.state) == state)
        .max_by_key(|stretch| stretch.length());
    if let Some(&longest) = longest {
        result.push(Stretch {
            begin: first.begin,
            end: last.end,
            ..longest
        });
    }
    group.clear();
}

fn rates(trace: &Trace, threads: &[Vec<Stretch>], end: Nanos) -> Rates {
    let begin_ns = trace.extent.from;
    let bin_ns = (end.saturating_sub(begin_ns) / BINS as u64).max(1);
    let mut rates = Rates {
        bin_ns,
        begin_ns,
        hand_overs: vec![0; BINS],
        wakeups: vec![0; BINS],
        lock_waits: vec![0; BINS],
    };
    for stretch in threads.iter().flatten().filter(|stretch| stretch.end >= begin_ns) {
        let bin = (((stretch.end - begin_ns) / bin_ns) as usize).min(BINS - 1);
        match stretch.state {
            State::Waiting => {
                rates.hand_overs[bin] += 1;
                rates.wakeups[bin] += stretch.detail;
            }
            State::OnLock => rates.lock_waits[bin] += 1,
            _ => {}
        }
    }
    rates
}

/// The time of each thread by state and node; `sampled` is that in the sampled states.
fn stacks(threads: &[Vec<Stretch>], sampled: &[Places]) -> Vec<(usize, u8, u32, Nanos)> {
    let mut times: HashMap<(usize, u8, u32), Nanos> = HashMap::new();
    let nodes = locks::assumed_nodes(threads);
    for (number, (stretches, nodes)) in threads.iter().zip(&nodes).enumerate() {
        for (stretch, &node) in stretches.iter().zip(nodes) {
            if SAMPLED.contains(&stretch.state) {
                continue;
            }
            *times.entry((number, stretch.state as u8, node)).or_default() += stretch.length();
        }
    }
    for (number, own) in sampled.iter().enumerate() {
        for (&(state, node), &time) in own {
            times.insert((number, state, node), time);
        }
    }
    let mut result: Vec<_> = times
        .into_iter()
        .map(|((thread, state, node), time)| (thread, state, node, time))
        .collect();
    result.sort_by_key(|&(thread, state, node, time)| (std::cmp::Reverse(time), thread, state, node));
    result.truncate(MAX_STACKS);
    result
}
