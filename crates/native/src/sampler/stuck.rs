//! Reads one stack of each thread in every long wait, since a wait that never ends leaves none: that of a deadlock.
//!
//! Must never: read a stack in every round. Invariant: a wait is read once, after its first 0.2 s,
//! and once more if that sample may have been dropped.

use super::{Target, monotonic_ns, stack, word};
use unsnarl_trace::layout::header;

/// A thread whose last event is so long ago is blocked, and one stack of it is read: it may never end this wait.
const STUCK_NS: u64 = 200_000_000;

/// A thread's state in the process, and the time of its last event.
#[derive(Clone, Copy)]
pub(super) struct Stuck {
    pub(super) state: u64,
    pub(super) last: u64,
}

impl Target {
    /// Reads one stack of each thread in every long wait.
    pub(super) fn sample_stuck(&mut self, threads: &[(u32, Stuck)]) {
        let code_type = word(&self.recording, header::CODE_TYPE as u64).unwrap_or(0);
        if code_type == 0 {
            return;
        }
        let Some(memory) = self.memory.take() else { return };
        for &(entry, Stuck { state, last }) in threads {
            let time = monotonic_ns().saturating_sub(self.started);
            if state == 0 || time.saturating_sub(last) < STUCK_NS || !self.collected.is_new_wait(entry, last) {
                continue;
            }
            let frames = stack(&memory, state, code_type).unwrap_or_default();
            if let Some(node) = self.place(&memory, &frames).filter(|_| !frames.is_empty()) {
                self.collected.take(time, entry, node);
            }
        }
        self.memory = Some(memory);
    }
}
