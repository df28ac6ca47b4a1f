//! Interleavings of two or three processes on the shared words, explored by loom, one of them
//! killed in the middle.
//!
//!     RUSTFLAGS="--cfg loom" cargo test -p unsnarl-ipc --test loom --release
//!
//! Invariant: a body sleeps only through [`kernel::Modelled::sleep`], so that a lost wake-up shows as a
//! deadlock that loom reports.
#![cfg(loom)]
#![allow(missing_docs, unreachable_pub)]

mod kernel;
mod locks;
mod ring;
