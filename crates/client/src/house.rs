//! The directory of sockets, locks and records, and whether it may be trusted.
//!
//! Invariant: a [`House`] exists only for a directory that is no symlink,
//! belongs to the effective user, and that nobody else may enter.

use crate::syscall::{Bytes, c_string, lstat, variable};

/// A trusted runtime directory.
#[derive(Debug, Clone)]
pub(crate) struct House {
    /// Absolute path without a final slash.
    pub(crate) path: Bytes,
}

impl House {
    /// Find or make the directory; `None` if it must not be trusted.
    pub(crate) fn open(environ: &[Bytes]) -> Option<Self> {
        let path = Self::place(environ);
        if lstat(&path).is_none() {
            let name = c_string(&path);
            // SAFETY: a NUL-ended path; the result is judged by the check below.
            unsafe { libc::mkdir(name.as_ptr(), 0o700) };
        }
        let found = lstat(&path)?;
        // SAFETY: always succeeds.
        let user = unsafe { libc::geteuid() };
        let is_private =
            found.st_mode & libc::S_IFMT == libc::S_IFDIR && found.st_uid == user && found.st_mode & 0o077 == 0;
        is_private.then_some(Self { path })
    }

    fn place(environ: &[Bytes]) -> Bytes {
        if let Some(dir) = variable(environ, b"UNSNARL_WARM_DIR").filter(|d| d.starts_with(b"/")) {
            return dir.to_vec();
        }
        if let Some(dir) = variable(environ, b"XDG_RUNTIME_DIR").filter(|d| d.starts_with(b"/")) {
            return [dir, b"/unsnarl"].concat();
        }
        // SAFETY: always succeeds.
        format!("/tmp/unsnarl-{}", unsafe { libc::geteuid() }).into_bytes()
    }

    /// Path of a file in it.
    pub(crate) fn file(&self, stem: &str, suffix: &str) -> Bytes {
        [&self.path[..], b"/", stem.as_bytes(), suffix.as_bytes()].concat()
    }
}
