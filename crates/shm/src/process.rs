//! Process identity: a process id with a start time, and whether that process is still running.
//!
//! The start time is field 22 of /proc/PID/stat, so a reused id is another process. A zombie counts as dead: it holds
//! nothing any more.
//!
//! Invariant: a running process is never reported dead. Where /proc cannot be read, a process is reported alive while
//! its id exists. In another pid namespace than that of its memory, it is always reported alive.

use rustix::fs::{Mode, OFlags};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

static EPOCH: AtomicU32 = AtomicU32::new(1);
static OWN: AtomicU64 = AtomicU64::new(0);
/// The pid namespace; UNKNOWN until it is read, and again in a forked child.
static NAMESPACE: AtomicU64 = AtomicU64::new(UNKNOWN);
/// The pid namespace in which this process, or the ancestor it was forked from, called `watch_forks`.
static HOME: AtomicU64 = AtomicU64::new(UNKNOWN);
const UNKNOWN: u64 = u64::MAX;

/// A number that differs between a process and its forked children. Never 0.
#[inline]
#[must_use]
pub fn epoch() -> u32 {
    EPOCH.load(Ordering::Relaxed)
}

/// The mutex around the state that threads of one process share in this crate.
static ALONE: Mutex<()> = Mutex::new(());

/// Locks out other threads and forks for a few instructions or system calls. Meanwhile no other thread of this
/// process is inside, and no thread forks. So no child finds state locked or half-changed.
///
/// The caller must not wait, run Python or call this function again inside.
pub fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The guard of a thread that is forking.
struct Forking(UnsafeCell<Option<MutexGuard<'static, ()>>>);

// SAFETY: touched only by the thread that holds `ALONE`, and in the child by the only one there is.
unsafe impl Sync for Forking {}

static FORKING: Forking = Forking(UnsafeCell::new(None));

/// Registers fork handlers that count forks and keep them out of [`alone`]. Must be called before any other function
/// of this crate.
pub fn watch_forks() {
    extern "C" fn before() {
        let guard = alone();
        // SAFETY: this thread holds `ALONE`.
        unsafe { *FORKING.0.get() = Some(guard) };
    }
    extern "C" fn in_parent() {
        // SAFETY: `before` ran in this thread, which holds `ALONE` until now.
        drop(unsafe { (*FORKING.0.get()).take() });
    }
    extern "C" fn in_child() {
        EPOCH.fetch_add(1, Ordering::Relaxed);
        OWN.store(0, Ordering::Relaxed);
        // After `unshare(CLONE_NEWPID)` a child is in another pid namespace than its parent.
        NAMESPACE.store(UNKNOWN, Ordering::Relaxed);
        in_parent();
    }
    HOME.store(pid_namespace(), Ordering::Relaxed);
    static WATCH: Once = Once::new();
    // SAFETY: pthread_atfork(3): the handlers wait only for holders that do not wait, and an extension module is
    // never unloaded.
    WATCH.call_once(|| unsafe {
        libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
    });
}

/// Bytes of a page.
#[must_use]
pub fn page_size() -> usize {
    rustix::param::page_size()
}

/// The time since boot in microseconds, which wraps around every 72 minutes; the same in all processes.
#[must_use]
pub fn microseconds() -> u32 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec.cast_unsigned() as u32)
        .wrapping_mul(1_000_000)
        .wrapping_add(now.tv_nsec.cast_unsigned() as u32 / 1000)
}

/// The number of processors that this process may run on.
#[must_use]
pub fn processors() -> usize {
    rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count() as usize)
}

/// The calling process: id in the upper half, start time (clock ticks) in the lower.
#[inline]
#[must_use]
pub fn identity() -> u64 {
    match OWN.load(Ordering::Relaxed) {
        0 => read_identity(),
        own => own,
    }
}

#[cold]
fn read_identity() -> u64 {
    let pid = rustix::process::getpid().as_raw_pid() as u32;
    let start = stat(pid).map_or(0, |stat| stat.start);
    let own = u64::from(pid) << 32 | u64::from(start);
    OWN.store(own, Ordering::Relaxed);
    own
}

/// Whether the process is still running.
#[must_use]
pub fn is_alive(process: u64) -> bool {
    if process == identity() || is_in_other_namespace() {
        return true;
    }
    let (pid, start) = ((process >> 32) as u32, process as u32);
    let Some(raw) = rustix::process::Pid::from_raw(pid as i32) else {
        return false;
    };
    if pid > i32::MAX as u32 || rustix::process::test_kill_process(raw) == Err(rustix::io::Errno::SRCH) {
        return false;
    }
    match stat(pid) {
        Some(stat) => !stat.is_dead && (start == 0 || stat.start == start),
        // The process ended between the two checks, or /proc is missing.
        None => rustix::process::test_kill_process(raw) != Err(rustix::io::Errno::SRCH),
    }
}

/// Whether no thread of this pid namespace has the id, or a dead one: it may be the first thread of a process that was
/// not waited for.
pub(crate) fn has_ended(tid: u32) -> bool {
    if is_in_other_namespace() {
        return false;
    }
    if let Some(stat) = stat(tid) {
        return stat.is_dead;
    }
    // The thread ended, or /proc does not show it.
    rustix::process::Pid::from_raw(tid.cast_signed())
        .is_some_and(|thread| rustix::process::test_kill_process(thread) == Err(rustix::io::Errno::SRCH))
}

/// Whether process ids differ from those in the memory that this process has by fork.
fn is_in_other_namespace() -> bool {
    let home = HOME.load(Ordering::Relaxed);
    home != UNKNOWN && home != pid_namespace()
}

struct Stat {
    start: u32,
    is_dead: bool,
}

/// Reads /proc/PID/stat without allocating, since this also runs at forks.
///
/// The path is relative to /proc: qemu-user answers an absolute path to the caller's own file itself, with another start
/// time than other processes read there, and they would take this process for dead.
fn stat(pid: u32) -> Option<Stat> {
    let mut path = [0; 32];
    let path = write_path(&mut path, pid)?;
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let processes = rustix::fs::open("/proc", directory, Mode::empty()).ok()?;
    let file = rustix::fs::openat(&processes, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = [0; 1024];
    let length = rustix::io::read(&file, &mut text).ok()?;
    parse(&text[..length])
}

fn write_path(buffer: &mut [u8; 32], pid: u32) -> Option<&str> {
    use std::io::Write;
    let mut rest = &mut buffer[..];
    write!(rest, "{pid}/stat").ok()?;
    let left = rest.len();
    std::str::from_utf8(&buffer[..32 - left]).ok()
}

/// The name (field 2) is in parentheses and may contain any byte; the fields after the last parenthesis are plain.
fn parse(text: &[u8]) -> Option<Stat> {
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(text.get(end + 2..)?).ok()?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    // Field 22; the iterator is at field 4.
    let start: u64 = fields.nth(18)?.parse().ok()?;
    Some(Stat {
        start: start as u32,
        is_dead: matches!(state, "Z" | "X" | "x"),
    })
}

/// The pid namespace: the number behind /proc/self/ns/pid, 0 if unknown.
#[must_use]
pub fn pid_namespace() -> u64 {
    let known = NAMESPACE.load(Ordering::Relaxed);
    if known != UNKNOWN {
        return known;
    }
    let found = std::fs::read_link("/proc/self/ns/pid")
        .ok()
        .and_then(|link| {
            let text = link.to_str()?;
            text.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
        })
        .unwrap_or(0);
    NAMESPACE.store(found, Ordering::Relaxed);
    found
}

/// The text by which messages name a process.
#[must_use]
pub fn describe(process: u64) -> String {
    let (pid, start) = ((process >> 32) as u32, process as u32);
    let ticks = rustix::param::clock_ticks_per_second();
    format!(
        "process {pid}, started {:.2} s after boot",
        f64::from(start) / ticks as f64
    )
}

#[cfg(test)]
mod tests {
    use super::{has_ended, identity, is_alive, parse};

    #[test]
    fn names_of_any_kind_are_skipped() {
        let stat = parse(b"42 (a) b) (c)) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 1000 5").unwrap();
        assert_eq!(stat.start, 12345);
        assert!(!stat.is_dead);
        assert!(
            parse(b"42 (a) Z 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 1000")
                .unwrap()
                .is_dead
        );
        assert!(parse(b"").is_none());
        assert!(parse(b")").is_none());
    }

    #[test]
    fn this_process_is_alive_and_another_start_is_not() {
        assert!(is_alive(identity()));
        assert!(is_alive(1 << 32));
        assert!(!is_alive(identity() ^ 1));
        assert!(!is_alive(0));
    }

    #[test]
    fn a_zombie_is_dead() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = u64::from(child.id()) << 32;
        while is_alive(process) {
            std::thread::yield_now();
        }
        assert!(has_ended(child.id()));
        child.wait().unwrap();
        assert!(!is_alive(process));
        assert!(has_ended(child.id()));
    }

    #[test]
    fn a_thread_has_ended_once_it_was_joined() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(crate::robust::tid()).unwrap();
            let _ = ended.recv();
        });
        let tid = told.recv().unwrap();
        assert!(!has_ended(tid));
        drop(end);
        thread.join().unwrap();
        // The kernel reports the end to the joining thread a moment before the id is free.
        while !has_ended(tid) {
            std::thread::yield_now();
        }
    }
}
