//! The program of a request: the words after `python` that run it, if it is certainly there.
//!
//! `python/unsnarl/cli/program/target.py` and `console_script.py` have the rules and the refusals. Only positive
//! evidence counts here: a file that opens, a module that lies in one of three directories, a script whose first line
//! names this environment's interpreter. What is missing, unreadable or of a rarer form is left to the Python verb.
//!
//! Must never: open anything but a regular file, since opening a pipe has an effect.

use super::environment::{Environment, is_executable, is_file, join};
use super::request::{Kind, Request};
use crate::syscall::{Bytes, lstat, read_file, read_tail, stat, variable};

/// The first bytes of a program for the kernel (elf(5)), which python would read as text.
const ELF: &[u8] = b"\x7fELF";
/// The mark of the last record of an archive, which python runs by its `__main__.py` (`Lib/zipimport.py`).
const ARCHIVE: &[u8] = b"PK\x05\x06";
/// How far from a file's end `zipimport` searches for that mark: the record with its longest comment.
const ARCHIVE_TAIL: usize = (1 << 16) + 22;
/// Bytes of a console script that are read; its first line is much shorter.
const HEAD: usize = 4096;

/// Returns the words after the interpreter.
pub(super) fn words(request: &Request, environment: &Environment, environ: &[Bytes]) -> Option<Vec<Bytes>> {
    let program = match request.kind {
        Kind::Module => is_module_there(request, environment, environ).then(Vec::new)?,
        Kind::Code => Vec::new(),
        Kind::Stdin => vec![b"-".to_vec()],
        Kind::File => file_or_command(&request.target, environment, environ)?,
        Kind::Command => command_or_file(&request.target, environment, environ)?,
    };
    let parts = [&request.python_words, &program, &request.arguments];
    Some(parts.into_iter().flatten().cloned().collect())
}

fn file_or_command(target: &[u8], environment: &Environment, environ: &[Bytes]) -> Option<Vec<Bytes>> {
    match found(target) {
        Found::Program => Some(as_script(target)),
        Found::Nothing if !target.contains(&b'/') => script_words(&find(target, environment, environ)?, environment),
        Found::Nothing | Found::Doubtful => None,
    }
}

fn command_or_file(target: &[u8], environment: &Environment, environ: &[Bytes]) -> Option<Vec<Bytes>> {
    if !target.contains(&b'/') && !has_empty_entry(environ) {
        if let Some(path) = find(target, environment, environ) {
            return script_words(&path, environment);
        }
    } else if !target.contains(&b'/') {
        return None;
    }
    (found(target) == Found::Program).then(|| as_script(target))
}

/// A name that begins with a dash would be an option of python.
fn as_script(target: &[u8]) -> Vec<Bytes> {
    let dashes = target.starts_with(b"-").then(|| b"--".to_vec());
    dashes.into_iter().chain([target.to_vec()]).collect()
}

/// What a path is to python.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// It runs this.
    Program,
    /// There is no such file, and no directory that could be run.
    Nothing,
    /// It may refuse this.
    Doubtful,
}

fn found(target: &[u8]) -> Found {
    let Some(status) = stat(target) else {
        return if lstat(target).is_some() {
            Found::Doubtful
        } else {
            Found::Nothing
        };
    };
    match status.st_mode & libc::S_IFMT {
        libc::S_IFREG if is_text(target) => Found::Program,
        libc::S_IFREG => Found::Doubtful,
        libc::S_IFDIR if is_file(&join(target, b"__main__.py")) => Found::Program,
        libc::S_IFDIR => Found::Doubtful,
        _ => Found::Program,
    }
}

/// Whether a regular file opens and is neither a program for the kernel nor an archive.
fn is_text(path: &[u8]) -> bool {
    let Some(head) = read_file(path, ELF.len()) else {
        return false;
    };
    let tail = read_tail(path, ARCHIVE_TAIL);
    head != ELF && tail.is_some_and(|tail| !tail.windows(ARCHIVE.len()).any(|mark| mark == ARCHIVE))
}

/// Whether the search path has an entry for the current directory, which the two languages spell differently.
fn has_empty_entry(environ: &[Bytes]) -> bool {
    variable(environ, b"PATH").is_some_and(|path| path.split(|byte| *byte == b':').any(<[u8]>::is_empty))
}

/// The search path where PATH is not set (`os.defpath`).
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// Finds a command: this environment's scripts first, then PATH.
fn find(name: &[u8], environment: &Environment, environ: &[Bytes]) -> Option<Bytes> {
    if has_empty_entry(environ) {
        return None;
    }
    let path = variable(environ, b"PATH").unwrap_or(DEFAULT_PATH);
    [&environment.scripts[..]]
        .into_iter()
        .chain(path.split(|byte| *byte == b':'))
        .map(|directory| join(directory.strip_suffix(b"/").unwrap_or(directory), name))
        .find(|path| is_executable(path))
}

/// Returns the words for a console script whose first line is the kernel's and names this environment's interpreter.
fn script_words(path: &[u8], environment: &Environment) -> Option<Vec<Bytes>> {
    let head = read_file(path, HEAD)?;
    let (interpreter, option) = first_line(&head)?;
    if !environment.is_interpreter(interpreter) || option.is_some_and(has_no_site) {
        return None;
    }
    let option = option.map(<[u8]>::to_vec);
    Some(option.into_iter().chain([path.to_vec()]).collect())
}

/// Takes `#!/venv/bin/python -sE` apart, as the kernel does: everything after the path is one word.
fn first_line(head: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let end = head.iter().position(|byte| *byte == b'\n')?;
    let line = head[..end].strip_prefix(b"#!")?.trim_ascii();
    let blank = line.iter().position(u8::is_ascii_whitespace);
    let (path, option) = blank.map_or((line, &b""[..]), |at| (&line[..at], line[at..].trim_ascii()));
    let name = path.rsplit(|byte| *byte == b'/').next()?;
    (path.starts_with(b"/") && name.starts_with(b"python")).then_some((path, (!option.is_empty()).then_some(option)))
}

/// Whether `-S` is among the options of a word, which keeps unsnarl out; in doubt it is.
fn has_no_site(option: &[u8]) -> bool {
    let letters = option.split(|byte| b"WXcm".contains(byte)).next().unwrap_or_default();
    !option.starts_with(b"-") || option.starts_with(b"--") || letters.contains(&b'S')
}

/// Whether a module's top-level name is one that python finds, or one that the Python verb does not check.
fn is_module_there(request: &Request, environment: &Environment, environ: &[Bytes]) -> bool {
    let is_unchecked = request.python_flags.iter().any(|flag| b"EIPs".contains(flag))
        || variable(environ, b"PYTHONSAFEPATH").is_some_and(|value| !value.is_empty());
    if is_unchecked {
        return true;
    }
    let top = request.target.split(|byte| *byte == b'.').next().unwrap_or_default();
    let is_name = !top.is_empty() && top.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let directories = [&b"."[..], &environment.standard_library, &environment.site_packages];
    is_name
        && directories.iter().any(|directory| {
            let path = join(directory, top);
            is_file(&join(&path, b"__init__.py")) || is_file(&[&path[..], b".py"].concat())
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn first_lines_are_taken_apart_as_the_kernel_does() {
        assert_eq!(first_line(b"#!/v/bin/python\nx"), Some((&b"/v/bin/python"[..], None)));
        assert_eq!(
            first_line(b"#! /v/bin/python3.13 -sE  \nx"),
            Some((&b"/v/bin/python3.13"[..], Some(&b"-sE"[..])))
        );
        for head in [
            &b"#!/usr/bin/env python3\n"[..],
            b"#!/bin/sh\n'''exec' /v/bin/python \"$0\" \"$@\"\n",
            b"#!/v/bin/unsnarl --shim\n",
            b"#!python\n",
            b"#!/v/bin/python",
            b"#!\n",
            b"import os\n",
            b"",
        ] {
            assert_eq!(first_line(head), None, "{}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn an_option_that_keeps_unsnarl_out_is_told_from_a_value() {
        for option in [&b"-S"[..], b"-uS", b"--version", b"x"] {
            assert!(has_no_site(option));
        }
        for option in [&b"-s"[..], b"-Wignore::SyntaxWarning", b"-uXS"] {
            assert!(!has_no_site(option));
        }
    }

    #[test]
    fn a_name_with_a_dash_is_no_option() {
        assert_eq!(as_script(b"-u"), [b"--".to_vec(), b"-u".to_vec()]);
        assert_eq!(as_script(b"app.py"), [b"app.py".to_vec()]);
    }

    #[test]
    fn files_are_judged_by_what_python_does_with_them() {
        let directory = std::env::temp_dir().join(format!("unsnarl-run-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("project")).unwrap();
        let write = |name: &str, text: &[u8]| {
            let path = directory.join(name);
            std::fs::write(&path, text).unwrap();
            found(path.as_os_str().as_encoded_bytes())
        };
        assert_eq!(write("app.py", b"print(1)\n"), Found::Program);
        assert_eq!(write("empty.py", b""), Found::Program);
        assert_eq!(write("program", b"\x7fELF\x02"), Found::Doubtful);
        assert_eq!(
            write("archive", b"#!x\nPK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
            Found::Doubtful
        );
        let project = directory.join("project");
        let project = project.as_os_str().as_encoded_bytes();
        assert_eq!(found(project), Found::Doubtful);
        assert_eq!(write("project/__main__.py", b""), Found::Program);
        assert_eq!(found(project), Found::Program);
        assert_eq!(found(b"/nowhere/app.py"), Found::Nothing);
        assert_eq!(found(b"/dev/null"), Found::Program);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    proptest! {
        #[test]
        fn arbitrary_heads_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Some((_, Some(option))) = first_line(&bytes) {
                let _ = has_no_site(option);
            }
        }
    }
}
