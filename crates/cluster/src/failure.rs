//! Why an operation failed, in words that hold no secret.
//!
//! Invariant: a message never contains a password or a URL that has one; stores hand over their server's words only.

use std::fmt;

/// The kinds of failure, each of which is one exception in Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The store cannot be reached, or does not answer: another try may succeed.
    Unavailable,
    /// The store does not let us do it: password, rights, version, a pooler between.
    Refused,
    /// The arguments make no sense, or contradict what others passed for the same name.
    Invalid,
    /// The caller's time is up.
    TimedOut,
    /// The caller gave the operation up.
    Cancelled,
    /// A barrier is broken.
    Broken,
    /// The connection was closed by this process.
    Closed,
}

impl Kind {
    /// The word by which Python picks its exception.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Refused => "refused",
            Self::Invalid => "invalid",
            Self::TimedOut => "timed out",
            Self::Cancelled => "cancelled",
            Self::Broken => "broken",
            Self::Closed => "closed",
        }
    }
}

/// A failure, with one line for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) message: String,
}

/// What an operation ends with.
pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into().replace('\n', " "),
        }
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Kind::Unavailable, message)
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(Kind::Refused, message)
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

/// Puts an error and what caused it into one line: libraries often keep the reason for the cause.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !line.contains(&more) {
            line = format!("{line}: {more}");
        }
        cause = error.source();
    }
    line
}
