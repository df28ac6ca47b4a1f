//! While the worker runs, this process is its face: signals sent to the one
//! are meant for the other.
//!
//! | signal comes from | shared session | detached |
//! |---|---|---|
//! | the terminal: [`TERMINAL`], `SI_KERNEL` | the worker is in the same process group and got it too: nothing to do | cannot happen |
//! | the kernel otherwise: a timer that survived `exec`, a descriptor with an owner | passed on | passed on |
//! | `kill`, `sigqueue` | passed on | passed on |
//! | stop of the worker | this process stops itself, unless the stop is over | the same |
//! | `SIGCONT` from `kill` | a shell sends it to the group, so the worker got it too; if not, see [`stop`] | passed on |
//!
//! A hang-up is a signal to the leader of the session first, and to nobody else: as a leader with a
//! terminal this process never gets here ([`crate::job`]).
//!
//! Invariant: a handler makes one system call, on a descriptor that names the
//! worker for good (a pidfd): a reused process id is never signalled.

use crate::job;
use crate::syscall::{LAST_SIGNAL, exit};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, Ordering};

/// pidfd of the worker.
static WORKER: AtomicI32 = AtomicI32::new(-1);
/// Its process id.
static WORKER_ID: AtomicI32 = AtomicI32::new(0);
/// Whether signals of the terminal reach the worker by themselves.
static SHARES_TERMINAL: AtomicBool = AtomicBool::new(false);

/// What is known of a stop: one of the three below.
///
/// | state | meaning | who sets it |
/// |---|---|---|
/// | [`NO_STOP`] | none is on its way | [`stop`], when it is done with one |
/// | [`STOPPING`] | a stop signal has come, or the word of a stop | the handler, [`stop`] |
/// | [`CONTINUED`] | and a `SIGCONT` after it | the handler |
static PHASE: AtomicU8 = AtomicU8::new(NO_STOP);
const NO_STOP: u8 = 0;
const STOPPING: u8 = 1;
const CONTINUED: u8 = 2;

/// What a terminal sends to a whole process group. The kernel may send any other signal to one process
/// alone, with the same `si_code`.
const TERMINAL: &[c_int] = &[
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGWINCH,
];

/// Signals that keep their meaning for this process: two cannot be caught, and
/// the state of a child is nobody else's business.
const OWN: &[c_int] = &[libc::SIGKILL, libc::SIGSTOP, libc::SIGCHLD];

/// Open a handle on the worker and return it; `None` on kernels without pidfd (before 5.3).
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
    note_stop(signal);
    if !(is_the_groups(signal, code) && SHARES_TERMINAL.load(Ordering::Relaxed)) {
        send(signal);
    }
}

/// Whether a signal has reached the worker as well, if it is in this process group.
fn is_the_groups(signal: c_int, code: c_int) -> bool {
    // A late SIGCONT, passed on, would undo the next stop of the worker.
    signal == libc::SIGCONT || (code == libc::SI_KERNEL && TERMINAL.contains(&signal))
}

fn note_stop(signal: c_int) {
    // ORDERING: Relaxed, all in one thread.
    match signal {
        libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => PHASE.store(STOPPING, Ordering::Relaxed),
        libc::SIGCONT => {
            let _ = PHASE.compare_exchange(STOPPING, CONTINUED, Ordering::Relaxed, Ordering::Relaxed);
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

/// Longest time in ms between the stop of a worker and its server's word of it.
const NEWS_MS: c_int = 1000;

/// Stop as the worker has stopped, until continued.
///
/// The word of a stop may arrive when the stop is over, and nobody would continue this process then. Left
/// open is the moment between the last look and the system call: a `SIGCONT` in it is lost.
///
/// If only this process was continued, not its group, the worker is stopped
/// still, and no news of another stop comes: then it is continued from here.
pub(crate) fn stop(socket: c_int) {
    let is_shared = SHARES_TERMINAL.load(Ordering::Relaxed);
    // ORDERING: Relaxed, all in one thread. Without a terminal a SIGCONT was passed on: a worker that is
    // stopped all the same has stopped again.
    let was_continued = PHASE.swap(STOPPING, Ordering::Relaxed) == CONTINUED && is_shared;
    if is_worker_stopped() != Some(false) {
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
    // SAFETY: one valid pollfd. An interruption counts as news: no harm, the next word is waited for.
    unsafe { libc::poll(&mut question, 1, NEWS_MS) != 0 }
}

/// `None` where the state of the worker cannot be read.
fn is_worker_stopped() -> Option<bool> {
    let (state, _) = job::state(WORKER_ID.load(Ordering::Relaxed))?;
    // `t`: stopped, and traced.
    Some(matches!(state, b'T' | b't'))
}

/// End as the worker has ended, by its wait status.
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

/// A core dump of this process would describe the wrong program. The limit holds for files only: a program
/// that the kernel pipes dumps into (core(5)) gets them from whoever is dumpable.
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
        // SAFETY: the child makes system calls only, and leaves at once; status is valid for writes.
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
