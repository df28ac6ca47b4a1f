//! Why the scheduler cannot be installed, and what to do about it.

use std::fmt;

/// A reason, in the words of the user, and a next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// What is the matter.
    pub reason: String,
    /// What the user can do.
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
