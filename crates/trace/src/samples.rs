//! Stacks that the sampler read from outside, and how they place the time of threads that nobody interrupts.
//!
//! A thread that computes alone is never asked to drop the GIL, so it never takes its own stack. The sampler reads
//! its frames from another process now and then. A thread that makes calls of less than a millisecond takes no stack
//! either, and is sampled in them as well.
//!
//! Must never: replace a stack that the thread took itself, except where samples show that a hold's stack is late, or
//! where the hold ended by a call.
//! Invariant: placed and unplaced time of a thread in each sampled state add up to its time in that state.

use crate::Nanos;
use crate::placing::{LEAST_SAMPLES, LONG_WAIT, place, usual};
use crate::reader::Thread;
use crate::timeline::{State, Stretch};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Added to the sampler's numbers of locations and nodes: the recorder's are smaller.
pub const FIRST: u32 = 1 << 20;
/// The share of a hold's samples at one line, in percent, from which on the hold was spent there.
const AGREED: usize = 75;
/// The states in which a thread may take no stack and have a sample: it computes alone, or makes calls and sleeps of
/// less than a millisecond. Until another thread takes the GIL, the sampler reads the thread that dropped it.
pub(crate) const SAMPLED: [State; 3] = [State::Running, State::InIo, State::Asleep];

/// The time of a thread by state and node.
pub(crate) type Places = HashMap<(u8, u32), Nanos>;

/// What the sampler read of one process; numbers of locations and nodes are counted from zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Samples {
    /// File, function, line.
    pub locations: Vec<(String, String, u32)>,
    /// The parent (plus one, zero for none) and the location of each node.
    pub nodes: Vec<(u32, u32)>,
    /// Time since the start of the recording, entry of the thread, node.
    pub taken: Vec<(Nanos, u32, u32)>,
    /// What threads waited for in system calls: peers and files.
    pub peers: Vec<String>,
    /// Time, entry of the thread, number of the peer.
    pub waits: Vec<(Nanos, u32, u32)>,
}

/// What a thread waited for in I/O at a node, and how often it was seen there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PeerWaits {
    /// Number of the thread.
    pub thread: usize,
    /// Stack at which it waited; 0 if none was taken.
    pub node: u32,
    /// The peer or the file.
    pub peer: String,
    /// How many samples.
    pub count: u64,
}

impl Samples {
    /// Adds the sampler's locations and nodes to the recorder's.
    pub(crate) fn add_to(
        &self,
        locations: &mut BTreeMap<u32, (String, String, u32)>,
        nodes: &mut BTreeMap<u32, (u32, u32)>,
    ) {
        for (number, location) in (FIRST..).zip(&self.locations) {
            locations.insert(number, location.clone());
        }
        for (number, &(parent, location)) in (FIRST..).zip(&self.nodes) {
            let parent = if parent == 0 {
                0
            } else {
                (FIRST - 1).saturating_add(parent)
            };
            nodes.insert(number, (parent, FIRST.saturating_add(location)));
        }
    }

    /// The time of the last sample; a process that was killed was alive until then.
    pub(crate) fn latest(&self) -> Nanos {
        let times = self.taken.iter().chain(&self.waits).map(|&(time, _, _)| time);
        times.max().unwrap_or(0)
    }

    /// Gives long waits for locks without a stack the one that was sampled in them: those that never ended.
    pub(crate) fn place_waits(&self, threads: &[Thread], stretches: &mut [Vec<Stretch>]) {
        let by_entry = by_entry(&self.taken);
        for (thread, own) in threads.iter().zip(stretches) {
            let samples = by_entry.get(&thread.entry).map_or(&[][..], Vec::as_slice);
            let unplaced = |stretch: &&mut Stretch| {
                stretch.state == State::OnLock && stretch.node == 0 && stretch.length() >= LONG_WAIT
            };
            for stretch in own.iter_mut().filter(unplaced) {
                let next = samples.partition_point(|&(time, _)| time < stretch.end);
                let last = next.checked_sub(1).and_then(|index| samples.get(index));
                let known = last.filter(|&&(time, node)| time >= stretch.begin && (node as usize) < self.nodes.len());
                stretch.node = known.map_or(0, |&(_, node)| FIRST + node);
            }
        }
    }

    /// Gives stretches without a stack the one that was sampled most in them; returns the time of each thread in the
    /// sampled states by state and node, with node 0 for time without one.
    pub(crate) fn place(&self, threads: &[Thread], stretches: &mut [Vec<Stretch>]) -> Vec<Places> {
        let known = self
            .taken
            .iter()
            .filter(|sample| (sample.2 as usize) < self.nodes.len());
        let placed: Vec<_> = known.map(|&(time, entry, node)| (time, entry, FIRST + node)).collect();
        let by_entry = by_entry(&placed);
        threads
            .iter()
            .zip(stretches)
            .map(|(thread, own)| {
                let samples = by_entry.get(&thread.entry).map_or(&[][..], Vec::as_slice);
                self.place_late_stacks(own, samples);
                let placed = SAMPLED.map(|state| place(own, state, samples));
                let keyed = SAMPLED.iter().zip(placed);
                keyed
                    .flat_map(|(&state, times)| times.into_iter().map(move |(node, time)| ((state as u8, node), time)))
                    .collect()
            })
            .collect()
    }

    /// Gives the holds of one stack the one that was sampled in them, where the samples agree on a line.
    ///
    /// The thread takes its stack where it drops the GIL. An operator has no check for a request to do so, so a thread
    /// that adds long byte strings, or looks for an item in a long list, drops the GIL at a later line.
    fn place_late_stacks(&self, stretches: &mut [Stretch], samples: &[(Nanos, u32)]) {
        let has_late_stack =
            |stretch: &Stretch| stretch.state == State::Running && stretch.node != 0 && stretch.node < FIRST;
        let mut sampled: HashMap<u32, HashMap<u32, usize>> = HashMap::new();
        for &(time, node) in samples {
            let next = stretches.partition_point(|stretch| stretch.begin <= time);
            let hold = next.checked_sub(1).and_then(|index| stretches.get(index));
            if let Some(hold) = hold.filter(|hold| time < hold.end && has_late_stack(hold)) {
                *sampled.entry(hold.node).or_default().entry(node).or_default() += 1;
            }
        }
        let agreed: HashMap<u32, u32> = sampled
            .into_iter()
            .filter_map(|(own, counts)| Some((own, self.agreed(&counts)?)))
            .collect();
        for stretch in stretches.iter_mut().filter(|stretch| has_late_stack(stretch)) {
            stretch.node = agreed.get(&stretch.node).copied().unwrap_or(stretch.node);
        }
    }

    /// The usual node, if nearly all samples are at its line; `None` if they are not, or few.
    fn agreed(&self, counts: &HashMap<u32, usize>) -> Option<u32> {
        let line = |node: u32| self.nodes.get(node.checked_sub(FIRST)? as usize).map(|&(_, line)| line);
        let most = line(usual(counts));
        let there = counts.iter().filter(|&(&node, _)| line(node) == most);
        let there: HashMap<u32, usize> = there.map(|(&node, &count)| (node, count)).collect();
        let whole = counts.values().sum::<usize>();
        let is_agreed = whole >= LEAST_SAMPLES && there.values().sum::<usize>() * 100 >= whole * AGREED;
        is_agreed.then(|| usual(&there))
    }

    /// The samples in holds that the thread read no stack of itself: number of the thread, time, node.
    pub(crate) fn within_holds(&self, threads: &[Thread], stretches: &[Vec<Stretch>]) -> Vec<(usize, Nanos, u32)> {
        let by_entry = by_entry(&self.taken);
        let mut result = Vec::new();
        for (number, (thread, own)) in threads.iter().zip(stretches).enumerate() {
            for &(time, node) in by_entry.get(&thread.entry).map_or(&[][..], Vec::as_slice) {
                let next = own.partition_point(|stretch| stretch.begin <= time);
                let hold = next.checked_sub(1).and_then(|index| own.get(index));
                let is_within = hold.is_some_and(|stretch| {
                    stretch.state == State::Running && time < stretch.end && stretch.node >= FIRST
                });
                if is_within && (node as usize) < self.nodes.len() {
                    result.push((number, time, FIRST + node));
                }
            }
        }
        result
    }

    /// What the threads waited for in I/O, by node.
    pub(crate) fn peers(&self, threads: &[Thread], stretches: &[Vec<Stretch>]) -> Vec<PeerWaits> {
        let by_entry = by_entry(&self.waits);
        let mut counts: BTreeMap<(usize, u32, u32), u64> = BTreeMap::new();
        for (number, (thread, own)) in threads.iter().zip(stretches).enumerate() {
            for &(time, peer) in by_entry.get(&thread.entry).map_or(&[][..], Vec::as_slice) {
                let next = own.partition_point(|stretch| stretch.begin <= time);
                let at = next.checked_sub(1).and_then(|index| own.get(index));
                if let Some(stretch) = at.filter(|stretch| stretch.state == State::InIo && time < stretch.end) {
                    *counts.entry((number, stretch.node, peer)).or_default() += 1;
                }
            }
        }
        counts
            .into_iter()
            .filter_map(|((thread, node, peer), count)| {
                let peer = self.peers.get(peer as usize)?.clone();
                Some(PeerWaits {
                    thread,
                    node,
                    peer,
                    count,
                })
            })
            .collect()
    }
}

/// The samples of each entry, in order of time.
fn by_entry(samples: &[(Nanos, u32, u32)]) -> HashMap<u32, Vec<(Nanos, u32)>> {
    let mut result: HashMap<u32, Vec<(Nanos, u32)>> = HashMap::new();
    for &(time, entry, number) in samples {
        result.entry(entry).or_default().push((time, number));
    }
    for list in result.values_mut() {
        list.sort_unstable();
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn a_thread() -> [Thread; 1] {
        [Thread {
            entry: 1,
            ..Thread::default()
        }]
    }

    /// Each millisecond: four at one stack, then six at another one.
    fn four_and_six_samples() -> Samples {
        Samples {
            locations: vec![("app.py".into(), "main".into(), 1); 2],
            nodes: vec![(0, 0), (0, 1)],
            taken: (0..10).map(|ms| (ms * MS, 1, u32::from(ms >= 4))).collect(),
            ..Samples::default()
        }
    }

    fn stretch(begin: Nanos, end: Nanos, state: State, node: u32) -> Stretch {
        Stretch {
            begin,
            end,
            state,
            node,
            detail: 0,
            waiters: 0,
            is_wanted: false,
        }
    }

    #[test]
    fn samples_divide_the_time_of_a_thread_that_computes_alone() {
        let samples = four_and_six_samples();
        let mut stretches = vec![vec![
            stretch(0, 10 * MS, State::Running, 0),
            stretch(10 * MS, 12 * MS, State::InIo, 0),
            stretch(12 * MS, 14 * MS, State::Running, 7),
            stretch(14 * MS, 15 * MS, State::Running, 0),
        ]];
        let threads = a_thread();
        let times = samples.place(&threads, &mut stretches);
        let running = [(FIRST, 4 * MS), (FIRST + 1, 6 * MS), (7, 2 * MS), (0, MS)];
        let mut expected: Places = running
            .iter()
            .map(|&(node, time)| ((State::Running as u8, node), time))
            .collect();
        expected.insert((State::InIo as u8, 0), 2 * MS);
        assert_eq!(times, [expected]);
        let nodes: Vec<u32> = stretches[0].iter().map(|stretch| stretch.node).collect();
        assert_eq!(nodes, [FIRST + 1, 0, 7, 0]);
        let within = samples.within_holds(&threads, &stretches);
        assert_eq!(within.len(), 10);
        assert_eq!((within[3], within[4]), ((0, 3 * MS, FIRST), (0, 4 * MS, FIRST + 1)));
    }

    #[test]
    fn a_late_stack_gives_way_where_samples_agree_on_a_line() {
        let samples = |at_another: u64| Samples {
            locations: vec![("app.py".into(), "feed".into(), 1), ("app.py".into(), "main".into(), 2)],
            nodes: vec![(0, 1), (1, 0), (0, 0)],
            taken: (0..10).map(|ms| (ms * MS, 1, u32::from(ms >= at_another))).collect(),
            ..Samples::default()
        };
        let threads = a_thread();
        let placed = |at_another| {
            let mut stretches = vec![vec![
                stretch(0, 6 * MS, State::Running, 7),
                stretch(6 * MS, 12 * MS, State::Running, 7),
                stretch(12 * MS, 20 * MS, State::InIo, 7),
                stretch(20 * MS, 21 * MS, State::Running, 8),
            ]];
            samples(at_another).place(&threads, &mut stretches);
            stretches[0].iter().map(|stretch| stretch.node).collect::<Vec<u32>>()
        };
        assert_eq!(placed(2), [FIRST + 1, FIRST + 1, 7, 8]);
        assert_eq!(placed(4), [7, 7, 7, 8]);
    }

    #[test]
    fn holds_that_ended_by_a_call_are_divided_by_their_samples() {
        let samples = four_and_six_samples();
        let threads = a_thread();
        let placed = |next| {
            let mut stretches = vec![vec![
                stretch(0, 3 * MS, State::Running, 7),
                stretch(3 * MS, 4 * MS, next, 7),
                stretch(4 * MS, 10 * MS, State::Running, 7),
                stretch(10 * MS, 12 * MS, next, 7),
                stretch(12 * MS, 13 * MS, State::Running, 7),
            ]];
            let times = samples.place(&threads, &mut stretches).remove(0);
            let at = |node| times.get(&(State::Running as u8, node)).copied().unwrap_or(0) / MS;
            (stretches[0][0].node, at(7), at(FIRST), at(FIRST + 1))
        };
        assert_eq!(placed(State::OnLock), (FIRST + 1, 1, 3, 6));
        assert_eq!(
            placed(State::Waiting),
            (7, 10, 0, 0),
            "it was asked to drop the GIL where it computed"
        );
    }

    #[test]
    fn a_wait_that_never_ended_has_the_stack_that_was_read_from_outside() {
        let samples = Samples {
            locations: vec![("app.py".into(), "main".into(), 1); 2],
            nodes: vec![(0, 0), (0, 1)],
            taken: vec![(MS, 1, 0), (300 * MS, 1, 1), (300 * MS, 2, 0)],
            ..Samples::default()
        };
        let mut stretches = vec![vec![
            stretch(0, 2 * MS, State::OnLock, 0),
            stretch(2 * MS, 90 * MS, State::OnLock, 7),
            stretch(90 * MS, 900 * MS, State::OnLock, 0),
        ]];
        let threads = a_thread();
        samples.place_waits(&threads, &mut stretches);
        let nodes: Vec<u32> = stretches[0].iter().map(|stretch| stretch.node).collect();
        assert_eq!(nodes, [0, 7, FIRST + 1]);
        assert_eq!(samples.latest(), 300 * MS);
    }

    #[test]
    fn samples_place_short_calls_and_sleeps_and_no_long_call_that_has_a_stack() {
        let samples = Samples {
            locations: vec![("app.py".into(), "main".into(), 1); 2],
            nodes: vec![(0, 0), (0, 1)],
            taken: (0..12).map(|ms| (ms * MS + MS / 2, 1, u32::from(ms >= 6))).collect(),
            ..Samples::default()
        };
        let mut own: Vec<Stretch> = (0..12)
            .map(|ms| {
                let state = if ms >= 6 { State::Asleep } else { State::InIo };
                stretch(ms * MS, ms * MS + MS * 3 / 4, state, 0)
            })
            .collect();
        own.push(stretch(12 * MS, 15 * MS, State::InIo, 7));
        let threads = a_thread();
        let times = samples.place(&threads, &mut [own]);
        let expected = HashMap::from([
            ((State::InIo as u8, FIRST), 6 * MS * 3 / 4),
            ((State::Asleep as u8, FIRST + 1), 6 * MS * 3 / 4),
            ((State::InIo as u8, 7), 3 * MS),
        ]);
        assert_eq!(times, [expected]);
    }

    #[test]
    fn a_sample_outside_of_the_thread_s_holds_or_of_another_thread_counts_for_nothing() {
        let samples = Samples {
            locations: vec![("app.py".into(), "main".into(), 1)],
            nodes: vec![(0, 0)],
            taken: vec![(5 * MS, 1, 0), (MS, 2, 0), (MS, 1, 9)],
            ..Samples::default()
        };
        let mut stretches = vec![vec![stretch(0, 4 * MS, State::Running, 0)]];
        let threads = a_thread();
        let unplaced = HashMap::from([((State::Running as u8, 0), 4 * MS)]);
        assert_eq!(samples.place(&threads, &mut stretches), [unplaced]);
        assert_eq!(stretches[0][0].node, 0);
        assert_eq!(samples.within_holds(&threads, &stretches), []);
    }

    #[test]
    fn a_peer_counts_only_while_the_thread_is_in_io() {
        let samples = Samples {
            peers: vec!["127.0.0.1:5432".into()],
            waits: vec![
                (MS, 1, 0),
                (3 * MS, 1, 0),
                (4 * MS, 1, 0),
                (4 * MS, 1, 7),
                (9 * MS, 1, 0),
            ],
            ..Samples::default()
        };
        let stretches = [vec![
            stretch(0, 2 * MS, State::Running, 5),
            stretch(2 * MS, 6 * MS, State::InIo, 6),
        ]];
        let threads = a_thread();
        let expected = PeerWaits {
            thread: 0,
            node: 6,
            peer: "127.0.0.1:5432".into(),
            count: 2,
        };
        assert_eq!(samples.peers(&threads, &stretches), [expected]);
    }
}
