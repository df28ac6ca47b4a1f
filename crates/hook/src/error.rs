//! The error of an installation: why it failed, and what the user can do.
//!
//! Invariant: both texts are for the user; a caller adds nothing to them.

use std::fmt;

/// The reason, in the user's terms, and a next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// Why it failed.
    pub reason: String,
    /// The next step for the user.
    pub hint: String,
}

impl Unsupported {
    pub(crate) fn new(reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            hint: hint.into(),
        }
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} (hint: {})", self.reason, self.hint)
    }
}

impl std::error::Error for Unsupported {}
