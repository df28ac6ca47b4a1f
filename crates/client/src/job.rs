//! Whether a shell could continue this job if a terminal stopped it.
//!
//! The kernel discards a terminal's stop signal in an orphaned process group. That is a group in which each member's
//! parent is either a member too or in another session, as with `docker run -it IMAGE sh -c 'a; b'` or `ssh -t HOST
//! make`. A worker's parent is its server, in this session and in another group. So a worker would make such a group
//! appear not orphaned, and Ctrl-Z would stop it for good.
//!
//! Only the chain of this process's parents is checked. The parent of another member may still be a shell; the
//! command then runs plainly although it need not.
//!
//! Invariant: in doubt the job counts as orphaned.

use crate::syscall::read_file;
use core::ffi::c_int;

/// Whether the process group of this process, in the session of `leader`, is orphaned.
pub(crate) fn is_orphaned(leader: c_int) -> bool {
    // SAFETY: always sound.
    let (group, parent) = unsafe { (libc::getpgrp(), libc::getppid()) };
    let mut ancestor = parent;
    // Zero: the parent is in another pid namespace. To the calls below 0 means this process itself.
    while ancestor > 0 {
        // SAFETY: numbers only; the calls fail for a process that has ended.
        let (session, other) = unsafe { (libc::getsid(ancestor), libc::getpgid(ancestor)) };
        if session != leader {
            return true;
        }
        if other != group {
            return false;
        }
        ancestor = state(ancestor).map_or(0, |(_, parent)| parent);
    }
    true
}

/// Returns state and parent of a process.
pub(crate) fn state(pid: c_int) -> Option<(u8, c_int)> {
    parse(&read_file(format!("/proc/{pid}/stat").as_bytes(), 4096)?)
}

/// Parses `PID (NAME) STATE PARENT …`; the name may contain any byte, and the last parenthesis ends it.
fn parse(stat: &[u8]) -> Option<(u8, c_int)> {
    let end = stat.iter().rposition(|b| *b == b')')?;
    let mut words = stat[end + 1..].trim_ascii_start().split(|b| *b == b' ');
    let state = words.next()?.first()?;
    let parent = core::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    Some((*state, parent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_may_look_like_the_rest() {
        assert_eq!(parse(b"7 (x) T 1 (y)) S 42 7 7 0 -1"), Some((b'S', 42)));
        assert_eq!(parse(b"7 (x) T"), None);
    }

    #[test]
    fn this_process_is_there() {
        // SAFETY: always sound.
        let (own, parent) = unsafe { (libc::getpid(), libc::getppid()) };
        assert_eq!(state(own).map(|(_, parent)| parent), Some(parent));
    }

    proptest! {
        #[test]
        fn arbitrary_text_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse(&bytes);
        }
    }
}
