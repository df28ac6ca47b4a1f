//! Counts the calls of a command that ran plainly, by key, and the values of what their keys are made of.
//!
//! `COMMAND.calls` is text, which its user alone may read:
//!
//! | line | meaning |
//! |---|---|
//! | `unsnarl-calls 2 COUNT` | all calls |
//! | `parts NAME…` | what keys are made of, at most [`MOST_PARTS`] |
//! | `KEY COUNT DIGEST…` | one of the last [`MOST_KEYS`] keys, with a digest for each part; `-` stands for a variable that is not set, `.` for what was no part then |
//!
//! The first version had no line of parts and no digests; its counts are taken over. A key is a hash, and a digest has
//! so few bits that no value can be made of it; who guesses a value can see that the guess is likely.
//!
//! Invariant: in doubt a count is too low, never too high: calls that collide, or a file that is not understood, delay a
//! server, and cost nothing.

use crate::syscall::{Bytes, close, open, read_file};
use core::fmt::Write as _;

/// Keys that are counted. With more of them in turn, none of them comes back soon enough for a server.
const MOST_KEYS: usize = 64;
/// Parts whose values are counted.
const MOST_PARTS: usize = 32;
/// Longest name of a part, in bytes.
const LONGEST_NAME: usize = 64;
/// Hexadecimal digits of a digest: of 64 values, two have the same one in one command of ten thousand.
const DIGITS: usize = 6;
/// Largest size, in bytes.
const LIMIT: usize = 1 << 15;
/// Stands for a variable that is not set.
const UNSET: &str = "-";
/// Stands for what was no part of a key.
const NO_PART: &str = ".";
/// Hexadecimal digits of a key's hash.
const KEY_DIGITS: usize = 32;

/// A part of keys: the name of a variable, or what else `unsnarl warm why` names; and a digest of its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    name: String,
    digest: String,
}

impl Part {
    /// Returns the part; `None` if its name does not fit into a file of words.
    pub(crate) fn new(name: &[u8], value: Option<&[u8]>) -> Option<Self> {
        let is_word = !name.is_empty() && name.len() <= LONGEST_NAME && name.iter().all(u8::is_ascii_graphic);
        is_word.then(|| Self {
            name: String::from_utf8_lossy(name).into_owned(),
            digest: value.map_or_else(|| UNSET.to_owned(), digest),
        })
    }
}

fn digest(value: &[u8]) -> String {
    let mut text = super::key::hash(value);
    text.split_off(text.len() - DIGITS)
}

/// How many values a part had, and in how many calls.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Varied<'a> {
    pub(crate) name: &'a str,
    pub(crate) values: usize,
    pub(crate) calls: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    all: u64,
    names: Vec<String>,
    /// The key called last comes first.
    keys: Vec<Key>,
}

#[derive(Debug, PartialEq, Eq)]
struct Key {
    id: String,
    count: u64,
    /// By the places of the names; those that are missing at the end were no parts yet.
    digests: Vec<String>,
}

impl Calls {
    /// Reads a file; no calls if it is missing or not understood.
    pub(crate) fn read(path: &[u8]) -> Self {
        read_file(path, LIMIT)
            .and_then(|text| Self::parse(&text))
            .unwrap_or_default()
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let mut lines = core::str::from_utf8(text).ok()?.lines();
        let (version, all) = lines.next()?.strip_prefix("unsnarl-calls ")?.split_once(' ')?;
        let mut calls = Self {
            all: all.parse().ok()?,
            ..Self::default()
        };
        match version {
            "1" => {}
            "2" => calls.names = words(lines.next()?.strip_prefix("parts")?),
            _ => return None,
        }
        // A reader may find the end of an older, longer text: what is no row is left out.
        for key in lines.filter_map(Key::parse).take(MOST_KEYS) {
            if key.digests.len() <= calls.names.len() && calls.keys.iter().all(|known| known.id != key.id) {
                calls.keys.push(key);
            }
        }
        Some(calls)
    }

    /// All calls, of whatever key.
    pub(crate) fn all(&self) -> u64 {
        self.all
    }

    /// Calls with this key.
    pub(crate) fn of_key(&self, key: &str) -> u64 {
        let found = self.keys.iter().find(|known| known.id == key);
        found.map_or(0, |known| known.count)
    }

    /// Returns the parts of the last call's key that had several values, those with the most values first.
    pub(crate) fn varied(&self) -> Vec<Varied<'_>> {
        let is_part = |place: usize| self.keys.first().is_some_and(|last| last.digest(place).is_some());
        let parts = self.names.iter().enumerate().filter(|(place, _)| is_part(*place));
        let mut varied: Vec<Varied<'_>> = parts.map(|(place, name)| self.of_part(place, name)).collect();
        varied.retain(|part| part.values > 1);
        varied.sort_by_key(|part| core::cmp::Reverse(part.values));
        varied
    }

    fn of_part<'a>(&'a self, place: usize, name: &'a str) -> Varied<'a> {
        let known = self.keys.iter().filter_map(|key| Some((key.digest(place)?, key.count)));
        let (mut digests, counts): (Vec<_>, Vec<_>) = known.unzip();
        digests.sort_unstable();
        digests.dedup();
        Varied {
            name,
            values: digests.len(),
            calls: counts.into_iter().fold(0, u64::saturating_add),
        }
    }

    /// Counts a call; returns how many had this key. Of too many parts, the first ones count.
    pub(crate) fn add(&mut self, key: &str, parts: &[Part]) -> u64 {
        let at = self.keys.iter().position(|known| known.id == key);
        let before = at.map_or(0, |at| self.keys.remove(at).count);
        self.all = self.all.saturating_add(1);
        self.keys.truncate(MOST_KEYS - 1);
        self.forget_names();
        for part in parts {
            if !self.names.contains(&part.name) && self.names.len() < MOST_PARTS {
                self.names.push(part.name.clone());
            }
        }
        let digest = |name: &String| {
            let found = parts.iter().find(|part| part.name == *name);
            found.map_or_else(|| NO_PART.to_owned(), |part| part.digest.clone())
        };
        let counted = Key {
            id: key.into(),
            count: before.saturating_add(1),
            digests: self.names.iter().map(digest).collect(),
        };
        self.keys.insert(0, counted);
        self.keys[0].count
    }

    /// Removes the names that are parts of no counted key any more.
    fn forget_names(&mut self) {
        for place in (0..self.names.len()).rev() {
            if self.keys.iter().all(|key| key.digest(place).is_none()) {
                self.names.remove(place);
                for key in self.keys.iter_mut().filter(|key| place < key.digests.len()) {
                    key.digests.remove(place);
                }
            }
        }
    }

    fn text(&self) -> Bytes {
        let mut text = format!("unsnarl-calls 2 {}\nparts", self.all);
        for name in &self.names {
            let _ = write!(text, " {name}");
        }
        for key in &self.keys {
            let _ = write!(text, "\n{} {}", key.id, key.count);
            for digest in &key.digests {
                let _ = write!(text, " {digest}");
            }
        }
        text.push('\n');
        text.into_bytes()
    }

    /// Writes the counts, unless another client is writing.
    pub(crate) fn write(&self, path: &[u8]) {
        let text = self.text();
        let fd = open(path, libc::O_WRONLY | libc::O_CREAT | libc::O_NOFOLLOW, 0o600);
        if fd < 0 {
            return;
        }
        // SAFETY: fd is open, the buffer valid for its length. The signal's disposition is restored: without that, a
        // caller that may not write files at all would end here.
        unsafe {
            let before = libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            libc::fchmod(fd, 0o600); // independent of the caller's file mode mask
            if libc::flock(fd, libc::LOCK_EX | libc::LOCK_NB) == 0 {
                let written = libc::pwrite(fd, text.as_ptr().cast(), text.len(), 0);
                // A file that is cut off is not understood, or counts too little.
                libc::ftruncate(fd, written.max(0) as libc::off_t);
            }
            libc::signal(libc::SIGXFSZ, before);
        }
        close(fd);
    }
}

impl Key {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let id = words.next().filter(|id| is_hash(id, KEY_DIGITS))?.to_owned();
        let count = words.next()?.parse().ok()?;
        let digests: Vec<String> = words.map(str::to_owned).collect();
        let is_digest = |word: &String| [UNSET, NO_PART].contains(&word.as_str()) || is_hash(word, DIGITS);
        digests.iter().all(is_digest).then_some(Self { id, count, digests })
    }

    /// The digest of a part; `None` if it was no part of this key.
    fn digest(&self, place: usize) -> Option<&str> {
        let digest = self.digests.get(place)?.as_str();
        (digest != NO_PART).then_some(digest)
    }
}

fn is_hash(word: &str, digits: usize) -> bool {
    word.len() == digits && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn words(text: &str) -> Vec<String> {
    text.split(' ')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part(name: &str, value: &str) -> Part {
        Part::new(name.as_bytes(), Some(value.as_bytes())).expect("a word")
    }

    fn id(number: usize) -> String {
        format!("{number:032}")
    }

    #[test]
    fn calls_are_counted_by_key() {
        let mut calls = Calls::default();
        let parts = [part("A", "1")];
        let counts = [
            calls.add(&id(1), &parts),
            calls.add(&id(2), &[]),
            calls.add(&id(1), &parts),
        ];
        assert_eq!((counts, calls.all()), ([1, 1, 2], 3));
        assert_eq!((calls.of_key(&id(1)), calls.of_key(&id(3))), (2, 0));
        assert_eq!(Calls::parse(&calls.text()), Some(calls));
        assert_eq!(Calls::parse(&Calls::default().text()), Some(Calls::default()));
    }

    #[test]
    fn a_key_that_is_long_gone_is_forgotten_and_the_file_keeps_below_its_limit() {
        let mut calls = Calls::default();
        calls.add(&id(0), &[]);
        for number in 1..=MOST_KEYS {
            let name = |part: usize| format!("{part:0width$}", width = LONGEST_NAME);
            let parts: Vec<Part> = (0..2 * MOST_PARTS)
                .map(|at| part(&name(at), &number.to_string()))
                .collect();
            calls.add(&id(number), &parts);
        }
        assert_eq!(calls.add(&id(0), &[]), 1);
        assert!(calls.text().len() < LIMIT);
        assert_eq!(Calls::parse(&calls.text()), Some(calls));
    }

    #[test]
    fn values_are_counted_by_part_from_when_it_is_one() {
        let unset = Part::new(b"UNSET", None).expect("a word");
        let mut calls = Calls::default();
        calls.add(&id(0), &[part("SAME", "1")]);
        for (key, value) in [(1, "1"), (2, "2"), (3, "3"), (1, "1")] {
            calls.add(&id(key), &[part("VARIES", value), unset.clone(), part("SAME", "1")]);
        }
        calls.add(&id(4), &[part("SAME", "1"), part("VARIES", "3"), part("UNSET", "1")]);
        let expected = [("VARIES", 3), ("UNSET", 2)].map(|(name, values)| Varied { name, values, calls: 5 });
        assert_eq!(calls.varied(), expected);
    }

    #[test]
    fn what_is_no_part_any_more_splits_nothing() {
        let mut calls = Calls::default();
        calls.add(&id(1), &[part("GONE", "1"), part("STAYS", "1")]);
        calls.add(&id(2), &[part("GONE", "2"), part("STAYS", "1")]);
        assert_eq!(calls.varied().len(), 1);
        for number in 3..3 + MOST_KEYS {
            calls.add(&id(number), &[part("STAYS", "1")]);
            assert_eq!(calls.varied(), []);
        }
        calls.add(&id(1), &[part("STAYS", "1"), part("LATE", "1")]);
        assert_eq!(calls.names, ["STAYS", "LATE"]);
        assert_eq!(Calls::parse(&calls.text()), Some(calls));
    }

    #[test]
    fn a_text_of_the_first_version_and_the_end_of_a_longer_one_are_understood() {
        let first = format!("unsnarl-calls 1 9\n{} 5\n", id(1));
        let calls = Calls::parse(first.as_bytes()).expect("the first version");
        assert_eq!((calls.all(), calls.of_key(&id(1))), (9, 5));
        let second = format!(
            "unsnarl-calls 2 9\nparts A\n{0} 5 -\nffaa11 123456\n{0} 7 -\n{1} 1 - -\n",
            id(1),
            id(2)
        );
        let calls = Calls::parse(second.as_bytes()).expect("the second version");
        assert_eq!((calls.of_key(&id(1)), calls.keys.len()), (5, 1));
    }

    #[test]
    fn a_name_that_is_no_word_is_left_out() {
        assert_eq!(Part::new(b"A B", None), None);
        assert_eq!(Part::new(b"", None), None);
        assert_eq!(Part::new(b"A\n", None), None);
        assert_eq!(part("A", "x").digest.len(), DIGITS);
    }

    proptest! {
        #[test]
        fn arbitrary_text_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Calls::parse(&[b"unsnarl-calls 2 1\nparts A\n".as_slice(), &bytes].concat()).map(|calls| {
                calls.varied().len()
            });
        }
    }
}
