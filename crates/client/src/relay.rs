//! While the worker runs, this process is its face: signals sent to the one
//! are meant for the other.
//!
//! | signal comes from | shared session | detached |
//! |---|---|---|
//! | the terminal (`SI_KERNEL`) | the worker is in the same process group and got it too: nothing to do | cannot happen |
//! | `kill`, `sigqueue`, a timer | passed on | passed on |
//! | stop of the worker | this process stops itself | the same |
//! | `SIGCONT` from `kill` | a shell sends it to the group, so the worker got it too; if not, see [`stop`] | passed on |
//!
//! Invariant: a handler makes one system call, on a descriptor that names the
//! worker for good (a pidfd): a reused process id is never signalled.

use crate::inherited::LAST_SIGNAL;
use crate::syscall::{exit, read_file};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// pidfd of the worker.
static WORKER: AtomicI32 = AtomicI32::new(-1);
/// Its process id.
static WORKER_ID: AtomicI32 = AtomicI32::new(0);
/// Whether signals of the terminal reach the worker by themselves.
static SHARES_TERMINAL: AtomicBool = AtomicBool::new(false);

/// Signals that keep their meaning for this process: two cannot be caught, and
/// the state of a child is nobody else's business.
const OWN: &[c_int] = &[libc::SIGKILL, libc::SIGSTOP, libc::SIGCHLD];

/// Open a handle on the worker; `None` on kernels without pidfd (before 5.3).
pub(crate) fn aim(worker: c_int, shares_terminal: bool) -> Option<()> {
    // SAFETY: numbers only.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, worker, 0) };
    // ORDERING: Relaxed, the handlers run in this one thread and are installed later.
    WORKER.store(i32::try_from(fd).ok().filter(|fd| *fd >= 0)?, Ordering::Relaxed);
    WORKER_ID.store(worker, Ordering::Relaxed);
    SHARES_TERMINAL.store(shares_terminal, Ordering::Relaxed);
    Some(())
}

/// Keep all signals waiting; returns the mask as it was.
pub(crate) fn hold_signals() -> libc::sigset_t {
    // SAFETY: a zeroed set is valid, both are valid for writes.
    unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = core::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, &mut before);
        before
    }
}

/// Undo [`hold_signals`].
pub(crate) fn release_signals(mask: &libc::sigset_t) {
    // SAFETY: the mask is valid.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, mask, core::ptr::null_mut()) };
}

/// Start to pass signals on, those held back first. From here on the plain command is no option:
/// inherited dispositions are gone.
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
    // A late SIGCONT, passed on, would undo the next stop of the worker.
    let is_the_groups = code == libc::SI_KERNEL || signal == libc::SIGCONT;
    if !(is_the_groups && SHARES_TERMINAL.load(Ordering::Relaxed)) {
        send(signal);
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

/// Longest time in ms between the stop of a worker and its server's word of it.
const NEWS_MS: c_int = 1000;

/// Stop as the worker has stopped, until continued.
///
/// If only this process was continued, not its group, the worker is stopped
/// still, and no news of another stop comes: then it is continued from here.
pub(crate) fn stop(socket: c_int) {
    // SAFETY: always sound.
    unsafe { libc::raise(libc::SIGSTOP) };
    if SHARES_TERMINAL.load(Ordering::Relaxed) && is_worker_stopped() && !has_news(socket) && is_worker_stopped() {
        send(libc::SIGCONT);
    }
}

fn has_news(socket: c_int) -> bool {
    let mut question = libc::pollfd {
        fd: socket,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one valid pollfd. An interruption counts as news: no harm, the next word is waited for.
    unsafe { libc::poll(&mut question, 1, NEWS_MS) != 0 }
}

fn is_worker_stopped() -> bool {
    let stat = read_file(
        format!("/proc/{}/stat", WORKER_ID.load(Ordering::Relaxed)).as_bytes(),
        4096,
    );
    // The name in parentheses may hold anything; the state follows the last one.
    stat.is_some_and(|stat| {
        let end = stat.iter().rposition(|b| *b == b')').unwrap_or(0);
        stat.get(end + 2) == Some(&b'T')
    })
}

/// End as the worker has ended, by its wait status.
pub(crate) fn end_as(status: c_int) -> ! {
    if libc::WIFSIGNALED(status) {
        die_of(libc::WTERMSIG(status));
    }
    exit(libc::WEXITSTATUS(status))
}

fn die_of(signal: c_int) {
    // SAFETY: plain system calls with valid structures; a core dump of this
    // process would describe the wrong program, so it is switched off.
    unsafe {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = core::mem::zeroed();
        libc::sigaddset(&mut set, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &set, core::ptr::null_mut());
        libc::kill(libc::getpid(), signal);
    }
    exit(128 + signal)
}
