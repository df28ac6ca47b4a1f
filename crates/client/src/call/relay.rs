//! Stands in for the worker: passes signals on to it, stops with it, and ends as it ended.
//!
//! | signal comes from | shared session | detached |
//! |---|---|---|
//! | the terminal: [`TERMINAL`], `SI_KERNEL` | the worker is in the same process group and got it too: nothing to do | cannot happen |
//! | the kernel otherwise: a timer that survived `exec`, a descriptor with an owner | passed on | passed on |
//! | `kill`, `sigqueue` | passed on | passed on |
//! | stop of the worker | this process stops itself, unless the stop has ended | the same |
//! | `SIGCONT` from `kill` | a shell sends it to the group, so the worker got it too; if not, see [`stop`] | passed on |
//!
//! The kernel sends a hang-up to the session leader only. A session leader with a terminal never gets here
//! ([`crate::job`]).
//!
//! Invariant: a handler makes one system call, on a descriptor that permanently names the worker (a pidfd): a reused
//! process id is never signalled.

use crate::job;
use crate::syscall::{LAST_SIGNAL, exit, readlink};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU64, Ordering};

/// pidfd of the worker.
static WORKER: AtomicI32 = AtomicI32::new(-1);
/// The worker's process id.
static WORKER_ID: AtomicI32 = AtomicI32::new(0);
/// Whether the terminal's signals reach the worker directly.
static SHARES_TERMINAL: AtomicBool = AtomicBool::new(false);

/// The state of a stop:
///
/// | state | meaning | who sets it |
/// |---|---|---|
/// | [`NO_STOP`] | no stop is pending | [`stop`], after it handled one |
/// | [`STOPPING`] | a stop signal or a `Stopped` reply has arrived | the handler, [`stop`] |
/// | [`CONTINUED`] | a `SIGCONT` followed it | the handler |
/// | [`RESUMED`] | a `SIGCONT` arrived that followed nothing, or a `SIGSTOP`, which nobody sees | the handler |
static PHASE: AtomicU8 = AtomicU8::new(NO_STOP);
/// When the last [`RESUMED`] began, in ms of the monotonic clock.
static RESUMED_MS: AtomicU64 = AtomicU64::new(0);
const NO_STOP: u8 = 0;
const STOPPING: u8 = 1;
const CONTINUED: u8 = 2;
const RESUMED: u8 = 3;

/// The signals that a terminal sends to a whole process group. The kernel may send any other signal to a single
/// process, with the same `si_code`.
const TERMINAL: &[c_int] = &[
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGWINCH,
];

/// Signals that this process keeps for itself: two cannot be caught, and SIGCHLD concerns its own children only.
const OWN: &[c_int] = &[libc::SIGKILL, libc::SIGSTOP, libc::SIGCHLD];

/// Opens a pidfd of the worker and returns it; `None` on kernels without pidfd (before 5.3).
pub(crate) fn aim(worker: c_int, shares_terminal: bool) -> Option<c_int> {
    // SAFETY: numbers only.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, worker, 0) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0)?;
    // ORDERING: Relaxed, the handlers run in this one thread and are installed later.
    WORKER.store(fd, Ordering::Relaxed);
    WORKER_ID.store(worker, Ordering::Relaxed);
    SHARES_TERMINAL.store(shares_terminal, Ordering::Relaxed);
    Some(fd)
}

/// Blocks all signals; returns the previous mask.
pub(crate) fn hold_signals() -> libc::sigset_t {
    // SAFETY: a zeroed set is valid, both are valid for writes.
    unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = core::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, &mut before);
        before
    }
}

/// Undoes [`hold_signals`].
pub(crate) fn release_signals(mask: &libc::sigset_t) {
    // SAFETY: the mask is valid.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, mask, core::ptr::null_mut()) };
}

/// Starts to pass signals on, blocked ones first. From here on the plain command is impossible: the inherited
/// dispositions are overwritten.
pub(crate) fn install() {
    // SAFETY: a zeroed sigaction is valid; `pass_on` only makes system calls.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = pass_on as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigfillset(&mut action.sa_mask);
        for signal in (1..=LAST_SIGNAL).filter(|signal| !OWN.contains(signal)) {
            libc::sigaction(signal, &action, core::ptr::null_mut());
        }
        let mut none: libc::sigset_t = core::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, core::ptr::null_mut());
    }
}

extern "C" fn pass_on(signal: c_int, info: *const libc::siginfo_t, _context: *const c_void) {
    // SAFETY: the kernel gives a valid siginfo to an SA_SIGINFO handler.
    let code = unsafe { (*info).si_code };
    let is_fault = code > 0 && [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE].contains(&signal);
    if is_fault {
        exit(255);
    }
    note_stop(signal);
    if !(is_the_groups(signal, code) && SHARES_TERMINAL.load(Ordering::Relaxed)) {
        send(signal);
    }
}

/// Whether a signal has also reached a worker in this process group.
fn is_the_groups(signal: c_int, code: c_int) -> bool {
    // Passing on a late SIGCONT would undo the worker's next stop.
    signal == libc::SIGCONT || (code == libc::SI_KERNEL && TERMINAL.contains(&signal))
}

fn note_stop(signal: c_int) {
    // ORDERING: Relaxed, all in one thread.
    match signal {
        libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => PHASE.store(STOPPING, Ordering::Relaxed),
        libc::SIGCONT => {
            let is_after_stop = matches!(PHASE.load(Ordering::Relaxed), STOPPING | CONTINUED);
            RESUMED_MS.store(now_ms(), Ordering::Relaxed);
            PHASE.store(if is_after_stop { CONTINUED } else { RESUMED }, Ordering::Relaxed);
        }
        _ => {}
    }
}

fn send(signal: c_int) {
    // SAFETY: numbers and a null pointer; a dead worker only makes it fail.
    unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            WORKER.load(Ordering::Relaxed),
            signal,
            0usize,
            0,
        )
    };
}

/// Whether the worker still has this process's standard error as its own. If it cannot be read, it does not.
pub(crate) fn has_stderr() -> bool {
    let worker = WORKER_ID.load(Ordering::Relaxed);
    let own = readlink(b"/proc/self/fd/2");
    own.is_some() && own == readlink(format!("/proc/{worker}/fd/2").as_bytes())
}

/// Longest time in ms between the stop of a worker and its server's report.
const NEWS_MS: c_int = 1000;

/// Stops as the worker has stopped, until continued.
///
/// The report of a stop may arrive after the stop has ended, and nothing would continue this process then. One race
/// is left: a `SIGCONT` between the last check and the system call is lost.
///
/// The kernel continues the members of a group one after the other. So a worker that is stopped when this process has
/// just been continued may be about to run: it is looked at for a while.
///
/// If only this process was continued and not its group, the worker is still stopped then, and no report of another
/// stop arrives: this process continues the worker.
pub(crate) fn stop(socket: c_int) {
    let is_shared = SHARES_TERMINAL.load(Ordering::Relaxed);
    // ORDERING: Relaxed, all in one thread. Without a terminal a SIGCONT was passed on: a worker that is nevertheless
    // stopped has stopped again.
    let before = PHASE.swap(STOPPING, Ordering::Relaxed);
    let was_continued = before == CONTINUED && is_shared;
    if before == RESUMED && is_shared && is_recent() && is_worker_stopped() == Some(true) {
        if !runs_soon() {
            send(libc::SIGCONT);
        }
    } else if is_worker_stopped() != Some(false) {
        if !was_continued && PHASE.load(Ordering::Relaxed) == STOPPING {
            // SAFETY: always sound.
            unsafe { libc::raise(libc::SIGSTOP) };
        }
        let is_alone = || is_shared && is_worker_stopped() == Some(true);
        if is_alone() && !has_news(socket) && is_alone() {
            send(libc::SIGCONT);
        }
    }
    PHASE.store(NO_STOP, Ordering::Relaxed);
}

fn has_news(socket: c_int) -> bool {
    let mut question = libc::pollfd {
        fd: socket,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one valid pollfd. An interruption counts as a report; that does no harm, since the caller then waits
    // for the next reply.
    unsafe { libc::poll(&mut question, 1, NEWS_MS) != 0 }
}

/// Whether the worker runs again, or ends, within [`NEWS_MS`].
fn runs_soon() -> bool {
    (0..NEWS_MS).any(|_| {
        let is_stopped = is_worker_stopped() == Some(true);
        if is_stopped {
            // SAFETY: no descriptor, so no array. An interruption makes the wait shorter.
            unsafe { libc::poll(core::ptr::null_mut(), 0, 1) };
        }
        !is_stopped
    })
}

/// Whether the last [`RESUMED`] has begun just now: an older one is no reason to wait, or to continue the worker.
fn is_recent() -> bool {
    now_ms().saturating_sub(RESUMED_MS.load(Ordering::Relaxed)) <= NEWS_MS as u64
}

/// The monotonic clock; a signal handler may ask it.
fn now_ms() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: valid for writes.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// Whether the worker is stopped; `None` where its state cannot be read.
fn is_worker_stopped() -> Option<bool> {
    let (state, _) = job::state(WORKER_ID.load(Ordering::Relaxed))?;
    // `t`: stopped, and traced.
    Some(matches!(state, b'T' | b't'))
}

/// Ends as the worker has ended, by its wait status.
pub(crate) fn end_as(status: c_int) -> ! {
    if libc::WIFSIGNALED(status) {
        die_of(libc::WTERMSIG(status));
    }
    exit(libc::WEXITSTATUS(status))
}

fn die_of(signal: c_int) {
    forbid_core();
    // SAFETY: plain system calls with valid structures.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = core::mem::zeroed();
        libc::sigaddset(&mut set, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &set, core::ptr::null_mut());
        libc::kill(libc::getpid(), signal);
    }
    exit(128 + signal)
}

/// Prevents a core dump, which would describe the wrong program. The limit applies to files only; a program to which
/// the kernel pipes dumps (core(5)) gets them from any dumpable process.
fn forbid_core() {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: a valid structure, and numbers.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_sends_to_one_process_is_passed_on() {
        assert!(is_the_groups(libc::SIGINT, libc::SI_KERNEL) && is_the_groups(libc::SIGHUP, libc::SI_KERNEL));
        assert!(is_the_groups(libc::SIGCONT, libc::SI_USER));
        assert!(!is_the_groups(libc::SIGALRM, libc::SI_KERNEL) && !is_the_groups(libc::SIGIO, libc::SI_KERNEL));
        assert!(!is_the_groups(libc::SIGINT, libc::SI_USER));
    }

    #[test]
    fn a_process_that_forbids_its_core_is_not_dumpable() {
        // SAFETY: the child makes system calls only, and exits immediately; status is valid for writes.
        let status = unsafe {
            let child = libc::fork();
            if child == 0 {
                forbid_core();
                exit(libc::prctl(libc::PR_GET_DUMPABLE, 0, 0, 0, 0));
            }
            let mut status = -1;
            libc::waitpid(child, &mut status, 0);
            status
        };
        assert_eq!(status, 0);
    }
}
