//! The system calls of the client, with their results as Rust values.
//!
//! Invariant: this file contains the `unsafe` of plain system calls, and decides nothing.

use core::ffi::{CStr, c_char, c_int};
use std::ffi::CString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Bytes of a path, argument or variable.
pub(crate) type Bytes = Vec<u8>;

/// Highest signal number of Linux.
pub(crate) const LAST_SIGNAL: c_int = 64;

/// Copies a NULL-terminated array of C strings.
///
/// # Safety
/// `array` points to pointers to NUL-terminated strings, the last one NULL.
pub(crate) unsafe fn strings(array: *const *const c_char) -> Vec<Bytes> {
    let mut out = Vec::new();
    let mut at = array;
    // SAFETY: by the contract each element up to NULL is a valid string.
    unsafe {
        while !(*at).is_null() {
            out.push(CStr::from_ptr(*at).to_bytes().to_vec());
            at = at.add(1);
        }
    }
    out
}

/// Returns a C string, cut at an inner NUL (argv and environ contain none).
pub(crate) fn c_string(bytes: &[u8]) -> CString {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).unwrap_or_default()
}

/// `errno` of the last failed call.
pub(crate) fn errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// `open(2)`; negative on failure.
pub(crate) fn open(path: &[u8], flags: c_int, mode: libc::mode_t) -> c_int {
    let path = c_string(path);
    // SAFETY: path is a NUL-ended string; mode is read only with O_CREAT.
    unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, mode) }
}

/// Removes a file, if it exists.
pub(crate) fn unlink(path: &[u8]) {
    let name = c_string(path);
    // SAFETY: a NUL-ended name.
    unsafe { libc::unlink(name.as_ptr()) };
}

/// `close(2)`; the result is ignored, since nothing is written through the descriptor.
pub(crate) fn close(fd: c_int) {
    // SAFETY: fd is a number; a wrong one only fails.
    unsafe { libc::close(fd) };
}

/// Reads a small file whole, or its first `limit` bytes.
pub(crate) fn read_file(path: &[u8], limit: usize) -> Option<Bytes> {
    let fd = open(path, libc::O_RDONLY | libc::O_NOCTTY, 0);
    if fd < 0 {
        return None;
    }
    let mut out = vec![0; limit];
    let mut len = 0;
    loop {
        // SAFETY: the rest of the buffer is valid for writes of its length.
        let n = unsafe { libc::read(fd, out[len..].as_mut_ptr().cast(), limit - len) };
        match usize::try_from(n) {
            Ok(0) | Err(_) => break,
            Ok(n) => len += n,
        }
        if len == limit {
            break;
        }
    }
    close(fd);
    out.truncate(len);
    Some(out)
}

/// Reads the last `limit` bytes of a regular file, or all of a shorter one.
pub(crate) fn read_tail(path: &[u8], limit: usize) -> Option<Bytes> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = std::fs::File::open(std::ffi::OsStr::from_bytes(path)).ok()?;
    let size = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(limit as u64))).ok()?;
    let mut out = Vec::new();
    file.take(limit as u64).read_to_end(&mut out).ok()?;
    Some(out)
}

/// `realpath(3)`: the path without links.
pub(crate) fn canonical(path: &[u8]) -> Option<Bytes> {
    let path = std::fs::canonicalize(std::ffi::OsStr::from_bytes(path)).ok()?;
    Some(path.into_os_string().into_vec())
}

/// `access(2)`: whether this process may use a file in this way.
pub(crate) fn access(path: &[u8], mode: c_int) -> bool {
    let path = c_string(path);
    // SAFETY: a NUL-ended name.
    unsafe { libc::access(path.as_ptr(), mode) == 0 }
}

/// `stat(2)`.
pub(crate) fn stat(path: &[u8]) -> Option<libc::stat> {
    stat_with(path, 0)
}

/// `lstat(2)`.
pub(crate) fn lstat(path: &[u8]) -> Option<libc::stat> {
    stat_with(path, libc::AT_SYMLINK_NOFOLLOW)
}

fn stat_with(path: &[u8], flags: c_int) -> Option<libc::stat> {
    let path = c_string(path);
    let mut out = core::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: path is NUL-ended, out is valid for writes.
    let rc = unsafe { libc::fstatat(libc::AT_FDCWD, path.as_ptr(), out.as_mut_ptr(), flags) };
    // SAFETY: the call succeeded and has filled it.
    (rc == 0).then(|| unsafe { out.assume_init() })
}

/// `readlink(2)` of a path shorter than 4096 bytes.
pub(crate) fn readlink(path: &[u8]) -> Option<Bytes> {
    let path = c_string(path);
    let mut out = vec![0u8; 4096];
    // SAFETY: out is valid for writes of its length.
    let n = unsafe { libc::readlink(path.as_ptr(), out.as_mut_ptr().cast(), out.len()) };
    let n = usize::try_from(n).ok().filter(|n| *n < out.len())?;
    out.truncate(n);
    Some(out)
}

/// `execve(2)`; returns only on failure.
pub(crate) fn exec(path: &[u8], argv: &[Bytes], environ: &[Bytes]) {
    let path = c_string(path);
    let argv: Vec<CString> = argv.iter().map(|a| c_string(a)).collect();
    let environ: Vec<CString> = environ.iter().map(|v| c_string(v)).collect();
    let pointers = |strings: &[CString]| -> Vec<*const c_char> {
        strings.iter().map(|s| s.as_ptr()).chain([core::ptr::null()]).collect()
    };
    let (argv, environ) = (pointers(&argv), pointers(&environ));
    // SAFETY: both arrays are NULL-ended and their strings outlive the call.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), environ.as_ptr()) };
}

/// Exits immediately, without destructors or flushing: there is nothing to flush.
pub(crate) fn exit(status: c_int) -> ! {
    // SAFETY: always sound.
    unsafe { libc::_exit(status) }
}

/// Writes a message to standard error, as far as possible.
pub(crate) fn complain(message: &str) {
    // SAFETY: the buffer is valid for reads of its length.
    unsafe { libc::write(2, message.as_ptr().cast(), message.len()) };
}

/// Value of a variable in an `environ` array.
pub(crate) fn variable<'a>(environ: &'a [Bytes], name: &[u8]) -> Option<&'a [u8]> {
    environ
        .iter()
        .find_map(|entry| entry.strip_prefix(name)?.strip_prefix(b"="))
}

/// Reads the file mode creation mask.
pub(crate) fn umask() -> u32 {
    // SAFETY: always sound; nothing creates a file in between, there is one thread.
    unsafe {
        let mask = libc::umask(0o077);
        libc::umask(mask);
        mask
    }
}

/// All resource limits, numbers as in asm-generic/resource.h.
pub(crate) fn limits() -> Option<Vec<(u32, libc::rlimit)>> {
    (0..16u32)
        .map(|resource| {
            let mut limit = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            // SAFETY: limit is valid for writes.
            (unsafe { libc::getrlimit(resource as _, &mut limit) } == 0).then_some((resource, limit))
        })
        .collect()
}

/// Closes every descriptor from `first` on.
pub(crate) fn close_from(first: u32) {
    close_range(first, u32::MAX);
}

/// Closes the descriptors of a range.
pub(crate) fn close_range(first: u32, last: u32) {
    // SAFETY: numbers only; the caller owns the whole descriptor table.
    if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } != 0 {
        (first..=last.min(4095)).for_each(|fd| close(fd.cast_signed()));
    }
}
