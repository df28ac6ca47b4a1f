//! Whether somebody could continue this job if it stopped.
//!
//! A stop by the terminal is discarded in an orphaned process group: one in which each member's parent is a
//! member too or in another session, as with `docker run -it IMAGE sh -c 'a; b'` or `ssh -t HOST make`. The
//! parent of a worker is its server, in this session and in another group: it would make such a group one
//! that somebody seems to look after, and Ctrl-Z would stop it for good.
//!
//! Asked is the chain of this process's parents alone. Another member's parent might be a shell all the same,
//! and the command is then run plainly without need.
//!
//! Invariant: in doubt nobody could.

use crate::syscall::read_file;
use core::ffi::c_int;

/// Whether the group of this process, in the session of that leader, is orphaned.
pub(crate) fn is_orphaned(leader: c_int) -> bool {
    // SAFETY: always sound.
    let (group, parent) = unsafe { (libc::getpgrp(), libc::getppid()) };
    let mut ancestor = parent;
    // Zero: it is in another pid namespace. To the calls below that is this process itself.
    while ancestor > 0 {
        // SAFETY: numbers only; of a process that is gone they fail.
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

/// State and parent of a process.
pub(crate) fn state(pid: c_int) -> Option<(u8, c_int)> {
    parse(&read_file(format!("/proc/{pid}/stat").as_bytes(), 4096)?)
}

/// `PID (NAME) STATE PARENT …`; the name may hold anything, the last parenthesis ends it.
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
