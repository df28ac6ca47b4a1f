//! Divides the time of a thread among the stacks that were sampled in it.
//!
//! A stack that the thread took itself stays, except where a hold of the GIL ended by a call: that stack is of the call, and
//! the thread may have computed elsewhere. Invariant: the times of a state add up to the thread's time in it.

use crate::Nanos;
use crate::timeline::{State, Stretch};
use std::collections::HashMap;

/// With fewer samples, time is not divided among them.
pub(crate) const LEAST_SAMPLES: usize = 5;
/// A wait of this length has a sample of its own, also if it never ended.
pub(crate) const LONG_WAIT: Nanos = 100_000_000;

/// The time in one state by node. The samples are those of a thread's entry, which other threads may have used before
/// and after.
pub(crate) fn place(stretches: &mut [Stretch], state: State, samples: &[(Nanos, u32)]) -> HashMap<u32, Nanos> {
    let mut times: HashMap<u32, Nanos> = HashMap::new();
    let mut pooled: HashMap<u32, usize> = HashMap::new();
    let mut unplaced = 0;
    if state == State::Running {
        place_before_calls(stretches, samples, &mut times);
    }
    for index in 0..stretches.len() {
        let is_placed = ends_in_call(stretches, index);
        let stretch = &mut stretches[index];
        if stretch.state != state {
            continue;
        }
        if stretch.node != 0 {
            if !is_placed {
                *times.entry(stretch.node).or_default() += stretch.length();
            }
            continue;
        }
        let mut counts = HashMap::new();
        count_within(samples, stretch, &mut counts);
        stretch.node = usual(&counts);
        let is_long_wait = state != State::Running && stretch.length() >= LONG_WAIT && stretch.node != 0;
        if is_long_wait || counts.values().sum::<usize>() >= LEAST_SAMPLES {
            divide(stretch.length(), &counts, &mut times);
        } else {
            unplaced += stretch.length();
            for (node, count) in counts {
                *pooled.entry(node).or_default() += count;
            }
        }
    }
    if pooled.values().sum::<usize>() < LEAST_SAMPLES {
        pooled.clear();
    }
    divide(unplaced, &pooled, &mut times);
    times
}

/// Divides the time of holds that ended by a call by the samples in all of them that have the same stack, and gives them
/// the one that was sampled most.
fn place_before_calls(stretches: &mut [Stretch], samples: &[(Nanos, u32)], times: &mut HashMap<u32, Nanos>) {
    let mut holds: HashMap<u32, (Nanos, HashMap<u32, usize>)> = HashMap::new();
    let before_calls: Vec<usize> = (0..stretches.len())
        .filter(|&index| ends_in_call(stretches, index) && stretches[index].node != 0)
        .collect();
    for &index in &before_calls {
        let (time, counts) = holds.entry(stretches[index].node).or_default();
        *time += stretches[index].length();
        count_within(samples, &stretches[index], counts);
    }
    holds.retain(|&own, (time, counts)| {
        let is_sampled = counts.values().sum::<usize>() >= LEAST_SAMPLES;
        if is_sampled {
            divide(*time, counts, times);
        } else {
            *times.entry(own).or_default() += *time;
        }
        is_sampled
    });
    for index in before_calls {
        let node = &mut stretches[index].node;
        *node = holds.get(node).map_or(*node, |(_, counts)| usual(counts));
    }
}

fn count_within(samples: &[(Nanos, u32)], stretch: &Stretch, counts: &mut HashMap<u32, usize>) {
    let from = samples.partition_point(|&(time, _)| time < stretch.begin);
    let until = samples.partition_point(|&(time, _)| time < stretch.end);
    for &(_, node) in samples.get(from..until).unwrap_or_default() {
        *counts.entry(node).or_default() += 1;
    }
}

/// Whether a hold ended by a call that released the GIL, so that the stack that the thread took is that of the call. It may
/// have computed elsewhere: `with lock: return copy.deepcopy(tree)` drops the GIL at the line of the `with`.
fn ends_in_call(stretches: &[Stretch], index: usize) -> bool {
    let is_hold = stretches[index].state == State::Running;
    let next = stretches.get(index + 1);
    is_hold && next.is_some_and(|next| !matches!(next.state, State::Running | State::Waiting))
}

pub(crate) fn usual(counts: &HashMap<u32, usize>) -> u32 {
    counts
        .iter()
        .max_by_key(|&(&node, &count)| (count, node))
        .map_or(0, |(&node, _)| node)
}

/// Divides a time among nodes by their counts; the remainder of the division goes to the most frequent one.
fn divide(time: Nanos, counts: &HashMap<u32, usize>, times: &mut HashMap<u32, Nanos>) {
    let whole = counts.values().sum::<usize>() as u64;
    let mut rest = time;
    for (&node, &count) in counts {
        let part = time / whole.max(1) * count as u64;
        *times.entry(node).or_default() += part;
        rest -= part;
    }
    if rest > 0 {
        *times.entry(usual(counts)).or_default() += rest;
    }
}
