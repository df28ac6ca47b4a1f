//! The facts that a learning run found about a command, as far as the client needs them.
//!
//! Lines of text, written by `unsnarl.warm.facts`:
//!
//! | line | meaning |
//! |---|---|
//! | `unsnarl-record 4 warm` or `… plain` | verdict |
//! | `var NAME` | the imports decide something by this variable: its value belongs to the key |
//! | `kept NAME` | the imports only keep this variable's value: whether it is set, and of which kind, belongs to the key |
//! | `prefix TEXT` | imports, or a C library, read all variables whose names begin so: their values belong to the key |
//! | `walk TEXT` | imports have found such variables by a walk: their order belongs to the key, too |
//! | `site PATH` | if `$HOME/PATH` is a directory, the search path has it: the value of `HOME` belongs to the key |
//! | `tty` | the imports asked whether a standard stream is a terminal |
//! | `size` | the imports asked for the size of the terminal that a standard stream may be |
//! | `sum` | the imports keep a bound made of the size of the environment, the same for all but very large ones |
//! | `cwd` | the imports asked for the working directory |
//! | `umask` | the imports asked for the file mode mask |
//! | `until SECONDS` | a plain verdict holds until this time |
//! | `stamp MTIME_NS SIZE PATH` | a plain verdict holds while these files are as they were |
//!
//! Invariant: a file with a line that is not understood holds no facts; the command is then learned again.

use crate::syscall::{Bytes, read_file, stat};

/// The client's part of the facts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The command must run plainly.
    pub(crate) is_plain: bool,
    /// Variables that belong to the key.
    pub(crate) variables: Vec<Bytes>,
    /// Variables of which only the kind of the value belongs to the key.
    pub(crate) kept: Vec<Bytes>,
    /// Beginnings of the names of variables that belong to the key.
    pub(crate) prefixes: Vec<Bytes>,
    /// Those of them whose variables count in their order.
    pub(crate) walks: Vec<Bytes>,
    /// The user's own packages, as a path below the home directory.
    pub(crate) user_site: Option<Bytes>,
    /// Whether the kind of the standard streams belongs to the key.
    pub(crate) asks_tty: bool,
    /// Whether the size of the terminal belongs to the key, where a standard stream is one.
    pub(crate) asks_size: bool,
    /// Whether a very large environment rules a server out.
    pub(crate) asks_sum: bool,
    /// Whether the working directory belongs to the key.
    pub(crate) asks_cwd: bool,
    /// Whether the file mode mask belongs to the key.
    pub(crate) asks_umask: bool,
    pub(super) stamps: Vec<(i128, i64, Bytes)>,
    pub(super) expires_s: Option<i64>,
}

/// Longest file: a few hundred names.
const LIMIT: usize = 1 << 18;

impl Facts {
    /// Reads facts; `None` if there are none that still hold.
    pub(crate) fn read(path: &[u8]) -> Option<Self> {
        Self::parse(&read_file(path, LIMIT)?).filter(Self::holds)
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let mut lines = text.split(|b| *b == b'\n');
        let mut facts = Self::default();
        match lines.next()? {
            b"unsnarl-record 4 warm" => {}
            b"unsnarl-record 4 plain" => facts.is_plain = true,
            _ => return None,
        }
        for line in lines.filter(|line| !line.is_empty()) {
            if let Some(name) = line.strip_prefix(b"var ") {
                facts.variables.push(name.to_vec());
            } else if let Some(name) = line.strip_prefix(b"kept ") {
                facts.kept.push(name.to_vec());
            } else if let Some(prefix) = line.strip_prefix(b"prefix ") {
                facts.prefixes.push(prefix.to_vec());
            } else if let Some(prefix) = line.strip_prefix(b"walk ") {
                facts.walks.push(prefix.to_vec());
            } else if let Some(path) = line.strip_prefix(b"site ") {
                facts.user_site = Some(path.to_vec());
            } else if line == b"tty" {
                facts.asks_tty = true;
            } else if line == b"size" {
                facts.asks_size = true;
            } else if line == b"sum" {
                facts.asks_sum = true;
            } else if line == b"cwd" {
                facts.asks_cwd = true;
            } else if line == b"umask" {
                facts.asks_umask = true;
            } else if let Some(seconds) = line.strip_prefix(b"until ") {
                facts.expires_s = Some(core::str::from_utf8(seconds).ok()?.parse().ok()?);
            } else if let Some(stamp) = line.strip_prefix(b"stamp ") {
                facts.stamps.push(parse_stamp(stamp)?);
            } else {
                return None;
            }
        }
        Some(facts)
    }

    fn holds(&self) -> bool {
        // SAFETY: no memory is passed.
        let has_expired = self
            .expires_s
            .is_some_and(|end_s| unsafe { libc::time(core::ptr::null_mut()) } >= end_s);
        !has_expired
            && self.stamps.iter().all(|(mtime_ns, size, path)| {
                stat(path).is_some_and(|found| {
                    let ns = i128::from(found.st_mtime) * 1_000_000_000 + i128::from(found.st_mtime_nsec);
                    ns == *mtime_ns && found.st_size == *size
                })
            })
    }
}

fn parse_stamp(text: &[u8]) -> Option<(i128, i64, Bytes)> {
    let mut words = text.splitn(3, |b| *b == b' ');
    let mut number = || core::str::from_utf8(words.next()?).ok()?.parse::<i128>().ok();
    let (mtime_ns, size) = (number()?, number()?);
    Some((mtime_ns, i64::try_from(size).ok()?, words.next()?.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_are_read() {
        let facts =
            Facts::parse(b"unsnarl-record 4 warm\nvar HOME\nkept A\nprefix OMP_\nwalk Q_\nsite .local/p\ntty\numask\n")
                .unwrap();
        assert_eq!(facts.variables, [b"HOME".to_vec()]);
        assert_eq!(facts.kept, [b"A".to_vec()]);
        assert_eq!(facts.prefixes, [b"OMP_".to_vec()]);
        assert_eq!(facts.walks, [b"Q_".to_vec()]);
        assert_eq!(facts.user_site.as_deref(), Some(&b".local/p"[..]));
        assert!(facts.asks_tty && facts.asks_umask && !facts.asks_cwd);
        assert!(!facts.is_plain && facts.holds());
        assert_eq!(Facts::parse(b"unsnarl-record 1 warm\n"), None);
    }

    #[test]
    fn a_changed_stamp_ends_a_verdict() {
        let facts = Facts::parse(b"unsnarl-record 4 plain\nstamp 1 2 /bin/sh\n").unwrap();
        assert!(facts.is_plain && !facts.holds());
    }

    #[test]
    fn a_verdict_expires() {
        assert!(!Facts::parse(b"unsnarl-record 4 plain\nuntil 1000\n").unwrap().holds());
        assert!(
            Facts::parse(b"unsnarl-record 4 plain\nuntil 99999999999\n")
                .unwrap()
                .holds()
        );
        assert_eq!(Facts::parse(b"unsnarl-record 4 plain\nuntil soon\n"), None);
    }

    proptest! {
        #[test]
        fn arbitrary_text_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Facts::parse(&[b"unsnarl-record 4 warm\n".as_slice(), &bytes].concat());
        }
    }
}
