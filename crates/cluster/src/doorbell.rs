//! How the native thread wakes an event loop without the GIL: a queue of numbers and an eventfd.
//!
//! The loop watches the descriptor. When it is readable, the loop's thread takes the numbers out and resumes what
//! each of them stands for.
//!
//! Invariant: a number that is in the queue has the descriptor readable, or its reader is about to take it out.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Mutex;

use rustix::event::{EventfdFlags, eventfd};

/// One loop's bell.
pub(crate) struct Doorbell {
    descriptor: OwnedFd,
    numbers: Mutex<Vec<u64>>,
}

impl Doorbell {
    pub(crate) fn new() -> std::io::Result<Self> {
        let descriptor = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self {
            descriptor,
            numbers: Mutex::new(Vec::new()),
        })
    }

    pub(crate) fn raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// Queues a number and makes the descriptor readable.
    pub(crate) fn ring(&self, number: u64) {
        let is_first = {
            let mut numbers = self.numbers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            numbers.push(number);
            numbers.len() == 1
        };
        if is_first {
            // The counter cannot be full: it is read before 2^64 rings.
            let _ = rustix::io::write(&self.descriptor, &1_u64.to_ne_bytes());
        }
    }

    /// Takes all numbers out; the descriptor is not readable then.
    pub(crate) fn drain(&self) -> Vec<u64> {
        // Before the numbers: a ring in between makes the descriptor readable again, spuriously.
        let _ = rustix::io::read(&self.descriptor, &mut [0_u8; 8]);
        std::mem::take(&mut self.numbers.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}
