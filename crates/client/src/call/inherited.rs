//! The inherited state that the client hands over: descriptors, signals, limits.
//!
//! Invariant: the client reads all of it before it changes any.

use crate::syscall::{LAST_SIGNAL, c_string, close_from, close_range, limits};
use core::ffi::c_int;
use unsnarl_wire::SoftLimit;

/// Ignored and blocked signals, bit `n - 1` for signal `n`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signals {
    pub(crate) ignored: u64,
    pub(crate) blocked: u64,
}

/// Reads dispositions and mask.
pub(crate) fn signals() -> Signals {
    let mut ignored = 0;
    for signal in 1..=LAST_SIGNAL {
        let mut action = core::mem::MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: only reads; 32 and 33 belong to the C library, and the call fails for them.
        let rc = unsafe { libc::sigaction(signal, core::ptr::null(), action.as_mut_ptr()) };
        // SAFETY: all zeroes are a valid sigaction.
        let is_ignored = rc == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN;
        ignored |= u64::from(is_ignored) << (signal - 1);
    }
    let mut mask = core::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    let mut blocked = 0;
    // SAFETY: mask is valid; sigismember reads it only.
    unsafe {
        libc::sigprocmask(libc::SIG_BLOCK, core::ptr::null(), mask.as_mut_ptr());
        for signal in 1..=LAST_SIGNAL {
            blocked |= u64::from(libc::sigismember(mask.as_ptr(), signal) == 1) << (signal - 1);
        }
    }
    Signals { ignored, blocked }
}

/// Returns every open descriptor except `own`; `None` if they cannot be listed, or if a standard one is missing (the
/// interpreter handles that case itself).
pub(crate) fn descriptors(own: &[c_int]) -> Option<Vec<c_int>> {
    let path = c_string(b"/proc/self/fd");
    // SAFETY: a NUL-ended path.
    let dir = unsafe { libc::opendir(path.as_ptr()) };
    if dir.is_null() {
        return None;
    }
    // SAFETY: dir is open.
    let dir_fd = unsafe { libc::dirfd(dir) };
    let mut found = Vec::new();
    loop {
        // SAFETY: dir is open, and this thread is the only one to read it.
        let entry = unsafe { libc::readdir(dir) };
        if entry.is_null() {
            break;
        }
        // SAFETY: the entry is valid until the next readdir, its name NUL-ended.
        let name = unsafe { core::ffi::CStr::from_ptr((*entry).d_name.as_ptr()) };
        if let Some(fd) = name.to_str().ok().and_then(|n| n.parse::<c_int>().ok()) {
            found.push(fd);
        }
    }
    // SAFETY: dir is open and not used afterwards.
    unsafe { libc::closedir(dir) };
    found.retain(|fd| *fd != dir_fd && !own.contains(fd));
    found.sort_unstable();
    found.starts_with(&[0, 1, 2]).then_some(found)
}

/// Returns the soft limits.
pub(crate) fn soft_limits() -> Option<Vec<SoftLimit>> {
    let limits = limits()?;
    Some(
        limits
            .into_iter()
            .map(|(resource, limit)| SoftLimit {
                resource,
                soft: limit.rlim_cur,
            })
            .collect(),
    )
}

/// Closes the inherited descriptors, so that only the worker holds them. A process that waits for the end of a pipe,
/// or for a lock, then waits for the command and not for this process.
pub(crate) fn close_all_but(kept: [c_int; 3]) {
    let mut kept: Vec<u32> = kept.iter().filter_map(|fd| u32::try_from(*fd).ok()).collect();
    kept.sort_unstable();
    let mut first = 0;
    for fd in kept {
        if fd > first {
            close_range(first, fd - 1);
        }
        first = fd + 1;
    }
    close_from(first);
}

/// Whether no process waits for the end of what a descriptor leads to.
pub(crate) fn is_file_or_device(fd: c_int) -> bool {
    let mut found = core::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: found is valid for writes, and read only where the call has filled it.
    unsafe {
        libc::fstat(fd, found.as_mut_ptr()) == 0
            && [libc::S_IFREG, libc::S_IFCHR].contains(&(found.assume_init().st_mode & libc::S_IFMT))
    }
}
