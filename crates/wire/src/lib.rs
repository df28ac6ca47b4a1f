//! The message format between the native client and a warm worker.
//!
//! Must never open a socket, read a clock or know a process: the crate turns values into bytes and back. The Python
//! side, `unsnarl/warm/wire.py`, implements the same format; a test gives each side what the other wrote.
//!
//! One conversation over a stream socket:
//!
//! | step | from | what |
//! |---|---|---|
//! | 1 | client | a [`Header`], with every file descriptor attached to it, then the body of a [`Request`] |
//! | 2 | worker | a [`Reply`]: `Ready` with its process id, or `Refused` |
//! | 3 | client | the byte [`GO`] |
//! | 4 | worker or server | `Stopped` any number of times, at most one `Leaving`, one `Ended` |
//!
//! Invariant: **a request that is not followed by [`GO`] has not run and will not run.** So the client may execute
//! the plain command until it sends that byte, and must not afterwards.
#![forbid(unsafe_code)]

mod header;
mod reply;
mod request;

pub use header::{HEADER_LEN, Header};
pub use reply::{REPLY_LEN, Refusal, Reply};
pub use request::{Request, SoftLimit};

/// The byte by which the client commits itself to the worker.
pub const GO: u8 = b'G';

/// Version of this format; a worker of another version refuses.
pub const VERSION: u16 = 1;

/// Most bytes of one body. Linux gives argv and environment together at most
/// 6 MiB (`MAX_ARG_STRLEN` and three quarters of `_STK_LIM`, fs/exec.c).
pub const MAX_BODY: u32 = 8 << 20;

/// Most descriptors of one message: `SCM_MAX_FD` (include/net/scm.h).
pub const MAX_FDS: usize = 253;

/// Why bytes are not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// Fewer bytes than the message says, or more.
    Length,
    /// The magic number is not ours.
    Magic,
    /// Another version of the format.
    Version(u16),
    /// A count or a length exceeds its bound.
    Bound,
    /// A kind this version does not know.
    Kind(u32),
}

impl core::fmt::Display for Malformed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Length => f.write_str("the length does not match the contents"),
            Self::Magic => f.write_str("not an unsnarl message"),
            Self::Version(v) => write!(f, "format version {v}, expected {VERSION}"),
            Self::Bound => f.write_str("a count or length is over its bound"),
            Self::Kind(k) => write!(f, "unknown kind {k}"),
        }
    }
}

impl core::error::Error for Malformed {}
