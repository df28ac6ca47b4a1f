//! The replies of a worker or server: frames of fixed length, so that a reader needs no buffer.
//!
//! Invariant: nothing follows `Ended` or `Refused`.

use crate::Malformed;

/// Bytes of an encoded [`Reply`].
pub const REPLY_LEN: usize = 8;

/// Why a worker did not take a request; the client runs the plain command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The peer is another user, or in another session.
    Peer,
    /// The keys differ: a hash collision, or an old socket.
    Key,
    /// A file that the server has loaded has changed.
    Stale,
    /// The request cannot be served, or is not well-formed.
    Request,
}

/// One frame to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// The worker with this process id has received the request and waits for `GO`.
    Ready(i32),
    /// The worker will not run the request.
    Refused(Refusal),
    /// The worker was stopped by this signal.
    Stopped(i32),
    /// The worker will end with this wait status unless something kills it first.
    Leaving(i32),
    /// The worker has ended, with this wait status as of `waitpid`.
    Ended(i32),
}

impl Reply {
    /// Encodes one frame.
    #[must_use]
    pub fn encode(self) -> [u8; REPLY_LEN] {
        let (kind, value) = match self {
            Self::Ready(pid) => (1u32, pid),
            Self::Refused(why) => (2, why as i32),
            Self::Stopped(signal) => (3, signal),
            Self::Leaving(status) => (4, status),
            Self::Ended(status) => (5, status),
        };
        let mut out = [0; REPLY_LEN];
        out[..4].copy_from_slice(&kind.to_le_bytes());
        out[4..].copy_from_slice(&value.to_le_bytes());
        out
    }

    /// Decodes one frame.
    ///
    /// # Errors
    /// [`Malformed`] for a frame of another length or kind.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let b: &[u8; REPLY_LEN] = bytes.try_into().map_err(|_| Malformed::Length)?;
        let value = i32::from_le_bytes([b[4], b[5], b[6], b[7]]);
        match u32::from_le_bytes([b[0], b[1], b[2], b[3]]) {
            1 => Ok(Self::Ready(value)),
            2 => Ok(Self::Refused(match value {
                0 => Refusal::Peer,
                1 => Refusal::Key,
                2 => Refusal::Stale,
                _ => Refusal::Request,
            })),
            3 => Ok(Self::Stopped(value)),
            4 => Ok(Self::Leaving(value)),
            5 => Ok(Self::Ended(value)),
            kind => Err(Malformed::Kind(kind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_decodes_encodes_again(kind in 0..8u32, value in any::<i32>()) {
            let mut bytes = kind.to_le_bytes().to_vec();
            bytes.extend(value.to_le_bytes());
            if let Ok(reply) = Reply::decode(&bytes) {
                prop_assert_eq!(Reply::decode(&reply.encode()), Ok(reply));
            } else {
                prop_assert!(!(1..=5).contains(&kind));
            }
        }
    }
}
