//! What this process inherited and hands over: descriptors, signals, limits.
//!
//! Invariant: everything is read before anything is changed.

use crate::place;
use crate::syscall::{c_string, close};
use core::ffi::c_int;
use unsnarl_wire::SoftLimit;

/// Highest signal number of Linux.
pub(crate) const LAST_SIGNAL: c_int = 64;

/// Ignored and blocked signals, bit `n - 1` for signal `n`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signals {
    pub(crate) ignored: u64,
    pub(crate) blocked: u64,
}

/// Read dispositions and mask.
pub(crate) fn signals() -> Signals {
    let mut ignored = 0;
    for signal in 1..=LAST_SIGNAL {
        let mut action = core::mem::MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: only asks; 32 and 33 belong to the C library and fail.
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

/// Every open descriptor but `own`; `None` if they cannot be listed, or if a
/// standard one is missing (the interpreter treats that case itself).
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

/// Soft limits.
pub(crate) fn soft_limits() -> Option<Vec<SoftLimit>> {
    let limits = place::limits()?;
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

/// Read the file mode creation mask.
pub(crate) fn umask() -> u32 {
    // SAFETY: always sound; nothing creates a file in between, there is one thread.
    unsafe {
        let mask = libc::umask(0o077);
        libc::umask(mask);
        mask
    }
}

/// Close everything from `first` on.
pub(crate) fn close_from(first: u32) {
    // SAFETY: numbers only; whoever calls this owns the whole table.
    if unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) } != 0 {
        (first..4096).for_each(|fd| close(fd.cast_signed()));
    }
}
