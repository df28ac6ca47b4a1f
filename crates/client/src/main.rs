//! The native executable `unsnarl`: runs a Python command in a warm worker, or becomes the plain command.
//!
//! It uses a warm worker only if one is available immediately and nothing is in doubt. It becomes the program of
//! `unsnarl run` if it understands the whole command line. It passes everything else to `unsnarl.cli` in the Python
//! next to this file.
//!
//! Arrows: `verb` → `server`, `call` → `job`, `plain`, `target` → `syscall`; `verb` → `run` → `syscall`. `server`,
//! `call` and `run` do not know each other.
//!
//! Invariant: a command runs exactly once, warm or plain. Every path ends either in [`call::handover::run`], which
//! only waits after its point of no return, or in an `exec` that does not return.
//!
//! There is no Rust runtime start-up (`no_main`): it would ignore SIGPIPE, and the inherited disposition is part of
//! what the client hands over.
// The test harness has its own `main`.
#![cfg_attr(not(test), no_main)]
#![cfg_attr(test, allow(dead_code))]

mod call;
mod job;
mod plain;
mod run;
mod server;
mod syscall;
mod target;
mod verb;
mod why;

#[cfg(not(test))]
use core::ffi::{c_char, c_int};

/// Entry point called by the C runtime.
///
/// # Safety
/// `argv` and `envp` come from the kernel: NULL-terminated arrays of strings.
#[cfg(not(test))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn main(argc: c_int, argv: *const *const c_char, envp: *const *const c_char) -> c_int {
    // SAFETY: both arrays come from the C runtime and live as long as the process.
    let (args, environ) = unsafe { (syscall::strings(argv), syscall::strings(envp)) };
    debug_assert_eq!(args.len(), usize::try_from(argc).unwrap_or(0));
    verb::dispatch(&args, environ)
}
