//! `unsnarl run` without an interpreter of its own: finds the program and executes python once.
//!
//! The rules are those of `python/unsnarl/cli/program`, which stays the authority. This room handles only a command
//! line that it understands whole and a program that it has found; everything else, each error included, is left to
//! the Python verb, which then prints the message and ends with the status.
//!
//! Arrows: `launch` → `program` → `request`, `environment` → `syscall`.
//!
//! Must never: print, refuse a program, or start one that the Python verb would refuse.
//!
//! Invariant: where this room executes the interpreter, the Python verb would have executed it with the same words.

mod environment;
mod launch;
mod program;
mod request;

pub(crate) use launch::launch;
