//! Parses the command line of `unsnarl run`: options of unsnarl and of python, a target, its arguments.
//!
//! `python/unsnarl/cli/program/arguments.py` has the grammar. `--green`, `--metrics` and `--pack` are not handled
//! here: each needs checks that Python makes.
//!
//! Pure. Invariant: a word that is not understood makes the whole line one for the Python verb (`None`).

use crate::syscall::Bytes;

/// The kind of a target, as the words say it: a `File` may still turn out to be a command, and the reverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Module,
    Code,
    Stdin,
    File,
    Command,
}

/// A parsed command line.
#[derive(Debug, PartialEq)]
pub(super) struct Request {
    /// Options of python as typed, up to and including `-c CODE` or `-m MODULE`.
    pub(super) python_words: Vec<Bytes>,
    /// The letters among them.
    pub(super) python_flags: Bytes,
    pub(super) kind: Kind,
    pub(super) target: Bytes,
    pub(super) arguments: Vec<Bytes>,
    pub(super) slice_ms: Option<f64>,
    pub(super) kernel_hints: bool,
    pub(super) children: bool,
    pub(super) stats: &'static str,
    pub(super) patch: bool,
}

/// Options of python without a value, as in `arguments.py`.
const PLAIN_FLAGS: &[u8] = b"bBdEiIOPqRsuvx";
/// The shortest and the longest slice in milliseconds, as in `arguments.py`.
const SLICE_MS: core::ops::RangeInclusive<f64> = 0.1..=1000.0;

/// Parses the words after `unsnarl run`.
pub(super) fn parse(words: &[Bytes]) -> Option<Request> {
    let mut request = Request {
        python_words: Vec::new(),
        python_flags: Vec::new(),
        kind: Kind::File,
        target: Vec::new(),
        arguments: Vec::new(),
        slice_ms: None,
        kernel_hints: true,
        children: true,
        stats: "no",
        patch: false,
    };
    let mut rest = words;
    loop {
        let (word, after) = rest.split_first()?;
        if word == b"--" {
            return request.with_target(Kind::Command, after);
        }
        if word == b"-" {
            return request.with_target(Kind::Stdin, rest);
        }
        if !word.starts_with(b"-") {
            return request.with_target(Kind::File, rest);
        }
        rest = after;
        if word.starts_with(b"--") {
            rest = request.take_long(word, rest)?;
            continue;
        }
        rest = match request.take_cluster(word, rest)? {
            Cluster::Options(rest) => rest,
            Cluster::Program(kind, target, arguments) => return request.with_inline(kind, target, arguments),
        };
    }
}

/// What a word of python's short options was.
enum Cluster<'a> {
    /// Options; the words that remain.
    Options(&'a [Bytes]),
    /// It ended with `-m` or `-c`: the module or text, and the words after it.
    Program(Kind, Bytes, &'a [Bytes]),
}

impl Request {
    fn with_target(mut self, kind: Kind, words: &[Bytes]) -> Option<Self> {
        let (target, arguments) = words.split_first()?;
        if target.is_empty() {
            return None;
        }
        self.kind = kind;
        self.target.clone_from(target);
        self.arguments = arguments.to_vec();
        Some(self)
    }

    fn with_inline(mut self, kind: Kind, target: Bytes, arguments: &[Bytes]) -> Option<Self> {
        if kind == Kind::Module && target.is_empty() {
            return None;
        }
        self.kind = kind;
        self.target = target;
        self.arguments = arguments.to_vec();
        Some(self)
    }

    /// Parses a cluster of python's options, as `-um module` or `-Wd`.
    fn take_cluster<'a>(&mut self, word: &Bytes, rest: &'a [Bytes]) -> Option<Cluster<'a>> {
        self.python_words.push(word.clone());
        for (index, flag) in word.iter().enumerate().skip(1) {
            if !PLAIN_FLAGS.contains(flag) && !b"WXcm".contains(flag) {
                return None;
            }
            self.python_flags.push(*flag);
            if PLAIN_FLAGS.contains(flag) {
                continue;
            }
            let attached = &word[index + 1..];
            let (value, rest) = if attached.is_empty() {
                let (value, rest) = rest.split_first()?;
                self.python_words.push(value.clone());
                (value.clone(), rest)
            } else {
                (attached.to_vec(), rest)
            };
            return Some(match flag {
                b'm' => Cluster::Program(Kind::Module, value, rest),
                b'c' => Cluster::Program(Kind::Code, value, rest),
                _ => Cluster::Options(rest),
            });
        }
        Some(Cluster::Options(rest))
    }

    /// Parses an option of unsnarl; returns the words that remain.
    fn take_long<'a>(&mut self, word: &[u8], rest: &'a [Bytes]) -> Option<&'a [Bytes]> {
        match word {
            b"--no-children" => self.children = false,
            b"--no-kernel-hints" => self.kernel_hints = false,
            b"--patch" => self.patch = true,
            b"--stats" | b"--stats=main" => self.stats = "main",
            b"--stats=all" => self.stats = "all",
            b"--slice" => {
                let (value, rest) = rest.split_first()?;
                self.slice_ms = Some(slice_ms(value)?);
                return Some(rest);
            }
            _ => self.slice_ms = Some(slice_ms(word.strip_prefix(b"--slice=")?)?),
        }
        Some(rest)
    }
}

/// Parses a plain decimal number in the accepted range; Python's other spellings are left to Python.
fn slice_ms(text: &[u8]) -> Option<f64> {
    if !text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.') {
        return None;
    }
    let slice_ms: f64 = core::str::from_utf8(text).ok()?.parse().ok()?;
    SLICE_MS.contains(&slice_ms).then_some(slice_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(line: &str) -> Option<Request> {
        let words: Vec<Bytes> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        parse(&words)
    }

    #[test]
    fn options_end_at_the_target() {
        let request = parsed("--stats -u -Wd -X dev --slice 2.5 app.py --stats -x").unwrap();
        assert_eq!(request.kind, Kind::File);
        assert_eq!(request.target, b"app.py");
        assert_eq!(request.arguments, [b"--stats".to_vec(), b"-x".to_vec()]);
        assert_eq!(request.python_words, [&b"-u"[..], b"-Wd", b"-X", b"dev"]);
        assert_eq!((request.stats, request.slice_ms), ("main", Some(2.5)));
    }

    #[test]
    fn modules_and_texts_end_the_options() {
        let module = parsed("-um package.part --stats").unwrap();
        assert_eq!((module.kind, &module.target[..]), (Kind::Module, &b"package.part"[..]));
        assert_eq!(module.python_words, [&b"-um"[..], b"package.part"]);
        assert_eq!(module.arguments, [b"--stats".to_vec()]);
        let code = parsed("-cpass -c").unwrap();
        assert_eq!((code.kind, &code.target[..]), (Kind::Code, &b"pass"[..]));
        assert_eq!(code.python_words, [b"-cpass".to_vec()]);
    }

    #[test]
    fn two_dashes_name_a_command() {
        let request = parsed("--no-children -- gunicorn app:app").unwrap();
        assert_eq!((request.kind, request.children), (Kind::Command, false));
        assert_eq!(parsed("- x").unwrap().kind, Kind::Stdin);
    }

    #[test]
    fn other_lines_are_left_to_python() {
        for line in [
            "",
            "--stats",
            "--stats=some app.py",
            "--green app.py",
            "--metrics app.py",
            "--pack p app.py",
            "--help",
            "-h",
            "-S app.py",
            "-uz app.py",
            "-m",
            "-c",
            "-X",
            "--",
            "--slice 1e2 app.py",
            "--slice 0 app.py",
            "--slice 1001 app.py",
            "--slice= app.py",
            "--slice . app.py",
            "--patch=1 app.py",
            "--check-hash-based-pycs always app.py",
        ] {
            assert_eq!(parsed(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_words_do_not_panic(words in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..6), 0..6)) {
            let _ = parse(&words);
        }
    }
}
