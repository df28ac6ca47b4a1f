//! The Python environment next to this executable, as far as its files show it without an interpreter.
//!
//! ```text
//! PREFIX/bin/unsnarl                                  this executable
//! PREFIX/bin/python → … → BASE/bin/python3.13         its interpreter; the last name has the version
//! PREFIX/lib/python3.13/site-packages/unsnarl.pth     the line that its start-up reads
//! BASE/lib/python3.13                                 the standard library
//! ```
//!
//! Must never: guess. A layout that is not this one (a distribution's own directories, a relocated standard library)
//! is none, and the Python verb then asks the interpreter.

use crate::syscall::{Bytes, access, canonical, stat, variable};

/// The environment.
#[derive(Debug)]
pub(super) struct Environment {
    /// Where the scripts are: `PREFIX/bin`.
    pub(super) scripts: Bytes,
    /// The interpreter, as the program sees it in `sys.executable`.
    pub(super) python: Bytes,
    /// `PREFIX/lib/python3.13/site-packages`
    pub(super) site_packages: Bytes,
    /// `BASE/lib/python3.13`
    pub(super) standard_library: Bytes,
}

/// The file in site-packages whose line boots the scheduler.
const HOOK_FILE: &[u8] = b"unsnarl.pth";

impl Environment {
    /// Finds the environment whose scripts are in `scripts`; the start-up of its interpreter reads unsnarl's file.
    pub(super) fn at(scripts: Bytes, environ: &[Bytes]) -> Option<Self> {
        // Each moves the directories of the interpreter.
        let is_moved = |name: &[u8]| variable(environ, name).is_some_and(|value| !value.is_empty());
        if is_moved(b"PYTHONHOME") || is_moved(b"PYTHONPLATLIBDIR") {
            return None;
        }
        let prefix = parent(&scripts)?;
        let python = join(&scripts, b"python");
        let real = canonical(&python)?;
        let base_scripts = parent(&real)?;
        let is_virtual = is_file(&join(prefix, b"pyvenv.cfg"));
        if !is_virtual && base_scripts != scripts {
            return None;
        }
        let version = name_of(&real);
        if !is_versioned(version) {
            return None;
        }
        let library = |prefix: &[u8]| join(&join(prefix, b"lib"), version);
        let site_packages = join(&library(prefix), b"site-packages");
        let standard_library = library(parent(base_scripts)?);
        let is_whole = is_file(&join(&site_packages, HOOK_FILE)) && is_executable(&python);
        is_whole.then_some(Self {
            scripts,
            python,
            site_packages,
            standard_library,
        })
    }

    /// Whether `path` is this environment's interpreter, by whatever name. All environments of one interpreter link to
    /// the same file, so the directory has to be the same as well.
    pub(super) fn is_interpreter(&self, path: &[u8]) -> bool {
        is_same_file(path, &self.python) && parent(path).is_some_and(|directory| is_same_file(directory, &self.scripts))
    }
}

/// Whether a name is `python3.` with a number, and `t` for a build without a GIL.
fn is_versioned(name: &[u8]) -> bool {
    name.strip_prefix(b"python3.").is_some_and(|minor| {
        let minor = minor.strip_suffix(b"t").unwrap_or(minor);
        !minor.is_empty() && minor.iter().all(u8::is_ascii_digit)
    })
}

/// Joins a directory and a name.
pub(super) fn join(directory: &[u8], name: &[u8]) -> Bytes {
    [directory, name].join(&b'/')
}

/// The directory of an absolute path; none for one at the root, which no environment is.
fn parent(path: &[u8]) -> Option<&[u8]> {
    let slash = path.iter().rposition(|byte| *byte == b'/')?;
    (slash > 0).then_some(&path[..slash])
}

fn name_of(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

fn is_same_file(one: &[u8], other: &[u8]) -> bool {
    match (stat(one), stat(other)) {
        (Some(one), Some(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}

/// Whether a path leads to a regular file.
pub(super) fn is_file(path: &[u8]) -> bool {
    stat(path).is_some_and(|found| found.st_mode & libc::S_IFMT == libc::S_IFREG)
}

/// Whether a path leads to a regular file that this process may execute.
pub(super) fn is_executable(path: &[u8]) -> bool {
    is_file(path) && access(path, libc::X_OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_in_the_last_name() {
        for name in ["python3.11", "python3.15", "python3.13t"] {
            assert!(is_versioned(name.as_bytes()), "{name}");
        }
        for name in [
            "python",
            "python3",
            "python3.",
            "python3.t",
            "python3.13d",
            "pypy3.11",
            "python3.1x",
        ] {
            assert!(!is_versioned(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn paths_are_taken_apart() {
        assert_eq!(parent(b"/venv/bin/python"), Some(&b"/venv/bin"[..]));
        assert_eq!(parent(b"/python"), None);
        assert_eq!(parent(b"python"), None);
        assert_eq!(name_of(b"/usr/bin/python3.13"), b"python3.13");
        assert_eq!(join(b"/a", b"b"), b"/a/b");
    }

    #[test]
    fn a_directory_without_an_interpreter_is_no_environment() {
        assert!(Environment::at(b"/nowhere/bin".to_vec(), &[]).is_none());
        assert!(Environment::at(b"/proc/self".to_vec(), &[]).is_none());
    }
}
