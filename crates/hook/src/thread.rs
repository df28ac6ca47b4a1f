//! The state of each thread: its registration, its parker, its hint to the kernel, its forks.
//!
//! Must never: know the GIL or the policy's decisions. Arrows between the files: `per_thread`
//! uses `parker`, `kernel`, `fork` and `retired`; all tables are as large as `table` says.

mod fork;
pub(crate) mod kernel;
pub(crate) mod parker;
mod per_thread;
mod retired;
mod table;

pub(crate) use per_thread::{PerThread, prepare, with_current};
pub(crate) use retired::restart_in_child;
pub(crate) use table::CAPACITY;
