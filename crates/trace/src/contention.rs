//! Attributes waits for the GIL to the threads that held it, and counts spurious wake-ups.
//!
//! A wait is attributed to the thread that held the GIL for most of it. A hold is *long* if a thread
//! waited through several switch intervals of it. Such a hold was one call into C, since an eval
//! loop drops the GIL at the next bytecode after a request.
//! Invariant: a wait is attributed to at most one pair of threads.

use crate::Nanos;
use crate::timeline::{State, Stretch};
use serde::Serialize;
use std::collections::HashMap;

/// Waits shorter than this are not attributed: they are hand-overs.
pub const NOTABLE_WAIT_NS: Nanos = 500_000;
/// A hold is long if a thread waited through this many switch intervals of it.
const LONG_HOLD_INTERVALS: u64 = 3;
/// A wait is compared with at most this many holds, the last ones.
const HOLDS_PER_WAIT: usize = 4096;
/// Buckets of the histogram, a power of two of microseconds each.
pub const BUCKETS: usize = 32;
/// Upper bounds of the groups by number of waiters.
const WAITER_GROUPS: [u32; 7] = [1, 3, 7, 15, 31, 63, u32::MAX];

/// The waits of one thread that are attributed to another.
#[derive(Debug, Clone, Default, Serialize, PartialEq, Eq)]
pub struct Pair {
    /// Number of the thread that waited.
    pub waiter: usize,
    /// Number of the thread that held the GIL.
    pub holder: usize,
    /// How often.
    pub count: u64,
    /// All together.
    pub total_ns: Nanos,
    /// The longest.
    pub longest_ns: Nanos,
    /// Median.
    pub median_ns: Nanos,
    /// The stack most often seen with the holder; 0 if none.
    pub holder_node: u32,
    /// The stack most often seen with the waiter; 0 if none.
    pub waiter_node: u32,
}

/// A hold that others waited through.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct LongHold {
    /// Number of the thread.
    pub thread: usize,
    /// When it took the GIL.
    pub begin_ns: Nanos,
    /// How long the holder had held the lock.
    pub length_ns: Nanos,
    /// The longest that a thread waited meanwhile.
    pub waited_ns: Nanos,
    /// How many threads waited.
    pub victims: u64,
    /// For how long, at least, the holder had no processor meanwhile.
    pub starved_ns: Nanos,
    /// Stack at which it held the GIL; 0 if unknown.
    pub node: u32,
}

/// Wake-ups per wait, by the number of other waiters.
#[derive(Debug, Clone, Copy, Default, Serialize, PartialEq, Eq)]
pub struct WakeupGroup {
    /// Least number of others that waited.
    pub waiters_from: u32,
    /// Largest such number; `None` for the last group.
    pub waiters_to: Option<u32>,
    /// Waits.
    pub waits: u64,
    /// Wake-ups.
    pub wakeups: u64,
    /// Sum of the numbers of other waiters.
    pub waiters: u64,
}

/// Everything about the GIL.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Contention {
    /// Largest total first.
    pub pairs: Vec<Pair>,
    /// Longest first.
    pub long_holds: Vec<LongHold>,
    /// Fewest waiters first; empty groups are left out.
    pub wakeups: Vec<WakeupGroup>,
    /// Waits by length: the n-th counts those below 2^n microseconds.
    pub histogram: Vec<u64>,
}

struct Hold {
    begin: Nanos,
    end: Nanos,
    thread: usize,
    node: u32,
    starved: Nanos,
}

#[derive(Default)]
struct Tally {
    lengths: Vec<Nanos>,
    holder_nodes: HashMap<u32, Nanos>,
    waiter_nodes: HashMap<u32, Nanos>,
}

/// The known node with most time; 0 if none is known.
pub(crate) fn most(nodes: &HashMap<u32, Nanos>) -> u32 {
    nodes
        .iter()
        .filter(|&(&node, _)| node != 0)
        .max_by_key(|&(&node, &time)| (time, node))
        .map_or(0, |(&node, _)| node)
}

/// Examines the stretches of all threads. Waits that ended before `from` are left out: the records of the
/// threads that held the GIL then may be overwritten.
#[must_use]
pub fn examine(threads: &[Vec<Stretch>], interval: Nanos, from: Nanos) -> Contention {
    let holds = holds_of(threads);
    let mut tallies: HashMap<(usize, usize), Tally> = HashMap::new();
    let mut long: HashMap<usize, LongHold> = HashMap::new();
    let mut result = Contention {
        histogram: vec![0; BUCKETS],
        ..Contention::default()
    };
    let mut groups = empty_groups();
    for (waiter, stretches) in threads.iter().enumerate() {
        let waits = stretches.iter().filter(|stretch| stretch.state == State::Waiting);
        for wait in waits.filter(|wait| wait.end >= from) {
            count(wait, &mut result.histogram, &mut groups);
            if wait.length() >= NOTABLE_WAIT_NS {
                blame(waiter, wait, &holds, interval, &mut tallies, &mut long);
            }
        }
    }
    result.pairs = tallies.into_iter().map(|(key, tally)| pair(key, tally)).collect();
    result
        .pairs
        .sort_by_key(|pair| (std::cmp::Reverse(pair.total_ns), pair.waiter, pair.holder));
    result.long_holds = long.into_values().collect();
    result
        .long_holds
        .sort_by_key(|hold| (std::cmp::Reverse(hold.length_ns), hold.begin_ns));
    result.wakeups = groups.into_iter().filter(|group| group.waits > 0).collect();
    result
}

fn holds_of(threads: &[Vec<Stretch>]) -> Vec<Hold> {
    let mut holds: Vec<Hold> = threads
        .iter()
        .enumerate()
        .flat_map(|(thread, stretches)| {
            stretches
                .iter()
                .filter(|stretch| stretch.state == State::Running)
                .map(move |stretch| Hold {
                    begin: stretch.begin,
                    end: stretch.end,
                    thread,
                    node: stretch.node,
                    starved: stretch.detail,
                })
        })
        .collect();
    holds.sort_by_key(|hold| hold.begin);
    holds
}

fn empty_groups() -> Vec<WakeupGroup> {
    let mut from = 0;
    WAITER_GROUPS
        .iter()
        .map(|&to| {
            let group = WakeupGroup {
                waiters_from: from,
                waiters_to: (to != u32::MAX).then_some(to),
                ..WakeupGroup::default()
            };
            from = to.saturating_add(1);
            group
        })
        .collect()
}

fn count(wait: &Stretch, histogram: &mut [u64], groups: &mut [WakeupGroup]) {
    let micros = wait.length() / 1000;
    let bucket = (u64::BITS - micros.leading_zeros()) as usize;
    histogram[bucket.min(BUCKETS - 1)] += 1;
    let place = WAITER_GROUPS.iter().position(|&to| wait.waiters <= to).unwrap_or(0);
    groups[place].waits += 1;
    groups[place].wakeups += wait.detail;
    groups[place].waiters += u64::from(wait.waiters);
}

/// Attributes a wait to the thread that held the GIL for most of it.
fn blame(
    waiter: usize,
    wait: &Stretch,
    holds: &[Hold],
    interval: Nanos,
    tallies: &mut HashMap<(usize, usize), Tally>,
    long: &mut HashMap<usize, LongHold>,
) {
    let mut shares: HashMap<usize, Nanos> = HashMap::new();
    let until = holds.partition_point(|hold| hold.begin < wait.end);
    let mut nodes: HashMap<(usize, u32), Nanos> = HashMap::new();
    for index in (0..until).rev().take(HOLDS_PER_WAIT) {
        let hold = &holds[index];
        let overlap = hold.end.min(wait.end).saturating_sub(hold.begin.max(wait.begin));
        if hold.thread == waiter || overlap == 0 {
            if hold.end + interval.max(1_000_000) * 1000 < wait.begin {
                break;
            }
            continue;
        }
        *shares.entry(hold.thread).or_default() += overlap;
        *nodes.entry((hold.thread, hold.node)).or_default() += overlap;
        if overlap >= interval * LONG_HOLD_INTERVALS && interval > 0 {
            note_long(long, index, hold, overlap);
        }
    }
    let Some((&holder, _)) = shares.iter().max_by_key(|&(&thread, &time)| (time, thread)) else {
        return;
    };
    let tally = tallies.entry((waiter, holder)).or_default();
    tally.lengths.push(wait.length());
    *tally.waiter_nodes.entry(wait.node).or_default() += wait.length();
    for (&(thread, node), &time) in &nodes {
        if thread == holder {
            *tally.holder_nodes.entry(node).or_default() += time;
        }
    }
}

fn note_long(long: &mut HashMap<usize, LongHold>, index: usize, hold: &Hold, overlap: Nanos) {
    let entry = long.entry(index).or_insert(LongHold {
        thread: hold.thread,
        begin_ns: hold.begin,
        length_ns: hold.end - hold.begin,
        waited_ns: 0,
        victims: 0,
        starved_ns: hold.starved,
        node: hold.node,
    });
    entry.victims += 1;
    entry.waited_ns = entry.waited_ns.max(overlap);
}

fn pair((waiter, holder): (usize, usize), mut tally: Tally) -> Pair {
    tally.lengths.sort_unstable();
    Pair {
        waiter,
        holder,
        count: tally.lengths.len() as u64,
        total_ns: tally.lengths.iter().sum(),
        longest_ns: tally.lengths.last().copied().unwrap_or(0),
        median_ns: tally.lengths.get(tally.lengths.len() / 2).copied().unwrap_or(0),
        holder_node: most(&tally.holder_nodes),
        waiter_node: most(&tally.waiter_nodes),
    }
}
