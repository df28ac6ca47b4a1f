//! Who blocked on a lock, who released it, and what that thread did meanwhile.
//!
//! A lock's address is that of the semaphore its waiters sleep on. Up to CPython
//! 3.13 that is the lock; later it belongs to the waiting thread, so locks are told
//! apart by the stacks at which they are waited for.

use crate::Nanos;
use crate::contention::most;
use crate::reader::Thread;
use crate::record::Kind;
use crate::timeline::{State, Stretch};
use serde::Serialize;
use std::collections::HashMap;

/// A release is seen a little later than the waiter it wakes may be.
const RELEASE_SLACK_NS: Nanos = 50_000;
/// One wait is compared with at most so many stretches of the thread that released.
const STRETCHES_PER_WAIT: usize = 2048;

/// The waits at one stack that one thread ended from one stack.
#[derive(Debug, Clone, Default, Serialize, PartialEq, Eq)]
pub struct LockWaits {
    /// Where the lock was waited for; 0 if unknown.
    pub wait_node: u32,
    /// Number of a thread that waited.
    pub waiter: usize,
    /// How many threads waited.
    pub waiters: usize,
    /// Number of the thread that released it; `None` if nobody was seen to.
    pub releaser: Option<usize>,
    /// Where it released it.
    pub release_node: u32,
    /// Where that thread spent most of the waits.
    pub holder_node: u32,
    /// What it did there, as in [`State`].
    pub holder_state: u8,
    /// Share of the waits that it spent in that state, in thousandths.
    pub holder_permille: u64,
    /// How often.
    pub count: u64,
    /// How many of those timed out.
    pub timeouts: u64,
    /// All together; of a wait that began before there were records, what is after that.
    pub total_ns: Nanos,
    /// The longest, from its begin.
    pub longest_ns: Nanos,
}

struct Post {
    time: Nanos,
    thread: usize,
    node: u32,
}

#[derive(Default)]
struct Tally {
    waits: LockWaits,
    waiters: std::collections::HashSet<usize>,
    states: HashMap<u8, Nanos>,
    nodes: HashMap<(u8, u32), Nanos>,
}

/// Looks at the lock waits of all threads that ended after `from`; largest total first.
#[must_use]
pub fn examine(threads: &[Thread], stretches: &[Vec<Stretch>], from: Nanos) -> Vec<LockWaits> {
    let posts = posts_of(threads);
    let mut tallies: HashMap<(u32, Option<usize>, u32), Tally> = HashMap::new();
    for (waiter, own) in stretches.iter().enumerate() {
        let waits = own.iter().filter(|stretch| stretch.state == State::OnLock);
        for wait in waits.filter(|wait| wait.end >= from) {
            let post = release_of(wait, waiter, &posts);
            let key = (
                wait.node,
                post.map(|post| post.thread),
                post.map_or(0, |post| post.node),
            );
            let tally = tallies.entry(key).or_default();
            let seen = Stretch {
                begin: wait.begin.max(from),
                ..*wait
            };
            add(tally, waiter, wait, &seen);
            if let Some(post) = post {
                watch(tally, &seen, &stretches[post.thread]);
            }
        }
    }
    let mut result: Vec<LockWaits> = tallies.into_iter().map(|(key, tally)| finish(key, tally)).collect();
    result.sort_by_key(|waits| (std::cmp::Reverse(waits.total_ns), waits.wait_node, waits.waiter));
    result
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

/// Adds a wait, of which `seen` is the part that counts.
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

/// Adds what the thread that released the lock did during the wait.
fn watch(tally: &mut Tally, wait: &Stretch, holder: &[Stretch]) {
    let until = holder.partition_point(|stretch| stretch.begin < wait.end);
    for stretch in holder[..until].iter().rev().take(STRETCHES_PER_WAIT) {
        let overlap = stretch.end.min(wait.end).saturating_sub(stretch.begin.max(wait.begin));
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
        holder_permille: time * 1000 / tally.waits.total_ns.max(1),
        ..tally.waits
    }
}
