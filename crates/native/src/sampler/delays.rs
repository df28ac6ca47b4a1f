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
        now.has_lacked_since(before)
    }
}

/// For how many nanoseconds the calling thread has waited for a processor so far; 0 where the kernel does not tell.
pub(crate) fn own_wait_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    parsed(&text).map_or(0, |times| times.waited)
}

impl Times {
    /// The kernel counts a wait when it ends, so a thread that has neither run nor waited since has waited all the time.
    const fn has_lacked_since(self, before: Self) -> bool {
        self.waited.saturating_sub(before.waited) >= self.ran.saturating_sub(before.ran)
    }
}

fn parsed(text: &str) -> Option<Times> {
    let mut words = text.split_ascii_whitespace().map(str::parse);
    let (ran, waited) = (words.next()?.ok()?, words.next()?.ok()?);
    Some(Times { ran, waited })
}

#[cfg(test)]
mod tests {
    use super::{Times, parsed};

    const BEFORE: Times = Times { ran: 100, waited: 100 };

    #[test]
    fn a_thread_that_ran_for_longer_than_it_waited_has_a_processor() {
        assert!(!Times { ran: 200, waited: 110 }.has_lacked_since(BEFORE));
    }

    #[test]
    fn a_thread_that_waited_or_still_waits_has_none() {
        assert!(Times { ran: 110, waited: 200 }.has_lacked_since(BEFORE));
        assert!(BEFORE.has_lacked_since(BEFORE));
    }

    #[test]
    fn the_kernels_numbers_are_read() {
        let read = parsed("350936891 1896873 53\n").map(|times| (times.ran, times.waited));
        assert_eq!(read, Some((350_936_891, 1_896_873)));
        assert!(parsed("").is_none() && parsed("0 x 1").is_none());
    }
}
