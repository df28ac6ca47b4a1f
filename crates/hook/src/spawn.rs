//! The replacements of the calls that start threads, and of those that start programs
//! without fork handlers.
//!
//! A thread or program inherits the scheduling of the thread that starts it, and so
//! what the kernel was told about that thread; `fork` undoes it in the child (fork.rs),
//! but `vfork`, `posix_spawn`, `system` and `exec` run no handler. So the calling thread
//! becomes normal before it starts one; when it next waits for the GIL the kernel is
//! told again. The child of `vfork` calls `exec` with its parent's memory: it finds that
//! the parent has become normal, and changes nothing.
//!
//! Must never: be on the stack of a child of `vfork` (it shares the parent's, so
//! the parent would return through a frame that the child has overwritten):
//! [`vfork`] jumps to libc's with the stack as it was.

use crate::kernel;
use crate::slots::Replacement;
use crate::thread::with_own;
use libc::{c_char, c_int, c_void, pid_t, posix_spawn_file_actions_t, posix_spawnattr_t, pthread_attr_t, pthread_t};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

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

static REAL_CREATE: AtomicUsize = AtomicUsize::new(0);
static REAL_EXECV: AtomicUsize = AtomicUsize::new(0);
static REAL_EXECVE: AtomicUsize = AtomicUsize::new(0);
static REAL_FEXECVE: AtomicUsize = AtomicUsize::new(0);
static REAL_VFORK: AtomicUsize = AtomicUsize::new(0);
static REAL_SYSTEM: AtomicUsize = AtomicUsize::new(0);
static REAL_SPAWN: AtomicUsize = AtomicUsize::new(0);
static REAL_SPAWNP: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    #[link_name = "vfork"]
    fn libc_vfork() -> pid_t;
}

/// What is replaced, wherever the interpreter starts threads and programs.
pub(crate) fn replacements() -> [Replacement; 8] {
    let optional = |name, ours, theirs, original| Replacement::new(name, ours, theirs, original, false);
    [
        optional("vfork", vfork as *const (), libc_vfork as *const (), &REAL_VFORK),
        optional("system", system as *const (), libc::system as *const (), &REAL_SYSTEM),
        optional(
            "posix_spawn",
            spawn as *const (),
            libc::posix_spawn as *const (),
            &REAL_SPAWN,
        ),
        optional(
            "posix_spawnp",
            spawnp as *const (),
            libc::posix_spawnp as *const (),
            &REAL_SPAWNP,
        ),
        optional(
            "pthread_create",
            create as *const (),
            libc::pthread_create as *const (),
            &REAL_CREATE,
        ),
        optional("execv", execv as *const (), libc::execv as *const (), &REAL_EXECV),
        optional("execve", execve as *const (), libc::execve as *const (), &REAL_EXECVE),
        optional(
            "fexecve",
            fexecve as *const (),
            libc::fexecve as *const (),
            &REAL_FEXECVE,
        ),
    ]
}

/// Makes the calling thread normal; called by [`vfork`], with nothing to save.
extern "C" fn prepare() {
    with_own(kernel::forget);
}

/// Takes the place of `vfork`.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn vfork() -> pid_t {
    std::arch::naked_asm!(
        "push rax", // keeps the stack aligned for the call
        "call {prepare}",
        "pop rax",
        "jmp qword ptr [rip + {real}]",
        prepare = sym prepare,
        real = sym REAL_VFORK,
    )
}

/// Takes the place of `vfork`.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn vfork() -> pid_t {
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

/// Takes the place of `system`.
unsafe extern "C" fn system(command: *const c_char) -> c_int {
    prepare();
    // SAFETY: holds the address of system since `Slots::find`.
    let real: System = unsafe { std::mem::transmute(REAL_SYSTEM.load(Relaxed)) };
    // SAFETY: the caller's arguments, unchanged.
    unsafe { real(command) }
}

/// Takes the place of `posix_spawn`.
unsafe extern "C" fn spawn(
    pid: *mut pid_t,
    path: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attributes: *const posix_spawnattr_t,
    arguments: *const *mut c_char,
    environment: *const *mut c_char,
) -> c_int {
    prepare();
    // SAFETY: holds the address of posix_spawn since `Slots::find`.
    let real: Spawn = unsafe { std::mem::transmute(REAL_SPAWN.load(Relaxed)) };
    // SAFETY: the caller's arguments, unchanged.
    unsafe { real(pid, path, actions, attributes, arguments, environment) }
}

/// Takes the place of `posix_spawnp`.
unsafe extern "C" fn spawnp(
    pid: *mut pid_t,
    file: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attributes: *const posix_spawnattr_t,
    arguments: *const *mut c_char,
    environment: *const *mut c_char,
) -> c_int {
    prepare();
    // SAFETY: holds the address of posix_spawnp since `Slots::find`.
    let real: Spawn = unsafe { std::mem::transmute(REAL_SPAWNP.load(Relaxed)) };
    // SAFETY: the caller's arguments, unchanged.
    unsafe { real(pid, file, actions, attributes, arguments, environment) }
}

/// Takes the place of `pthread_create`.
unsafe extern "C" fn create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: ThreadStart,
    argument: *mut c_void,
) -> c_int {
    prepare();
    // SAFETY: holds the address of pthread_create since `Slots::find`.
    let real: Create = unsafe { std::mem::transmute(REAL_CREATE.load(Relaxed)) };
    // SAFETY: the caller's arguments, unchanged.
    unsafe { real(thread, attributes, start, argument) }
}

/// Takes the place of `execv`.
unsafe extern "C" fn execv(path: *const c_char, arguments: *const *const c_char) -> c_int {
    prepare();
    // SAFETY: holds the address of execv since `Slots::find`.
    let real: Exec = unsafe { std::mem::transmute(REAL_EXECV.load(Relaxed)) };
    // SAFETY: the caller's arguments, unchanged.
    unsafe { real(path, arguments) }
}

/// Takes the place of `execve`.
unsafe extern "C" fn execve(
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    prepare();
    // SAFETY: holds the address of execve since `Slots::find`.
    let real: ExecWith = unsafe { std::mem::transmute(REAL_EXECVE.load(Relaxed)) };
    // SAFETY: the caller's arguments, unchanged.
    unsafe { real(path, arguments, environment) }
}

/// Takes the place of `fexecve`.
unsafe extern "C" fn fexecve(file: c_int, arguments: *const *const c_char, environment: *const *const c_char) -> c_int {
    prepare();
    // SAFETY: holds the address of fexecve since `Slots::find`.
    let real: ExecFile = unsafe { std::mem::transmute(REAL_FEXECVE.load(Relaxed)) };
    // SAFETY: the caller's arguments, unchanged.
    unsafe { real(file, arguments, environment) }
}
