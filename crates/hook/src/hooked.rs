//! Every function of libc that is hooked: its name, original, hook, and purpose.
//!
//! Invariant: a function is hooked only if it has its row here. The slots to find, whether a
//! missing one is an error, and the objects to search all follow from its purpose.

use crate::elf::original::Original;
use crate::elf::slots::Replacement;
use crate::gil::{cond, sem};
use crate::{record::calls, spawn};
use std::ffi::CStr;

/// Why a function is hooked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// `take_gil` and `drop_gil` wait and notify by it; an interpreter without it is refused.
    Gil,
    /// A contended lock of the interpreter blocks in it.
    Locks,
    /// It starts a thread or a program, which inherits scheduling; also hooked in the
    /// object of `_posixsubprocess`.
    Starts,
    /// Only the recorder observes it: hooked while a recording is on. Not required, since
    /// a build without semaphores has no locks to see.
    Recording,
}

/// The functions that are hooked for these purposes.
pub(crate) fn replacements(purposes: &[Purpose]) -> Vec<Replacement> {
    let rows = table().into_iter();
    rows.filter(|(purpose, _)| purposes.contains(purpose))
        .map(|(_, replacement)| replacement)
        .collect()
}

type Row = (Purpose, Replacement);

fn row<F: Copy>(purpose: Purpose, name: &'static str, original: &'static Original<F>, hook: F) -> Row {
    (purpose, Replacement::new(name, original, hook, purpose == Purpose::Gil))
}

/// A function that not every C library has, to which this library is not linked.
fn found<F: Copy>(purpose: Purpose, name: &'static CStr, original: &'static Original<F>, hook: F) -> Row {
    let text = name.to_str().unwrap_or_default();
    (
        purpose,
        Replacement::new(text, original, hook, false).with_libc(find(name)),
    )
}

/// The address of a function in the libraries that the program is linked to.
fn find(name: &CStr) -> Option<usize> {
    // SAFETY: a C string.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address as usize)
}

#[rustfmt::skip] // one line a function
fn table() -> [Row; 16] {
    use Purpose::{Gil, Locks, Recording, Starts};
    [
        row(Gil, "pthread_cond_signal", &cond::REAL_SIGNAL, cond::signal),
        row(Gil, "pthread_cond_wait", &cond::REAL_WAIT, cond::wait),
        row(Gil, "pthread_cond_timedwait", &cond::REAL_TIMEDWAIT, cond::timedwait),
        row(Locks, "sem_wait", &sem::REAL_WAIT, sem::wait),
        row(Locks, "sem_timedwait", &sem::REAL_TIMEDWAIT, sem::timedwait),
        found(Locks, c"sem_clockwait", &sem::REAL_CLOCKWAIT, sem::clockwait),
        row(Locks, "sem_post", &sem::REAL_POST, sem::post),
        row(Starts, "vfork", &spawn::REAL_VFORK, spawn::vfork),
        row(Starts, "system", &spawn::REAL_SYSTEM, spawn::system),
        row(Starts, "posix_spawn", &spawn::REAL_SPAWN, spawn::spawn),
        row(Starts, "posix_spawnp", &spawn::REAL_SPAWNP, spawn::spawnp),
        row(Starts, "pthread_create", &spawn::REAL_CREATE, spawn::create),
        row(Starts, "execv", &spawn::REAL_EXECV, spawn::execv),
        row(Starts, "execve", &spawn::REAL_EXECVE, spawn::execve),
        row(Starts, "fexecve", &spawn::REAL_FEXECVE, spawn::fexecve),
        row(Recording, "clock_nanosleep", &calls::REAL_SLEEP, calls::nanosleep),
    ]
}
