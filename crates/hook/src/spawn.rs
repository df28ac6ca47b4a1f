//! Hooks of the calls that start threads, and of those that start programs without running
//! fork handlers.
//!
//! A thread or program inherits the scheduling of the thread that starts it, and with it that
//! thread's hint to the kernel. After `fork`, the child withdraws the hint (`gil/fork.rs`). But
//! `vfork`, `posix_spawn`, `system` and `exec` run no handler. So the calling thread becomes
//! normal before it starts a thread or program, and is hinted again when it next waits for the
//! GIL. The child of `vfork` calls `exec` with its parent's memory: it finds that the parent
//! has become normal, and changes nothing.
//!
//! Must never: have a frame on the stack of a child of `vfork`. The child shares the parent's
//! stack, so the parent would return through a frame that the child has overwritten. [`vfork`]
//! jumps to libc's function with the stack as it was.

use crate::elf::original::Original;
use crate::thread::{PerThread, with_current};
use libc::{c_char, c_int, c_void, pid_t, posix_spawn_file_actions_t, posix_spawnattr_t, pthread_attr_t, pthread_t};

type Fork = unsafe extern "C" fn() -> pid_t;
type System = unsafe extern "C" fn(*const c_char) -> c_int;
type Spawn = unsafe extern "C" fn(
    *mut pid_t,
    *const c_char,
    *const posix_spawn_file_actions_t,
    *const posix_spawnattr_t,
    *const *mut c_char,
    *const *mut c_char,
) -> c_int;

type ThreadStart = extern "C" fn(*mut c_void) -> *mut c_void;
type Create = unsafe extern "C" fn(*mut pthread_t, *const pthread_attr_t, ThreadStart, *mut c_void) -> c_int;
type Exec = unsafe extern "C" fn(*const c_char, *const *const c_char) -> c_int;
type ExecWith = unsafe extern "C" fn(*const c_char, *const *const c_char, *const *const c_char) -> c_int;
type ExecFile = unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char) -> c_int;

pub(crate) static REAL_CREATE: Original<Create> = Original::new(libc::pthread_create);
pub(crate) static REAL_EXECV: Original<Exec> = Original::new(libc::execv);
pub(crate) static REAL_EXECVE: Original<ExecWith> = Original::new(libc::execve);
pub(crate) static REAL_FEXECVE: Original<ExecFile> = Original::new(libc::fexecve);
pub(crate) static REAL_VFORK: Original<Fork> = Original::new(libc_vfork);
pub(crate) static REAL_SYSTEM: Original<System> = Original::new(libc::system);
pub(crate) static REAL_SPAWN: Original<Spawn> = Original::new(libc::posix_spawn);
pub(crate) static REAL_SPAWNP: Original<Spawn> = Original::new(libc::posix_spawnp);

unsafe extern "C" {
    #[link_name = "vfork"]
    fn libc_vfork() -> pid_t;
}

/// Makes the calling thread normal. [`vfork`] calls it with no register to save.
extern "C" fn prepare() {
    with_current(PerThread::withdraw_hint);
}

/// Replaces `vfork`.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn vfork() -> pid_t {
    std::arch::naked_asm!(
        "push rax", // keeps the stack aligned for the call
        "call {prepare}",
        "pop rax",
        "jmp qword ptr [rip + {real}]",
        prepare = sym prepare,
        real = sym REAL_VFORK,
    )
}

/// Replaces `vfork`.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn vfork() -> pid_t {
    std::arch::naked_asm!(
        "stp x29, x30, [sp, #-16]!",
        "bl {prepare}",
        "ldp x29, x30, [sp], #16",
        "adrp x16, {real}",
        "ldr x16, [x16, :lo12:{real}]",
        "br x16",
        prepare = sym prepare,
        real = sym REAL_VFORK,
    )
}

/// Replaces `system`.
pub(crate) unsafe extern "C" fn system(command: *const c_char) -> c_int {
    prepare();
    // SAFETY: the caller's arguments, unchanged.
    unsafe { REAL_SYSTEM.get()(command) }
}

/// Replaces `posix_spawn`.
pub(crate) unsafe extern "C" fn spawn(
    pid: *mut pid_t,
    path: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attributes: *const posix_spawnattr_t,
    arguments: *const *mut c_char,
    environment: *const *mut c_char,
) -> c_int {
    prepare();
    // SAFETY: the caller's arguments, unchanged.
    unsafe { REAL_SPAWN.get()(pid, path, actions, attributes, arguments, environment) }
}

/// Replaces `posix_spawnp`.
pub(crate) unsafe extern "C" fn spawnp(
    pid: *mut pid_t,
    file: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attributes: *const posix_spawnattr_t,
    arguments: *const *mut c_char,
    environment: *const *mut c_char,
) -> c_int {
    prepare();
    // SAFETY: the caller's arguments, unchanged.
    unsafe { REAL_SPAWNP.get()(pid, file, actions, attributes, arguments, environment) }
}

/// Replaces `pthread_create`.
pub(crate) unsafe extern "C" fn create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: ThreadStart,
    argument: *mut c_void,
) -> c_int {
    prepare();
    // SAFETY: the caller's arguments, unchanged.
    unsafe { REAL_CREATE.get()(thread, attributes, start, argument) }
}

/// Replaces `execv`.
pub(crate) unsafe extern "C" fn execv(path: *const c_char, arguments: *const *const c_char) -> c_int {
    prepare();
    // SAFETY: the caller's arguments, unchanged.
    unsafe { REAL_EXECV.get()(path, arguments) }
}

/// Replaces `execve`.
pub(crate) unsafe extern "C" fn execve(
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    prepare();
    // SAFETY: the caller's arguments, unchanged.
    unsafe { REAL_EXECVE.get()(path, arguments, environment) }
}

/// Replaces `fexecve`.
pub(crate) unsafe extern "C" fn fexecve(
    file: c_int,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    prepare();
    // SAFETY: the caller's arguments, unchanged.
    unsafe { REAL_FEXECVE.get()(file, arguments, environment) }
}
