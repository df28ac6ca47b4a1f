//! `unsnarl`, the native executable.
//!
//! It runs a Python command in a warm worker if one may be had at once and
//! with nothing in doubt, and otherwise *becomes* the plain command. Every
//! other verb is the business of `unsnarl.cli` in the Python beside this file.
//!
//! Invariant: a command runs exactly once, warm or plain. All ways lead to
//! either [`call::handover::run`], which after its point of no return only waits, or
//! to an `exec` that does not come back.
//!
//! There is no Rust runtime start-up (`no_main`): it would ignore SIGPIPE, and
//! the disposition this process inherited is part of what is handed over.
// The tests have a `main` of their own.
#![cfg_attr(not(test), no_main)]
#![cfg_attr(test, allow(dead_code))]

mod call;
mod job;
mod plain;
mod server;
mod syscall;
mod target;
mod verb;

#[cfg(not(test))]
use core::ffi::{c_char, c_int};

/// Entry point called by the C runtime.
///
/// # Safety
/// `argv` and `envp` are what the kernel gave: NULL-ended arrays of strings.
#[cfg(not(test))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn main(argc: c_int, argv: *const *const c_char, envp: *const *const c_char) -> c_int {
    // SAFETY: both arrays come from the C runtime and live as long as the process.
    let (args, environ) = unsafe { (syscall::strings(argv), syscall::strings(envp)) };
    debug_assert_eq!(args.len(), usize::try_from(argc).unwrap_or(0));
    verb::dispatch(&args, environ)
}
