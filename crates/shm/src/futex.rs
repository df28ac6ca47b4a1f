//! Sleeps on a word that processes share, and wakes the sleepers of such a word: futex(2).
//!
//! Must never use FUTEX_PRIVATE: the kernel identifies the sleepers of other processes by the page of the file.
//!
//! Invariant: every sleep may end spuriously; the caller re-checks the word.

use rustix::io::Errno;
use rustix::thread::futex;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

/// Why a sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// The word changed, or the wake-up was spurious: re-check the word.
    Perhaps,
    /// The time is up.
    TimedOut,
    /// A signal handler ran.
    Interrupted,
}

fn woken(outcome: Result<(), Errno>) -> Woken {
    match outcome {
        Err(Errno::TIMEDOUT) => Woken::TimedOut,
        Err(Errno::INTR) => Woken::Interrupted,
        _ => Woken::Perhaps,
    }
}

fn spec(left: Duration) -> rustix::thread::Timespec {
    rustix::thread::Timespec {
        tv_sec: left.as_secs() as i64,
        tv_nsec: i64::from(left.subsec_nanos()),
    }
}

/// Sleeps while the word is `expected`, until the given time.
pub fn wait(word: &AtomicU32, expected: u32, until: Option<Instant>) -> Woken {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    if left.is_some_and(|left| left.is_zero()) {
        return Woken::TimedOut;
    }
    let left = left.map(spec);
    woken(futex::wait(word, futex::Flags::empty(), expected, left.as_ref()))
}

/// Sleeps while each word has its value, for at most that long (Linux 5.16; the kernel accepts at most 128 words).
/// Also returns which word was woken.
///
/// On an older kernel, or where the call is forbidden, this sleeps for a millisecond.
pub fn wait_any(words: &[(&AtomicU32, u32)], left: Duration) -> (Woken, Option<usize>) {
    let waits: Vec<futex::Wait> = words.iter().map(|(word, expected)| entry(word, *expected)).collect();
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let until = Duration::new(now.tv_sec as u64, now.tv_nsec as u32) + left;
    let outcome = futex::waitv(
        &waits,
        futex::WaitvFlags::empty(),
        Some(&spec(until)),
        futex::ClockId::Monotonic,
    );
    // The call is missing or refused (a seccomp filter returns EPERM or any other error): a caller that repeats it
    // immediately would loop for ever.
    let is_known = |error| matches!(error, Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT);
    if outcome.is_err_and(|error| !is_known(error)) {
        std::thread::sleep(Duration::from_millis(1).min(left));
        return (Woken::Perhaps, None);
    }
    (woken(outcome.map(|_| ())), outcome.ok())
}

fn entry(word: &AtomicU32, expected: u32) -> futex::Wait {
    let mut wait = futex::Wait::new();
    wait.val = u64::from(expected);
    wait.uaddr = futex::WaitPtr::new(word.as_ptr().cast());
    wait.flags = futex::WaitFlags::SIZE_U32;
    wait
}

/// Wakes at most `count` sleepers of the word.
pub(crate) fn wake(word: &AtomicU32, count: u32) {
    let _ = futex::wake(word, futex::Flags::empty(), count.min(i32::MAX as u32));
}
