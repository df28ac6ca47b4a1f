//! Tells whether a thread that could run lacked a processor, or ran.
//!
//! `/proc/PID/task/TID/syscall` says "running" of both. The first two numbers of `schedstat` next to it are the
//! nanoseconds for which the thread has run, and for which it has waited for a processor.
//!
//! Invariant: a thread without these numbers counts as one that lacked a processor, as its state says.

use std::collections::HashMap;

/// Threads that are remembered.
const MOST: usize = 1 << 12;

/// What each thread of a process had run and waited at the last reading, in nanoseconds.
#[derive(Default)]
pub(super) struct Delays(HashMap<u32, Times>);

#[derive(Clone, Copy, Default)]
struct Times {
    ran: u64,
    waited: u64,
}

impl Delays {
    /// Whether a thread has waited for a processor, since the last reading, for longer than it ran.
    ///
    /// The time that it ran in Python, and not in the call that it is in now, counts as well: a thread that lacks a
    /// processor lacks it there too.
    pub(super) fn has_lacked(&mut self, pid: u32, tid: u32) -> bool {
        let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")) else {
            return true;
        };
        let Some(now) = parsed(&text) else { return true };
        if self.0.len() >= MOST {
            self.0.clear();
        }
        let before = self.0.insert(tid, now).unwrap_or_default();
        now.waited.saturating_sub(before.waited) > now.ran.saturating_sub(before.ran)
    }
}

fn parsed(text: &str) -> Option<Times> {
    let mut words = text.split_ascii_whitespace().map(str::parse);
    let (ran, waited) = (words.next()?.ok()?, words.next()?.ok()?);
    Some(Times { ran, waited })
}
