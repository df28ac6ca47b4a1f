//! The runtime directory: where sockets, locks and facts are, if it may be trusted.
//!
//! Invariant: a [`RuntimeDirectory`] exists only for a directory that is no symlink, belongs to the effective user,
//! and is closed to all other users.

use crate::syscall::{Bytes, c_string, lstat, stat, variable};

/// A trusted runtime directory.
#[derive(Debug, Clone)]
pub(crate) struct RuntimeDirectory {
    /// Absolute path without a final slash.
    pub(crate) path: Bytes,
}

/// Least free space for a start, in bytes: facts are some ten kilobytes, those of large commands a few hundred.
const LEAST_BYTES: u64 = 1 << 16;

impl RuntimeDirectory {
    /// Finds or makes the directory; `None` if it must not be trusted.
    pub(crate) fn open(environ: &[Bytes]) -> Option<Self> {
        // SAFETY: always succeeds.
        let user = unsafe { libc::geteuid() };
        let path = Self::path(environ);
        if lstat(&path).is_none() {
            make(&path);
        }
        let found = lstat(&path)?;
        let is_private =
            found.st_mode & libc::S_IFMT == libc::S_IFDIR && found.st_uid == user && found.st_mode & 0o077 == 0;
        is_private.then_some(Self { path })
    }

    /// Returns the directory's path, trusted or not.
    pub(crate) fn path(environ: &[Bytes]) -> Bytes {
        // SAFETY: always succeeds.
        Self::path_of(environ, unsafe { libc::geteuid() })
    }

    fn path_of(environ: &[Bytes], user: libc::uid_t) -> Bytes {
        if let Some(dir) = variable(environ, b"UNSNARL_WARM_DIR").filter(|d| d.starts_with(b"/")) {
            return dir.to_vec();
        }
        // `su` does not change the variable: root would make its directory inside another user's.
        let is_own = |dir: &&[u8]| dir.starts_with(b"/") && stat(dir).is_some_and(|found| found.st_uid == user);
        if let Some(dir) = variable(environ, b"XDG_RUNTIME_DIR").filter(is_own) {
            return [dir, b"/unsnarl"].concat();
        }
        format!("/tmp/unsnarl-{user}").into_bytes()
    }

    /// Whether the file system has no room for what learning a command writes: it would be learned again and again.
    pub(crate) fn is_full(&self) -> bool {
        let name = c_string(&self.path);
        let mut found = core::mem::MaybeUninit::<libc::statvfs>::uninit();
        // SAFETY: a NUL-ended path; found is valid for writes.
        if unsafe { libc::statvfs(name.as_ptr(), found.as_mut_ptr()) } != 0 {
            return false;
        }
        // SAFETY: the call has filled it.
        let found = unsafe { found.assume_init() };
        // A file system without a limit (ramfs) counts no blocks and no files.
        let has_no_bytes = found.f_blocks != 0 && found.f_bavail.saturating_mul(found.f_frsize) < LEAST_BYTES;
        has_no_bytes || (found.f_files != 0 && found.f_favail == 0)
    }

    /// Returns the path of a file in the directory.
    pub(crate) fn file(&self, stem: &str, suffix: &str) -> Bytes {
        [&self.path[..], b"/", stem.as_bytes(), suffix.as_bytes()].concat()
    }
}

/// Makes a directory of mode 700, independent of the caller's file mode mask.
fn make(path: &[u8]) {
    let name = c_string(path);
    // SAFETY: a NUL-ended path, and a mask that is restored, in the only thread; the caller checks the result.
    unsafe {
        let mask = libc::umask(0o077);
        libc::mkdir(name.as_ptr(), 0o700);
        libc::umask(mask);
    }
}
