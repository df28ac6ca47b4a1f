//! The state of this process that a worker could not take over by itself.
//!
//! A request carries everything that the kernel lets a process change at will (limits, mask, directory). The server's
//! key contains everything else. A client of the same key starts the server, so the server was born with the same
//! state. That is how a worker has exactly the privileges of its caller, without a check that could be forgotten.
//!
//! Invariant: if a part of the state cannot be read, the command runs plainly.

use crate::syscall::{Bytes, close, limits, open, read_file, stat};
use core::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// How the worker relates to the caller's terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Session {
    /// The caller has a controlling terminal: the server lives in this session.
    Shared(i32),
    /// The caller has none: one server serves all such callers.
    Detached,
}

/// Returns in which session a server for this process must live.
pub(crate) fn session() -> Option<Session> {
    let fd = open(b"/dev/tty", libc::O_RDWR | libc::O_NOCTTY, 0);
    if fd < 0 {
        return Some(Session::Detached);
    }
    close(fd);
    // SAFETY: always sound. It returns zero if the leader is in another pid namespace.
    let leader = unsafe { libc::getsid(0) };
    (leader > 0).then_some(Session::Shared(leader))
}

/// Returns the state as a text, or `None` if this process must not use a server.
pub(crate) fn describe() -> Option<String> {
    let mut out = String::with_capacity(1024);
    identity(&mut out)?;
    privileges(&mut out)?;
    namespaces(&mut out)?;
    scheduling(&mut out);
    limits_at_birth(&mut out)?;
    for file in [
        "/proc/self/cgroup",
        "/proc/self/attr/current",
        "/proc/self/oom_score_adj",
        "/proc/self/coredump_filter",
    ] {
        let text = read_file(file.as_bytes(), 4096).unwrap_or_default();
        let _ = writeln!(out, "{file}={}", String::from_utf8_lossy(&text));
    }
    Some(out)
}

fn identity(out: &mut String) -> Option<()> {
    let (mut user, mut group) = ([0; 3], [0; 3]);
    // SAFETY: three valid pointers each.
    unsafe {
        libc::getresuid(&mut user[0], &mut user[1], &mut user[2]);
        libc::getresgid(&mut group[0], &mut group[1], &mut group[2]);
    }
    let is_plain_user = user.iter().all(|id| *id == user[0]) && group.iter().all(|id| *id == group[0]);
    // SAFETY: always sound.
    let is_secure = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    if !is_plain_user || is_secure {
        return None;
    }
    let mut groups = vec![0; 65536];
    // SAFETY: the buffer holds NGROUPS_MAX entries, the most there can be.
    let n = unsafe { libc::getgroups(65536, groups.as_mut_ptr()) };
    groups.truncate(usize::try_from(n).ok()?);
    let _ = writeln!(out, "id={} {} {groups:?}", user[0], group[0]);
    Some(())
}

/// Appends the capabilities. A seccomp filter or a sandbox cannot be compared: no server then.
fn privileges(out: &mut String) -> Option<()> {
    // SAFETY: these options take and fill no memory.
    let (seccomp, nnp, secure_bits) = unsafe {
        (
            libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0),
            libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
            libc::prctl(libc::PR_GET_SECUREBITS, 0, 0, 0, 0),
        )
    };
    if seccomp > 0 || nnp != 0 {
        return None;
    }
    // _LINUX_CAPABILITY_VERSION_3 (linux/capability.h): two words of three sets.
    let mut header = [0x2008_0522u32, 0];
    let mut sets = [0u32; 6];
    // SAFETY: the two structures have the layout of version 3.
    let rc = unsafe { libc::syscall(libc::SYS_capget, header.as_mut_ptr(), sets.as_mut_ptr()) };
    if rc != 0 {
        return None;
    }
    let _ = write!(out, "caps={sets:x?} {:x} {:x}", bounding_set(), ambient_set(&sets));
    // SAFETY: KEYCTL_GET_KEYRING_ID (0) of KEY_SPEC_SESSION_KEYRING (-3), without creating one.
    let keyring = unsafe { libc::syscall(libc::SYS_keyctl, 0, -3, 0) };
    let _ = writeln!(out, " keyring={keyring} securebits={secure_bits}");
    Some(())
}

/// Returns the bounding set, read one by one up to the kernel's last capability.
fn bounding_set() -> u64 {
    let mut set = 0;
    for cap in 0..64 {
        // SAFETY: only reads, and takes no memory.
        match unsafe { libc::prctl(libc::PR_CAPBSET_READ, cap, 0, 0, 0) } {
            1 => set |= 1 << cap,
            0 => {}
            _ => break,
        }
    }
    set
}

/// Returns the ambient set. Every member is inheritable too (capabilities(7)), so usually none has to be read.
fn ambient_set(sets: &[u32; 6]) -> u64 {
    let inheritable = u64::from(sets[2]) | u64::from(sets[5]) << 32;
    (0..64)
        .filter(|cap| inheritable >> cap & 1 == 1)
        .filter(|cap| {
            // SAFETY: only reads, and takes no memory.
            let is_set = unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_IS_SET, *cap, 0, 0) };
            is_set == 1
        })
        .map(|cap: u64| 1 << cap)
        .sum()
}

fn namespaces(out: &mut String) -> Option<()> {
    for name in ["mnt", "pid", "net", "user", "ipc", "uts", "cgroup", "time"] {
        let inode = stat(format!("/proc/self/ns/{name}").as_bytes()).map(|s| s.st_ino);
        let _ = write!(out, "{name}={inode:?} ");
    }
    let root = stat(b"/")?;
    let _ = writeln!(out, "root={}:{}:{}", root.st_dev, root.st_ino, mount_of_root()?);
    Some(())
}

/// Returns the id of the mount that this process has as its root. A chroot into a bind mount of `/` has the device and
/// the inode of `/` itself, and other files beneath. A server holds its root's mount, so no other mount can get the
/// same id while the server lives.
fn mount_of_root() -> Option<u64> {
    let root = open(b"/", libc::O_PATH | libc::O_DIRECTORY, 0);
    let text = read_file(format!("/proc/self/fdinfo/{root}").as_bytes(), 4096);
    close(root);
    parse_mount(&text?)
}

/// Parses the line `mnt_id:` of a file in /proc/PID/fdinfo (proc(5)).
fn parse_mount(text: &[u8]) -> Option<u64> {
    let mut lines = text.split(|b| *b == b'\n');
    let id = lines.find_map(|line| line.strip_prefix(b"mnt_id:"))?;
    core::str::from_utf8(id.trim_ascii()).ok()?.parse().ok()
}

fn scheduling(out: &mut String) {
    let mut cpus = [0u64; 128];
    // struct sched_attr of sched_setattr(2): policy, priority, deadline, bounds of utilization.
    let mut attributes = [0u64; 7];
    // SAFETY: the buffers are valid for their sizes; the other calls take numbers.
    let (nice, policy, affinity, io, slack, personality) = unsafe {
        (
            libc::getpriority(libc::PRIO_PROCESS, 0),
            libc::syscall(
                libc::SYS_sched_getattr,
                0,
                attributes.as_mut_ptr(),
                size_of_val(&attributes),
                0,
            ),
            libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&cpus), cpus.as_mut_ptr()),
            libc::syscall(libc::SYS_ioprio_get, 1, 0),
            libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0),
            libc::personality(0xffff_ffff),
        )
    };
    let words = usize::try_from(affinity).unwrap_or(0) / 8;
    let _ = writeln!(
        out,
        "sched={nice} {policy} {attributes:x?} {io} {slack} {personality} {:x?}",
        &cpus[..words.min(128)]
    );
}

/// Appends the hard limits, and the only soft limit that counts just when a process starts, that of the stack. The
/// kernel leaves room for the first stack by it, and glibc takes the size of all other stacks from it (2.34,
/// `__pthread_early_init`).
fn limits_at_birth(out: &mut String) -> Option<()> {
    const STACK: u32 = libc::RLIMIT_STACK as _; // the type is the C library's
    for (resource, limit) in limits()? {
        let _ = write!(out, "{resource}:{} ", limit.rlim_max);
        if resource == STACK {
            let _ = write!(out, "soft:{} ", limit.rlim_cur);
        }
    }
    out.push('\n');
    Some(())
}

/// Returns which of the standard streams are terminals, as three digits; and after a colon the size of these terminals,
/// unless they are of several sizes.
pub(crate) fn terminals() -> String {
    // SAFETY: any number may be asked.
    let is_terminal = |fd: &i32| unsafe { libc::isatty(*fd) } == 1;
    let mut text: String = (0..3).map(|fd| if is_terminal(&fd) { '1' } else { '0' }).collect();
    let mut sizes = (0..3).filter(is_terminal).map(size_of_terminal);
    if let Some(Some(first)) = sizes.next()
        && sizes.all(|size| size == Some(first))
    {
        let _ = write!(text, ":{}", first.map(|number| number.to_string()).join("x"));
    }
    text
}

/// Returns rows, columns, and the width and height in pixels.
fn size_of_terminal(fd: i32) -> Option<[u16; 4]> {
    // SAFETY: the structure is valid for writes, and zeroes are a size.
    let (rc, size) = unsafe {
        let mut size: libc::winsize = core::mem::zeroed();
        (libc::ioctl(fd, libc::TIOCGWINSZ, &raw mut size), size)
    };
    (rc == 0).then_some([size.ws_row, size.ws_col, size.ws_xpixel, size.ws_ypixel])
}

/// Returns the directory of this executable; where `/proc` is not mounted, of the path by which it was executed.
pub(crate) fn own_directory() -> Option<Bytes> {
    let exe = crate::syscall::readlink(b"/proc/self/exe").or_else(executed_path)?;
    let slash = exe.iter().rposition(|b| *b == b'/')?;
    Some(exe[..slash].to_vec())
}

/// Returns the path that was given to `execve(2)`, with all links followed.
fn executed_path() -> Option<Bytes> {
    // SAFETY: the kernel's auxiliary vector is read; 0 if it has no such entry.
    let address = unsafe { libc::getauxval(libc::AT_EXECFN) };
    if address == 0 {
        return None;
    }
    let pointer = core::ptr::with_exposed_provenance::<libc::c_char>(usize::try_from(address).ok()?);
    // SAFETY: the kernel has put a string with an end there, which lives as long as the process.
    let path = unsafe { core::ffi::CStr::from_ptr(pointer) };
    let path = std::fs::canonicalize(std::ffi::OsStr::from_bytes(path.to_bytes())).ok()?;
    Some(path.into_os_string().into_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executed_path_is_that_of_the_executable() {
        assert_eq!(executed_path(), crate::syscall::readlink(b"/proc/self/exe"));
    }

    #[test]
    fn the_mount_of_the_root_is_found() {
        assert_eq!(parse_mount(b"pos:\t0\nflags:\t0\nmnt_id:\t27\nino:\t2\n"), Some(27));
        assert_eq!(parse_mount(b"pos:\t0\nflags:\t0\n"), None);
        assert_eq!(parse_mount(b"mnt_id:\n"), None);
        assert!(mount_of_root().is_some());
    }
}
