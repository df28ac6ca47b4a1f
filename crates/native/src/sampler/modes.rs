//! Tells whether a thread that runs without the GIL computes, or has the kernel work for it.
//!
//! `/proc/PID/task/TID/syscall` says "running" of both. Neither the mode nor the call of a running thread can be read, so
//! the processor time in each mode decides, of some tenths of a second: a thread that is hardly ever in the kernel
//! computes. What runs in Python counts as well, so a thread with many short calls, as of `stat`, is none that computes.
//!
//! Invariant: of a thread without these numbers it is not said that it computes.

use std::collections::HashMap;

/// Threads that are remembered.
const MOST: usize = 1 << 12;
/// The least time, in nanoseconds, over which a thread is judged, and after which a newer one begins.
const SPAN_NS: u64 = 250_000_000;
/// The largest part of its processor time that a thread which computes is in the kernel: one in so many.
const KERNEL_PART: u64 = 8;
/// The fields of `/proc/PID/task/TID/stat` behind the name that hold the two times, in ticks.
const USER: usize = 11;

/// What each thread of a process had run in each mode, at two earlier looks.
#[derive(Default)]
pub(super) struct Modes(HashMap<u32, [Look; 2]>);

#[derive(Clone, Copy, Default)]
struct Look {
    at_ns: u64,
    user: u64,
    kernel: u64,
}

impl Modes {
    /// Whether a thread that runs computes.
    pub(super) fn computes(&mut self, pid: u32, tid: u32, now_ns: u64) -> bool {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default();
        parsed(&text, now_ns).is_some_and(|now| self.has_computed(tid, now))
    }

    /// Judges by the older of two looks; a thread that is new has been in no mode before.
    fn has_computed(&mut self, tid: u32, now: Look) -> bool {
        if self.0.len() >= MOST {
            self.0.clear();
        }
        let looks = self.0.entry(tid).or_default();
        let answer = now.has_computed_since(looks[0]);
        if now.at_ns.saturating_sub(looks[1].at_ns) >= SPAN_NS {
            *looks = [looks[1], now];
        }
        answer
    }
}

impl Look {
    const fn has_computed_since(self, before: Self) -> bool {
        let (user, kernel) = (
            self.user.saturating_sub(before.user),
            self.kernel.saturating_sub(before.kernel),
        );
        user + kernel > 0 && kernel * KERNEL_PART <= user + kernel
    }
}

fn parsed(text: &str, at_ns: u64) -> Option<Look> {
    let mut words = text
        .rsplit_once(')')?
        .1
        .split_ascii_whitespace()
        .skip(USER)
        .map(str::parse);
    let (user, kernel) = (words.next()?.ok()?, words.next()?.ok()?);
    Some(Look { at_ns, user, kernel })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn look(at_ns: u64, user: u64, kernel: u64) -> Look {
        Look { at_ns, user, kernel }
    }

    #[test]
    fn a_thread_that_is_hardly_ever_in_the_kernel_computes() {
        assert!(look(0, 7, 1).has_computed_since(look(0, 0, 0)));
        assert!(!look(0, 7, 2).has_computed_since(look(0, 0, 0)));
        assert!(!look(0, 0, 0).has_computed_since(look(0, 0, 0)));
        assert!(look(0, 107, 101).has_computed_since(look(0, 100, 100)));
    }

    #[test]
    fn what_a_thread_did_before_the_last_spans_does_not_count() {
        let mut modes = Modes::default();
        assert!(!modes.has_computed(1, look(SPAN_NS, 10, 10)));
        assert!(!modes.has_computed(1, look(2 * SPAN_NS, 20, 20)));
        assert!(!modes.has_computed(1, look(3 * SPAN_NS, 40, 20))); // since the first look
        assert!(modes.has_computed(1, look(4 * SPAN_NS, 60, 20))); // since the second one
        assert!(!modes.has_computed(2, look(4 * SPAN_NS, 10, 10))); // another thread
    }

    #[test]
    fn the_kernels_numbers_are_read_behind_any_name() {
        let text = "7 (a) b) R 1 2 3 4 5 6 7 8 9 10 350 12 0 0 20";
        let read = parsed(text, 5).map(|look| (look.at_ns, look.user, look.kernel));
        assert_eq!(read, Some((5, 350, 12)));
        assert!(parsed("", 5).is_none() && parsed("7 (x) R 1", 5).is_none());
    }
}
