//! The target of a call: which Python command a shim, a name or a path means.
//!
//! Invariant: [`Target::plain_argv`] is what the kernel would have started for the same words; a command that the
//! client does not understand is no target.

use crate::syscall::{Bytes, read_file, readlink, stat, variable};

/// The kind of thing that the interpreter runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A file.
    Script,
    /// `-m name`.
    Module,
}

/// A command of some Python environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The interpreter, as the command names it (the path in a venv).
    pub(crate) python: Bytes,
    /// The first argument of the plain command: `python3` where that was looked up.
    pub(crate) called: Bytes,
    /// Interpreter options, e.g. `-sP`.
    pub(crate) options: Vec<Bytes>,
    /// Script or module.
    pub(crate) kind: Kind,
    /// Path of the script as it is called, or dotted name of the module.
    pub(crate) name: Bytes,
    /// Absolute path of the script, as the interpreter makes it for `__file__`: the working directory comes first. If
    /// that cannot be read, it is the name. Of a module, its name.
    pub(crate) file: Bytes,
}

/// First line of a shim, after its `#!` line.
pub(crate) const SHIM_MAGIC: &[u8] = b"unsnarl-shim 1";

/// The first bytes of a file that the kernel runs itself (elf(5)).
const ELF: &[u8] = b"\x7fELF";

/// Bytes of a script's head that are read.
const HEAD: usize = 4096;

impl Target {
    /// Returns interpreter and arguments of the plain command.
    pub(crate) fn plain_argv(&self, args: &[Bytes]) -> Vec<Bytes> {
        let mut argv = vec![self.python.clone()];
        argv.extend(self.options.iter().cloned());
        if self.kind == Kind::Module {
            argv.push(b"-m".to_vec());
        }
        argv.push(self.name.clone());
        argv.extend(args.iter().cloned());
        argv
    }

    /// Reads a shim: `python=`, `option=` any number of times, `script=` or `module=`. Without an interpreter, the
    /// script's own is used.
    pub(crate) fn from_shim(text: &[u8], environ: &[Bytes]) -> Option<Self> {
        let mut lines = text
            .split(|b| *b == b'\n')
            .skip_while(|line| *line != SHIM_MAGIC)
            .skip(1);
        let (mut python, mut options, mut name) = (None, Vec::new(), None);
        for line in &mut lines {
            let Some(at) = line.iter().position(|b| *b == b'=') else {
                continue;
            };
            let value = line[at + 1..].to_vec();
            match &line[..at] {
                b"python" => python = Some(value),
                b"option" => options.push(value),
                b"script" => name = Some((Kind::Script, value)),
                b"module" => name = Some((Kind::Module, value)),
                _ => return None,
            }
        }
        let name = name?;
        let Some(python) = python else {
            // Each call looks up the interpreter of such a script again.
            return Self::of_script(&name.1, &read_file(&name.1, HEAD)?, environ);
        };
        let (kind, name) = name;
        Some(Self {
            called: python.clone(),
            python,
            options,
            file: file_of(kind, &name),
            kind,
            name,
        })
    }

    /// Reads a command line: the name or path of a console script, or a `python` followed by `-m module` or a script.
    /// The remaining words are the command's arguments.
    pub(crate) fn from_words(words: &[Bytes], environ: &[Bytes]) -> Option<(Self, usize)> {
        let file = find(words.first()?, environ)?;
        if is_python(&file) {
            return Self::of_interpreter(file, words);
        }
        Some((Self::from_file(&file, environ)?, 1))
    }

    /// Reads a script's first bytes.
    pub(crate) fn from_file(file: &[u8], environ: &[Bytes]) -> Option<Self> {
        let head = read_file(file, HEAD)?;
        if head.windows(SHIM_MAGIC.len()).any(|w| w == SHIM_MAGIC) {
            return Self::from_shim(&head, environ);
        }
        Self::of_script(file, &head, environ)
    }

    /// Returns the script that a shim names, if it names one.
    pub(crate) fn script_of_shim(file: &[u8]) -> Option<Bytes> {
        let head = read_file(file, HEAD)?;
        let mut lines = head.split(|b| *b == b'\n').skip_while(|line| *line != SHIM_MAGIC);
        lines.find_map(|line| line.strip_prefix(b"script=")).map(<[u8]>::to_vec)
    }

    fn of_script(file: &[u8], head: &[u8], environ: &[Bytes]) -> Option<Self> {
        let (called, python, options) = shebang(head, environ)?;
        Some(Self {
            python,
            called,
            options,
            kind: Kind::Script,
            file: file_of(Kind::Script, file),
            name: file.to_vec(),
        })
    }

    /// Returns the kind as a start passes it on: `script`, `script:NAME` if it is called by a relative name, `module`.
    pub(crate) fn kind_word(&self) -> Bytes {
        match self.kind {
            Kind::Module => b"module".to_vec(),
            Kind::Script if self.name == self.file => b"script".to_vec(),
            Kind::Script => [b"script:", &self.name[..]].concat(),
        }
    }

    /// Reads what [`Self::kind_word`] has written; `file` is the word after it.
    pub(crate) fn from_kind_word(kind: &[u8], file: &[u8], python: &[u8], options: &[Bytes]) -> Self {
        Self {
            python: python.to_vec(),
            called: python.to_vec(),
            options: options.to_vec(),
            kind: if kind == b"module" { Kind::Module } else { Kind::Script },
            name: kind.strip_prefix(b"script:").unwrap_or(file).to_vec(),
            file: file.to_vec(),
        }
    }

    /// Whether the interpreter is a program itself. A script in its place (pyenv, asdf) looks up an interpreter again
    /// in each call, from the directory and the environment.
    pub(crate) fn names_a_program(&self) -> bool {
        read_file(&self.python, ELF.len()).is_some_and(|head| head == ELF)
    }

    /// Whether there is an interpreter.
    pub(crate) fn has_interpreter(&self) -> bool {
        stat(&self.python).is_some()
    }

    /// Whether the first line of the script names the interpreter; else a shim does, or the caller.
    pub(crate) fn is_named_by_script(&self) -> bool {
        let head = read_file(&self.name, HEAD).unwrap_or_default();
        self.kind == Kind::Script && shebang(&head, &[]).is_some_and(|(called, _, _)| called == self.called)
    }

    fn of_interpreter(python: Bytes, words: &[Bytes]) -> Option<(Self, usize)> {
        let first = words.get(1)?;
        let (kind, name, used) = if first == b"-m" {
            (Kind::Module, words.get(2)?.clone(), 3)
        } else if first.starts_with(b"-") {
            return None;
        } else {
            (Kind::Script, first.clone(), 2)
        };
        Some((
            Self {
                python,
                called: words[0].clone(),
                options: Vec::new(),
                file: file_of(kind, &name),
                kind,
                name,
            },
            used,
        ))
    }
}

/// Returns the absolute path of a script (`config_run_filename_abspath` in Python/initconfig.c joins it to the working
/// directory, and does no more); the name of a module.
fn file_of(kind: Kind, name: &[u8]) -> Bytes {
    if kind == Kind::Script && !name.starts_with(b"/") {
        let path = readlink(b"/proc/self/cwd").map(|directory| [&directory, name].join(&b'/'));
        // The link of a directory that was removed leads nowhere.
        return path
            .filter(|path| stat(path).is_some())
            .unwrap_or_else(|| name.to_vec());
    }
    name.to_vec()
}

/// Returns the name by which a `#!` line calls the interpreter, its path, and its options; also for pip's form for
/// long paths.
fn shebang(head: &[u8], environ: &[Bytes]) -> Option<(Bytes, Bytes, Vec<Bytes>)> {
    let mut lines = head.strip_prefix(b"#!")?.split(|b| *b == b'\n');
    let line = lines.next()?.trim_ascii();
    if line == b"/bin/sh" {
        let python = lines
            .next()?
            .strip_prefix(b"'''exec' ")?
            .strip_suffix(b" \"$0\" \"$@\"")?;
        let python = python
            .strip_prefix(b"\"")
            .and_then(|p| p.strip_suffix(b"\""))
            .unwrap_or(python);
        return is_python(python).then(|| (python.to_vec(), python.to_vec(), Vec::new()));
    }
    let mut words = line.splitn(2, |b| *b == b' ').map(<[u8]>::trim_ascii);
    let first = words.next()?;
    let rest = words.next().filter(|w| !w.is_empty());
    if !first.ends_with(b"/env") {
        return is_python(first).then(|| {
            (
                first.to_vec(),
                first.to_vec(),
                rest.map(<[u8]>::to_vec).into_iter().collect(),
            )
        });
    }
    // The kernel passes env one word; with -S env splits it.
    let split = rest?.strip_prefix(b"-S ").map(<[u8]>::trim_ascii);
    if split.is_some_and(|line| line.iter().any(|b| b"\"'\\$#\t".contains(b))) {
        return None; // env's own quoting
    }
    let mut words = split
        .unwrap_or(rest?)
        .split(|b| split.is_some() && *b == b' ')
        .filter(|w| !w.is_empty());
    let called = words.next()?.to_vec();
    let python = find(&called, environ)?;
    is_python(&python).then(|| (called, python, words.map(<[u8]>::to_vec).collect()))
}

/// Whether the last part of the path is `python`, `python3`, `python3.13`, `python3.13t` or the like.
pub(crate) fn is_python(path: &[u8]) -> bool {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    name.strip_prefix(b"python").is_some_and(|version| {
        let version = version.strip_suffix(b"t").unwrap_or(version);
        version.iter().all(|b| b.is_ascii_digit() || *b == b'.')
    })
}

/// Whether a file is an archive (zipapp) that has no `#!` line.
pub(crate) fn is_archive(file: &[u8]) -> bool {
    const FIRST: &[u8] = b"PK\x03\x04";
    read_file(file, FIRST.len()).is_some_and(|head| head == FIRST)
}

/// The search path for commands where PATH is not set (glibc's `_CS_PATH`).
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// Returns the file that a word means, as a shell finds it.
pub(crate) fn find(word: &[u8], environ: &[Bytes]) -> Option<Bytes> {
    if word.contains(&b'/') {
        return Some(word.to_vec());
    }
    variable(environ, b"PATH")
        .unwrap_or(DEFAULT_PATH)
        .split(|b| *b == b':')
        .find_map(|dir| {
            let path = [if dir.is_empty() { b"." } else { dir }, word].join(&b'/');
            let found = stat(&path)?;
            (found.st_mode & libc::S_IFMT == libc::S_IFREG && found.st_mode & 0o111 != 0).then_some(path)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_shim_names_interpreter_and_script() {
        let text = b"#!/v/bin/unsnarl --shim\nunsnarl-shim 1\npython=/v/bin/python\noption=-s\nscript=/v/bin/hg\n";
        let target = Target::from_shim(text, &[]).unwrap();
        let plain = target.plain_argv(&[b"status".to_vec()]);
        assert_eq!(plain, [&b"/v/bin/python"[..], b"-s", b"/v/bin/hg", b"status"]);
    }

    #[test]
    fn shebangs_of_pip_are_understood() {
        let short = shebang(b"#!/v/bin/python3.13 -sP\nimport x\n", &[]).unwrap();
        assert_eq!(
            (short.1, short.2),
            (b"/v/bin/python3.13".to_vec(), vec![b"-sP".to_vec()])
        );
        let free_threaded = shebang(b"#!/v/bin/python3.13t\n", &[]).unwrap();
        assert_eq!(free_threaded.1, b"/v/bin/python3.13t");
        let long = shebang(b"#!/bin/sh\n'''exec' \"/a b/python\" \"$0\" \"$@\"\n' '''\n", &[]).unwrap();
        assert_eq!(long.1, b"/a b/python");
        assert_eq!(shebang(b"#!/bin/sh\necho\n", &[]), None);
        let split = shebang(b"#!/usr/bin/env -S /v/python3 -s  -P\n", &[]).unwrap();
        assert_eq!((&split.0[..], split.2.len()), (&b"/v/python3"[..], 2));
        assert_eq!(
            shebang(b"#!/usr/bin/env -S /v/python3 -W \"ignore::UserWarning\"\n", &[]),
            None
        );
        assert_eq!(shebang(b"#!/usr/bin/env /v/python3 -s\n", &[]), None);
        assert_eq!(shebang(b"#!/usr/bin/perl\n", &[]), None);
    }

    proptest! {
        #[test]
        fn arbitrary_heads_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = shebang(&bytes, &[]);
            let _ = Target::from_shim(&bytes, &[]);
        }
    }
}
