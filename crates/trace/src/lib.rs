//! The trace file of a process: its layout, and what can be read from it.
//!
//! Pure: bytes in, facts out. The recorder (`unsnarl-hook`) writes the file by the layout that is
//! defined here. [`summary::summarise`] accepts any bytes: a truncated file, a foreign file, or
//! a file whose process was killed in the middle of a record.
//!
//! Invariant: no input makes this crate panic, loop, or allocate more than a small
//! multiple of the input's size.

#![forbid(unsafe_code)]

pub mod collected;
pub mod contention;
pub mod imports;
pub mod layout;
pub mod line_table;
pub mod locks;
pub mod pace;
mod placing;
pub mod reader;
pub mod record;
pub mod samples;
pub mod summary;
pub mod timeline;

/// Nanoseconds; in records, since the start of the recording.
pub type Nanos = u64;
