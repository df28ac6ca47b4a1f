//! The protocols' kernel trait, implemented with system calls.
//!
//! Invariant: `wake` never uses a private futex.

use crate::{futex, process, robust};
use std::sync::atomic::AtomicU32;
use unsnarl_ipc::Kernel;

/// The kernel of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Host;

impl Kernel for Host {
    #[inline]
    fn tid(&self) -> u32 {
        robust::tid()
    }
    #[inline]
    fn process(&self) -> u64 {
        process::identity()
    }
    fn is_alive(&self, process: u64) -> bool {
        process::is_alive(process)
    }
    #[inline]
    fn died_unmarked(&self, tid: u32) -> bool {
        robust::died_unmarked(tid)
    }
    #[cold]
    fn wake(&self, word: &AtomicU32, count: u32) {
        futex::wake(word, count);
    }
    #[inline]
    fn begin(&self, word: &AtomicU32) {
        robust::begin(word);
    }
    #[inline]
    fn end(&self) {
        robust::end();
    }
    fn pause(&self) {
        std::hint::spin_loop();
    }
}
