//! The system mechanism below the primitives between processes.
//!
//! It provides segments of shared memory with and without names, the robust list of the calling thread, sleeping and
//! waking across processes, and whether a process is alive. `unsnarl-ipc` decides what the words mean.
//!
//! Invariant: a segment is mapped only after its owner, mode, type, size, header and version were checked; no address
//! is ever read from shared memory.
#![warn(missing_debug_implementations)]

mod arena;
mod file;
mod futex;
mod host;
mod mapping;
mod process;
mod robust;
mod segment;

pub use arena::{Allocation, Arena};
pub use file::{Listed, Removal, directory, leave_all, list, remove};
pub use futex::{Woken, wait, wait_any};
pub use host::Host;
pub use mapping::Mapping;
pub use process::{
    alone, describe, epoch, identity, is_alive, microseconds, page_size, pid_namespace, processors, watch_forks,
};
pub use robust::{Entered, NodeState, hold, is_listed, is_mine, is_unmarked, node_state, release, tid, try_acquire};
pub use segment::{Problem, Segment, SegmentError};
