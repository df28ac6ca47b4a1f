//! Waits for locks, with the thread that released each lock and its activity during the wait.
//!
//! A lock's address is that of the semaphore on which its waiters sleep, up to CPython 3.13. Later each
//! waiter has a semaphore of its own, and the recorder finds the lock's address next to it.
//! Invariant: each wait is counted once.

use crate::Nanos;
use crate::contention::most;
use crate::reader::Thread;
use crate::record::Kind;
use crate::timeline::{State, Stretch};
use serde::Serialize;
use std::collections::HashMap;

/// A wait is worth a stack from this length on; a shorter one has none.
const NOTABLE_WAIT_NS: Nanos = 100_000;
/// A release may be recorded a little later than the end of the wait that it ends.
const RELEASE_SLACK_NS: Nanos = 50_000;
/// A wait is compared with at most this many stretches of the releasing thread.
const STRETCHES_PER_WAIT: usize = 2048;
/// The begin of a hold is sought among at most this many earlier acquisitions of the lock.
const ACQUISITIONS_PER_WAIT: usize = 2048;

/// The waits at one stack that one thread ended from one stack.
#[derive(Debug, Clone, Default, Serialize, PartialEq, Eq)]
pub struct LockWaits {
    /// Stack at which threads waited for the lock; 0 if unknown.
    pub wait_node: u32,
    /// Number of a thread that waited.
    pub waiter: usize,
    /// How many threads waited.
    pub waiters: usize,
    /// Number of the thread that released it; `None` if no release was recorded.
    pub releaser: Option<usize>,
    /// Stack at which it released the lock.
    pub release_node: u32,
    /// Stack at which that thread spent most of its holds.
    pub holder_node: u32,
    /// Its state there, as in [`State`].
    pub holder_state: u8,
    /// Share of its holds that it spent in that state, in thousandths.
    pub holder_permille: u64,
    /// How often.
    pub count: u64,
    /// How many of those timed out.
    pub timeouts: u64,
    /// Waits whose stack was left out, and is assumed to be that of the thread's last wait for the lock.
    pub guessed: u64,
    /// Waits whose stack was left out, without an earlier wait to take it from.
    pub left_out: u64,
    /// Sum of all; of a wait that began before the first record, the part after that record.
    pub total_ns: Nanos,
    /// Sum of the waits whose stack was left out, likewise.
    pub left_out_ns: Nanos,
    /// The longest, from its begin.
    pub longest_ns: Nanos,
}

struct Post {
    time: Nanos,
    thread: usize,
    node: u32,
}

/// The ends of waits that acquired one lock, in order of time: when, and by which thread.
type Acquisitions = HashMap<u64, Vec<(Nanos, usize)>>;

#[derive(Default)]
struct Tally {
    waits: LockWaits,
    /// Time of the holds that were compared.
    watched: Nanos,
    waiters: std::collections::HashSet<usize>,
    states: HashMap<u8, Nanos>,
    nodes: HashMap<(u8, u32), Nanos>,
}

/// Examines the lock waits of all threads that ended after `from`; largest total first.
#[must_use]
pub fn examine(threads: &[Thread], stretches: &[Vec<Stretch>], from: Nanos) -> Vec<LockWaits> {
    let posts = posts_of(threads);
    let acquisitions = acquisitions_of(stretches);
    let mut tallies: HashMap<(u32, Option<usize>, u32), Tally> = HashMap::new();
    for (waiter, own) in stretches.iter().enumerate() {
        let mut last_nodes = HashMap::new();
        for wait in own.iter().filter(|stretch| stretch.state == State::OnLock) {
            let node = node_of(wait, &mut last_nodes);
            if wait.end < from {
                continue;
            }
            let post = release_of(wait, waiter, &posts);
            let key = (node, post.map(|post| post.thread), post.map_or(0, |post| post.node));
            let tally = tallies.entry(key).or_default();
            let seen = Stretch {
                begin: wait.begin.max(from),
                ..*wait
            };
            add(tally, waiter, wait, &seen);
            count_without_stack(&mut tally.waits, wait, seen.length(), node);
            if let Some(post) = post {
                let hold = hold_within(&seen, post, &acquisitions);
                watch(tally, hold, &stretches[post.thread]);
            }
        }
    }
    let mut result: Vec<LockWaits> = tallies.into_iter().map(|(key, tally)| finish(key, tally)).collect();
    result.sort_by_key(|waits| (std::cmp::Reverse(waits.total_ns), waits.wait_node, waits.waiter));
    result
}

/// The stack at which a thread waits. Stacks are taken for a bounded part of the time. If the stack was left
/// out, it is assumed to be that of the same thread's last wait for the same lock, if any.
fn node_of(wait: &Stretch, last_nodes: &mut HashMap<u64, u32>) -> u32 {
    let address = wait.detail & !1;
    if wait.node != 0 {
        last_nodes.insert(address, wait.node);
    } else if is_left_out(wait) {
        return last_nodes.get(&address).copied().unwrap_or(0);
    }
    wait.node
}

/// Whether a wait should have a stack, and has none. A wait that has not ended (and so has no address) does not
/// count: its stack would have been taken at its end.
const fn is_left_out(wait: &Stretch) -> bool {
    wait.node == 0 && wait.detail != 0 && wait.length() >= NOTABLE_WAIT_NS
}

/// The stack of each wait for a lock that has one, or else the assumed one: that of the same thread's last wait for the
/// same lock, or else the one at which all threads waited longest for it. Other stretches keep theirs.
#[must_use]
pub fn assumed_nodes(stretches: &[Vec<Stretch>]) -> Vec<Vec<u32>> {
    let mut by_address: HashMap<u64, HashMap<u32, Nanos>> = HashMap::new();
    for wait in stretches.iter().flatten().filter(|stretch| is_placed_wait(stretch)) {
        let nodes = by_address.entry(wait.detail & !1).or_default();
        *nodes.entry(wait.node).or_default() += wait.length();
    }
    let usual: HashMap<u64, u32> = by_address
        .iter()
        .map(|(&address, nodes)| (address, most(nodes)))
        .collect();
    stretches.iter().map(|own| assumed_nodes_of(own, &usual)).collect()
}

fn assumed_nodes_of(own: &[Stretch], usual: &HashMap<u64, u32>) -> Vec<u32> {
    let mut last = HashMap::new();
    own.iter()
        .map(|stretch| {
            let address = stretch.detail & !1;
            if is_placed_wait(stretch) {
                last.insert(address, stretch.node);
            } else if stretch.state == State::OnLock && stretch.node == 0 {
                return *last.get(&address).or_else(|| usual.get(&address)).unwrap_or(&0);
            }
            stretch.node
        })
        .collect()
}

/// Whether this is a wait for a lock at a known line; a wait that has not ended has no address.
fn is_placed_wait(stretch: &Stretch) -> bool {
    stretch.state == State::OnLock && stretch.node != 0 && stretch.detail & !1 != 0
}

fn count_without_stack(waits: &mut LockWaits, wait: &Stretch, length: Nanos, node: u32) {
    if !is_left_out(wait) {
        return;
    }
    if node == 0 {
        waits.left_out += 1;
        waits.left_out_ns += length;
    } else {
        waits.guessed += 1;
    }
}

fn posts_of(threads: &[Thread]) -> HashMap<u64, Vec<Post>> {
    let mut posts: HashMap<u64, Vec<Post>> = HashMap::new();
    for (number, thread) in threads.iter().enumerate() {
        for (index, record) in thread.records.iter().enumerate() {
            if record.kind == Kind::Post {
                let node = match thread.records.get(index + 1) {
                    Some(next) if next.kind == Kind::Stack => next.payload as u32,
                    _ => 0,
                };
                posts.entry(record.payload & !1).or_default().push(Post {
                    time: record.time,
                    thread: number,
                    node,
                });
            }
        }
    }
    for list in posts.values_mut() {
        list.sort_by_key(|post| post.time);
    }
    posts
}

/// The last release of that lock, by another thread, within the wait.
fn release_of<'a>(wait: &Stretch, waiter: usize, posts: &'a HashMap<u64, Vec<Post>>) -> Option<&'a Post> {
    let list = posts.get(&(wait.detail & !1))?;
    let until = list.partition_point(|post| post.time <= wait.end + RELEASE_SLACK_NS);
    list[..until]
        .iter()
        .rev()
        .take_while(|post| post.time + RELEASE_SLACK_NS >= wait.begin)
        .find(|post| post.thread != waiter)
}

/// Adds a wait; `seen` is the part of it that counts.
fn add(tally: &mut Tally, waiter: usize, wait: &Stretch, seen: &Stretch) {
    if tally.waits.count == 0 || wait.length() > tally.waits.longest_ns {
        tally.waits.waiter = waiter;
    }
    tally.waiters.insert(waiter);
    tally.waits.count += 1;
    tally.waits.timeouts += u64::from(wait.detail & 1 == 0);
    tally.waits.total_ns += seen.length();
    tally.waits.longest_ns = tally.waits.longest_ns.max(wait.length());
}

fn acquisitions_of(stretches: &[Vec<Stretch>]) -> Acquisitions {
    let mut acquisitions = Acquisitions::new();
    for (thread, own) in stretches.iter().enumerate() {
        for wait in own
            .iter()
            .filter(|stretch| stretch.state == State::OnLock && stretch.detail & 1 == 1)
        {
            acquisitions
                .entry(wait.detail & !1)
                .or_default()
                .push((wait.end, thread));
        }
    }
    for list in acquisitions.values_mut() {
        list.sort_unstable();
    }
    acquisitions
}

/// The part of the wait during which the releasing thread held the lock. Before its last own acquisition it waited
/// like the others; a thread that never waited for the lock is assumed to have held it for the whole wait. From CPython
/// 3.14 on a thread may be woken and find the lock taken again; it waits once more, and its last wake-up counts.
fn hold_within(wait: &Stretch, post: &Post, acquisitions: &Acquisitions) -> (Nanos, Nanos) {
    let list = acquisitions.get(&(wait.detail & !1)).map_or(&[][..], Vec::as_slice);
    let until = list.partition_point(|&(time, _)| time <= post.time);
    let acquired = list[..until]
        .iter()
        .rev()
        .take(ACQUISITIONS_PER_WAIT)
        .find(|&&(_, thread)| thread == post.thread);
    let begin = acquired.map_or(wait.begin, |&(time, _)| time.max(wait.begin));
    (begin, wait.end)
}

/// Adds the activity of the releasing thread during its hold.
fn watch(tally: &mut Tally, (begin, end): (Nanos, Nanos), holder: &[Stretch]) {
    tally.watched += end.saturating_sub(begin);
    let until = holder.partition_point(|stretch| stretch.begin < end);
    for stretch in holder[..until].iter().rev().take(STRETCHES_PER_WAIT) {
        let overlap = stretch.end.min(end).saturating_sub(stretch.begin.max(begin));
        if overlap == 0 {
            break;
        }
        *tally.states.entry(stretch.state as u8).or_default() += overlap;
        *tally.nodes.entry((stretch.state as u8, stretch.node)).or_default() += overlap;
    }
}

fn finish((wait_node, releaser, release_node): (u32, Option<usize>, u32), tally: Tally) -> LockWaits {
    let (state, time) = tally
        .states
        .iter()
        .max_by_key(|&(&state, &time)| (time, state))
        .map_or((0, 0), |(&state, &time)| (state, time));
    let nodes = tally
        .nodes
        .iter()
        .filter(|((of, _), _)| *of == state)
        .map(|(&(_, node), &time)| (node, time))
        .collect();
    LockWaits {
        wait_node,
        releaser,
        release_node,
        waiters: tally.waiters.len(),
        holder_node: most(&nodes),
        holder_state: state,
        holder_permille: time * 1000 / tally.watched.max(1),
        ..tally.waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;

    const MS: Nanos = 1_000_000;

    fn wait(begin: Nanos, end: Nanos, node: u32, detail: u64) -> Stretch {
        Stretch {
            begin,
            end,
            state: State::OnLock,
            node,
            detail,
            waiters: 0,
            is_wanted: false,
        }
    }

    /// By place: how often, in all, how many guessed, how many left out and for how long.
    fn found(stretches: &[Vec<Stretch>], from: Nanos) -> Vec<(u32, u64, Nanos, u64, u64, Nanos)> {
        let threads = vec![Thread::default(); stretches.len()];
        examine(&threads, stretches, from)
            .iter()
            .map(|waits| {
                let (guessed, left_out) = (waits.guessed, waits.left_out);
                (
                    waits.wait_node,
                    waits.count,
                    waits.total_ns,
                    guessed,
                    left_out,
                    waits.left_out_ns,
                )
            })
            .collect()
    }

    #[test]
    fn a_wait_without_a_stack_is_taken_for_the_last_one_of_the_same_thread_for_the_same_lock() {
        let one = vec![
            wait(0, MS, 7, 0x1001),
            wait(2 * MS, 4 * MS, 0, 0x1000),
            wait(5 * MS, 8 * MS, 0, 0x2001),
        ];
        let other = vec![wait(0, 5 * MS, 0, 0x1001)];
        let expected = [(0, 2, 8 * MS, 0, 2, 8 * MS), (7, 2, 3 * MS, 1, 0, 0)];
        assert_eq!(found(&[one, other], 0), expected);
    }

    #[test]
    fn a_wait_without_a_stack_is_shown_at_the_thread_s_last_line_or_at_the_lock_s_usual_one() {
        let one = vec![
            wait(0, MS, 7, 0x1001),
            wait(MS, 2 * MS, 8, 0x2001),
            wait(2 * MS, 4 * MS, 0, 0x1000),
        ];
        let other = vec![
            wait(0, 5 * MS, 0, 0x1001),
            wait(5 * MS, 6 * MS, 0, 0x3001),
            wait(6 * MS, 7 * MS, 0, 0),
        ];
        assert_eq!(assumed_nodes(&[one, other]), [vec![7, 8, 7], vec![7, 0, 0]]);
    }

    #[test]
    fn a_holder_that_waited_itself_is_watched_from_its_own_acquisition() {
        let lock = 0x1000;
        let post = Record {
            time: 10 * MS,
            kind: Kind::Post,
            payload: lock,
        };
        let holder = Thread {
            records: vec![post],
            ..Thread::default()
        };
        // The holder waits for seven milliseconds, then holds the lock across three milliseconds of I/O.
        let hold = Stretch {
            state: State::InIo,
            ..wait(7 * MS, 10 * MS, 5, 0)
        };
        let stretches = [
            vec![wait(0, 7 * MS, 4, lock | 1), hold],
            vec![wait(0, 10 * MS, 6, lock | 1)],
        ];
        let found = examine(&[holder, Thread::default()], &stretches, 0);
        let waits = found.iter().find(|waits| waits.wait_node == 6).unwrap();
        assert_eq!(
            (waits.holder_state, waits.holder_permille, waits.holder_node),
            (State::InIo as u8, 1000, 5)
        );
    }

    #[test]
    fn neither_a_short_wait_nor_one_that_has_not_ended_should_have_had_a_stack() {
        let own = vec![
            wait(0, MS, 7, 0x1001),
            wait(2 * MS, 2 * MS + 90_000, 0, 0x1001),
            wait(3 * MS, 9 * MS, 0, 0),
        ];
        let expected = [(0, 2, 6 * MS + 90_000, 0, 0, 0), (7, 1, MS, 0, 0, 0)];
        assert_eq!(found(&[own], 0), expected);
    }

    #[test]
    fn of_a_wait_that_began_before_there_were_records_the_rest_counts() {
        let own = vec![wait(0, 3 * MS, 7, 0x1001), wait(4 * MS, 9 * MS, 0, 0x1001)];
        let own = [own];
        assert_eq!(found(&own, 6 * MS), [(7, 1, 3 * MS, 1, 0, 0)]);
        assert_eq!(examine(&[Thread::default()], &own, 6 * MS)[0].longest_ns, 5 * MS);
    }
}
