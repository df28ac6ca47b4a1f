//! While the worker runs, this process is its face: signals sent to the one
//! are meant for the other.
//!
//! | signal comes from | shared session | detached |
//! |---|---|---|
//! | the terminal (`SI_KERNEL`) | the worker is in the same process group and got it too: nothing to do | cannot happen |
//! | `kill`, `sigqueue`, a timer | passed on | passed on |
//! | stop of the worker | this process stops itself | the same |
//!
//! Invariant: a handler makes one system call, on a descriptor that names the
//! worker for good (a pidfd): a reused process id is never signalled.

use crate::inherited::LAST_SIGNAL;
use crate::syscall::exit;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// pidfd of the worker.
static WORKER: AtomicI32 = AtomicI32::new(-1);
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
    SHARES_TERMINAL.store(shares_terminal, Ordering::Relaxed);
    Some(())
}

/// Start to pass signals on. From here on the plain command is no option:
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
    if code == libc::SI_KERNEL && SHARES_TERMINAL.load(Ordering::Relaxed) {
        return;
    }
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

/// Stop as the worker has stopped, until continued.
pub(crate) fn stop() {
    // SAFETY: always sound.
    unsafe { libc::raise(libc::SIGSTOP) };
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
