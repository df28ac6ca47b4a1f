//! What the sampler keeps of one process while it runs: numbered lines, stacks and peers, and samples that name them.
//!
//! Must never: keep a sample of a stack or a peer that has no number. Invariants: there are at most [`MOST_SAMPLES`]
//! stacks, a few times as many peers' samples, [`MOST_NODES`] nodes and [`MOST_PEERS`] peers; a long wait whose sample
//! was dropped is new again, so each wait that lasts has one.

use crate::Nanos;
use crate::samples::Samples;
use std::collections::HashMap;
use std::hash::Hash;

/// Stacks of one process; with so many, every other one is dropped.
pub const MOST_SAMPLES: usize = 1 << 16;
/// Lines of all stacks of one process.
pub const MOST_NODES: usize = 1 << 16;
/// Peers and files of one process.
pub const MOST_PEERS: usize = 1024;
/// Samples of peers for each sample of a stack, at most.
const WAITS_SHARE: usize = 4;

/// The samples of one process, and the numbers in them.
#[derive(Debug, Default)]
pub struct Collected {
    samples: Samples,
    locations: HashMap<(String, String, u32), u32>,
    nodes: HashMap<(u32, u32), u32>,
    peers: HashMap<String, u32>,
    /// The last event of each thread, by its entry, before the long wait that was read last.
    long_waits: HashMap<u32, Nanos>,
}

impl Collected {
    /// The samples so far.
    #[must_use]
    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    /// The number of a file's line in a function.
    pub fn location(&mut self, location: (String, String, u32)) -> Option<u32> {
        let (number, is_new) = number_of(&mut self.locations, &location, MOST_NODES)?;
        if is_new {
            self.samples.locations.push(location);
        }
        Some(number)
    }

    /// The number of a stack, by its locations, the innermost first. `None` for an empty one, or if there are too many.
    pub fn node(&mut self, locations: &[u32]) -> Option<u32> {
        let mut node = 0; // plus one
        for &location in locations.iter().rev() {
            let (number, is_new) = number_of(&mut self.nodes, &(node, location), MOST_NODES)?;
            if is_new {
                self.samples.nodes.push((node, location));
            }
            node = number + 1;
        }
        node.checked_sub(1)
    }

    /// Adds a stack of a thread.
    pub fn take(&mut self, time: Nanos, entry: u32, node: u32) {
        self.samples.taken.push((time, entry, node));
    }

    /// Adds what a thread waits for, unless there are too many peers.
    pub fn wait(&mut self, time: Nanos, entry: u32, peer: String) {
        let Some((number, is_new)) = number_of(&mut self.peers, &peer, MOST_PEERS) else {
            return;
        };
        if is_new {
            self.samples.peers.push(peer);
        }
        if self.samples.waits.len() < WAITS_SHARE * MOST_SAMPLES {
            self.samples.waits.push((time, entry, number));
        }
    }

    /// Whether a thread's long wait has not been read yet, which began after its last event; it has been afterwards.
    pub fn is_new_wait(&mut self, entry: u32, last: Nanos) -> bool {
        self.long_waits.insert(entry, last) != Some(last)
    }

    /// Drops every other sample if there are too many, and tells whether it did.
    pub fn thin_out(&mut self) -> bool {
        if self.samples.taken.len() < MOST_SAMPLES {
            return false;
        }
        halve(&mut self.samples.taken);
        halve(&mut self.samples.waits);
        // The only sample of a wait that never ends may be among those.
        self.long_waits.clear();
        true
    }
}

/// The number of a key and whether it is new; `None` for a new one beyond the limit.
fn number_of<K: Clone + Eq + Hash>(numbers: &mut HashMap<K, u32>, key: &K, limit: usize) -> Option<(u32, bool)> {
    if let Some(&number) = numbers.get(key) {
        return Some((number, false));
    }
    if numbers.len() >= limit {
        return None;
    }
    let next = numbers.len() as u32;
    numbers.insert(key.clone(), next);
    Some((next, true))
}

/// Drops every other sample.
fn halve(samples: &mut Vec<(Nanos, u32, u32)>) {
    let mut is_kept = false;
    samples.retain(|_| {
        is_kept = !is_kept;
        is_kept
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_lasts_is_read_again_after_its_sample_may_be_gone() {
        let mut collected = Collected::default();
        assert!(collected.is_new_wait(1, 7));
        collected.take(8, 1, 0);
        assert!(!collected.is_new_wait(1, 7));
        for time in 0..MOST_SAMPLES as Nanos {
            assert!(collected.samples().taken.len() < MOST_SAMPLES);
            collected.take(time, 2, 0);
            if collected.thin_out() {
                assert!(collected.is_new_wait(1, 7));
                return;
            }
        }
        panic!("never thinned out");
    }

    #[test]
    fn a_wait_after_another_event_is_new() {
        let mut collected = Collected::default();
        assert!(collected.is_new_wait(1, 7));
        assert!(collected.is_new_wait(2, 7));
        assert!(collected.is_new_wait(1, 8));
        assert!(!collected.is_new_wait(2, 7));
    }

    #[test]
    fn every_sample_names_what_has_a_number() {
        let mut collected = Collected::default();
        for round in 0..2 {
            for peer in 0..MOST_PEERS as u32 + 9 {
                collected.wait(round, 1, format!("peer {peer}"));
            }
        }
        let samples = collected.samples();
        assert_eq!((samples.peers.len(), samples.waits.len()), (MOST_PEERS, 2 * MOST_PEERS));
        assert!(samples.waits.iter().all(|wait| (wait.2 as usize) < MOST_PEERS));
        for _ in 0..2 {
            let known = (0..MOST_NODES as u32 + 9)
                .filter_map(|location| collected.node(&[location]))
                .count();
            assert_eq!(known, MOST_NODES);
        }
        assert_eq!(collected.samples().nodes.len(), MOST_NODES);
    }

    #[test]
    fn stacks_share_their_outer_lines() {
        let mut collected = Collected::default();
        let line = |name: &str| (String::from("app.py"), String::from(name), 1);
        let [main, inner, other] = ["main", "inner", "other"].map(|name| collected.location(line(name)).unwrap());
        let first = collected.node(&[inner, main]);
        assert_eq!(collected.node(&[inner, main]), first);
        assert_ne!(collected.node(&[other, main]), first);
        assert_eq!(collected.node(&[]), None);
        assert_eq!(collected.samples().nodes, [(0, main), (1, inner), (1, other)]);
    }
}
