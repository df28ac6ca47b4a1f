//! Starts a server in the background, once per key.
//!
//! `<key>.lock` is locked by the process that starts the server of that key, and by the server. The lock passes by
//! inheritance from here through `unsnarl.warm.managing.begin` to the server, so at no moment could a second server start.
//!
//! Invariant: the caller never waits for a server here.

use crate::server::process_state::{Session, own_directory};
use crate::server::runtime_directory::RuntimeDirectory;
use crate::syscall::{Bytes, LAST_SIGNAL, c_string, close_from, exec, exit, open};
use crate::target::Target;
use core::ffi::c_int;

/// Everything that a starting server is given.
pub(crate) struct Start<'a> {
    pub(crate) directory: &'a RuntimeDirectory,
    pub(crate) target: &'a Target,
    pub(crate) command_id: &'a str,
    pub(crate) key: &'a [u8],
    pub(crate) key_id: &'a str,
    pub(crate) session: Session,
    pub(crate) tty: &'a str,
    pub(crate) environ: &'a [Bytes],
}

/// Descriptors under which the first step finds lock and key.
const LOCK_FD: c_int = 3;
const KEY_FD: c_int = 4;

/// Seconds between a start that failed and the next one.
const COOL_DOWN_S: i64 = 2;

/// Starts a server unless another process is starting it, or the caller may have too few descriptors open for that.
pub(crate) fn in_background(start: &Start<'_>) {
    if !has_descriptors() {
        return;
    }
    let Some(lock) = lock(start, true) else { return };
    // SAFETY: one thread; the child only makes system calls and execs.
    match unsafe { libc::fork() } {
        0 => {
            leave_job(start.session);
            // SAFETY: as above.
            if unsafe { libc::fork() } == 0 {
                become_server(start, lock);
            }
            exit(0)
        }
        child => {
            crate::syscall::close(lock);
            // SAFETY: waits for the first child, which exits immediately.
            unsafe { libc::waitpid(child, core::ptr::null_mut(), 0) };
        }
    }
}

/// Fewest descriptors with which a server is learned and started.
const DESCRIPTORS: u64 = 64;

fn has_descriptors() -> bool {
    const NOFILE: u32 = libc::RLIMIT_NOFILE as _; // the type is the C library's
    let limit = crate::syscall::limits().and_then(|limits| {
        let found = limits.into_iter().find(|(resource, _)| *resource == NOFILE);
        found.map(|(_, limit)| limit.rlim_cur)
    });
    limit.is_some_and(|limit| limit >= DESCRIPTORS)
}

/// Becomes the server of a key that is known only now; this process already runs in the background.
pub(crate) fn in_place(start: &Start<'_>) -> ! {
    for _ in 0..STEPS {
        if let Some(lock) = lock(start, false) {
            become_server(start, lock);
        }
        // SAFETY: no descriptors, a number.
        unsafe { libc::poll(core::ptr::null_mut(), 0, STEP_MS) };
    }
    exit(0)
}

/// How long a process that has learned waits for the lock of the new key: a call that has just read what was learned
/// may have started a server first, which gives way (`_may_learn` in `unsnarl.warm.managing.begin`).
const STEPS: u32 = 200;
const STEP_MS: c_int = 10;

fn lock(start: &Start<'_>, cools_down: bool) -> Option<c_int> {
    let path = start.directory.file(start.key_id, ".lock");
    if !cools_down && is_open_at(LOCK_FD, &path) {
        // A server that replaces itself handed its lock down.
        return Some(LOCK_FD);
    }
    let fd = open(&path, libc::O_RDWR | libc::O_CREAT | libc::O_NOFOLLOW, 0o600);
    if fd < 0 {
        return None;
    }
    // SAFETY: fd is open; found and times are valid.
    unsafe {
        // Independent of the caller's file mode mask.
        libc::fchmod(fd, 0o600);
        let mut found: libc::stat = core::mem::zeroed();
        let mut now: libc::timespec = core::mem::zeroed();
        libc::fstat(fd, &mut found);
        libc::clock_gettime(libc::CLOCK_REALTIME, &mut now);
        let age = now.tv_sec - found.st_mtime;
        let is_cooling = cools_down && found.st_size > 0 && (0..COOL_DOWN_S).contains(&age);
        // A lock that cannot be signed, as on a full disk, would never cool down: each call would start a server
        // again. The lock file may also have been swept away by now.
        let is_taken = is_cooling || libc::flock(fd, libc::LOCK_EX | libc::LOCK_NB) != 0;
        if is_taken || !is_open_at(fd, &path) || !sign(fd) {
            crate::syscall::close(fd);
            return None;
        }
    }
    Some(fd)
}

/// Records a start in its lock file, and which process makes it: the call itself, which runs plainly from then on
/// (`unsnarl.warm.managing.plain_call`).
fn sign(lock: c_int) -> bool {
    let words = format!("started {}\n", std::process::id());
    // SAFETY: the buffer is valid for its length. The disposition is either default or ignored so far: there
    // is no handler yet. It would end the caller where that may not write files at all.
    let written = unsafe {
        let before = libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        let written = libc::pwrite(lock, words.as_ptr().cast(), words.len(), 0);
        libc::signal(libc::SIGXFSZ, before);
        written
    };
    usize::try_from(written) == Ok(words.len())
}

fn is_open_at(fd: c_int, path: &[u8]) -> bool {
    // SAFETY: found is valid for writes; a wrong number only fails.
    let (rc, found) = unsafe {
        let mut found: libc::stat = core::mem::zeroed();
        (libc::fstat(fd, &mut found), found)
    };
    rc == 0 && crate::syscall::lstat(path).is_some_and(|s| (s.st_dev, s.st_ino) == (found.st_dev, found.st_ino))
}

/// Leaves the caller's job, and its session if there is no terminal.
fn leave_job(session: Session) {
    // SAFETY: numbers only; the child is no group leader.
    unsafe {
        match session {
            Session::Shared(_) => libc::setpgid(0, 0),
            Session::Detached => libc::setsid(),
        };
    }
}

fn become_server(start: &Start<'_>, lock: c_int) -> ! {
    let key = memory_file(start.key);
    let log = open(
        &start.directory.file(start.command_id, ".log"),
        libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_NOFOLLOW,
        0o600,
    );
    // SAFETY: numbers only; a wrong descriptor only fails.
    unsafe { libc::fchmod(log, 0o600) };
    let null = open(b"/dev/null", libc::O_RDONLY, 0);
    if key < 0 || log < 0 || null < 0 {
        exit(1);
    }
    arrange([null, log, log, lock, key]);
    reset_signals();
    // The directory and the file mode mask stay the caller's: imports may ask for them.
    let Some(bin) = own_directory() else { exit(1) };
    let python = [&bin[..], b"/python"].concat();
    let argv = arguments(start, &python, &bin);
    exec(&python, &argv, start.environ);
    exit(127)
}

fn arguments(start: &Start<'_>, python: &[u8], bin: &[u8]) -> Vec<Bytes> {
    let session = match start.session {
        Session::Shared(_) => "shared",
        Session::Detached => "detached",
    };
    let kind = start.target.kind_word();
    let mut argv: Vec<Bytes> = vec![python.to_vec()];
    argv.extend(["-P", "-B", "-m", "unsnarl.warm.managing.begin"].map(|s| s.as_bytes().to_vec()));
    argv.push([bin, b"/unsnarl"].concat());
    argv.push(start.directory.path.clone());
    argv.extend([start.command_id, start.key_id, session, start.tty].map(|s| s.as_bytes().to_vec()));
    argv.push(kind);
    argv.push(start.target.file.clone());
    argv.push(start.target.python.clone());
    argv.extend(start.target.options.iter().cloned());
    argv
}

/// Makes an anonymous file that holds the key, which must not touch a disk.
fn memory_file(contents: &[u8]) -> c_int {
    let name = c_string(b"unsnarl-key");
    // SAFETY: a NUL-ended name, and a buffer valid for its length.
    unsafe {
        let fd = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
        let n = libc::pwrite(fd, contents.as_ptr().cast(), contents.len(), 0);
        if usize::try_from(n) == Ok(contents.len()) {
            fd
        } else {
            -1
        }
    }
}

/// Moves these descriptors to 0, 1, 2, [`LOCK_FD`], [`KEY_FD`] and closes all others.
fn arrange(fds: [c_int; 5]) {
    // SAFETY: moves descriptors out of the way, then to their places.
    unsafe {
        let high = fds.map(|fd| libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 10));
        for (to, from) in (0..=KEY_FD).zip(high) {
            if libc::dup2(from, to) < 0 {
                // Without the log in its place, this process would write where the caller's command does.
                exit(1);
            }
        }
    }
    const { assert!(LOCK_FD == 3 && KEY_FD == 4) };
    close_from(5);
}

fn reset_signals() {
    // SAFETY: default dispositions and an empty mask are always valid.
    unsafe {
        for signal in 1..=LAST_SIGNAL {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = core::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, core::ptr::null_mut());
    }
}
