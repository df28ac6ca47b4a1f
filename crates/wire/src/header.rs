//! The header of a request: its first 16 bytes, which carry the descriptors.
//!
//! Invariant: a decoded header never announces more than [`MAX_BODY`] bytes or [`MAX_FDS`] descriptors, so that a
//! reader may allocate the announced sizes.

use crate::{MAX_BODY, MAX_FDS, Malformed, VERSION};

/// Bytes of an encoded [`Header`].
pub const HEADER_LEN: usize = 16;

const MAGIC: [u8; 4] = *b"UNSW";

/// The sizes of the rest of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Descriptors attached to this message, the working directory first.
    pub fd_count: u16,
    /// Bytes of the body that follows.
    pub body_len: u32,
}

impl Header {
    /// Encodes the header, unless a bound is exceeded.
    ///
    /// # Errors
    /// [`Malformed::Bound`] if the body or the descriptors are too many.
    pub fn encode(self) -> Result<[u8; HEADER_LEN], Malformed> {
        self.check()?;
        let mut out = [0; HEADER_LEN];
        out[0..4].copy_from_slice(&MAGIC);
        out[4..6].copy_from_slice(&VERSION.to_le_bytes());
        out[6..8].copy_from_slice(&self.fd_count.to_le_bytes());
        out[8..12].copy_from_slice(&self.body_len.to_le_bytes());
        Ok(out)
    }

    /// Decodes the first [`HEADER_LEN`] bytes of a conversation.
    ///
    /// # Errors
    /// [`Malformed`] for foreign, newer or oversized messages.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let bytes: &[u8; HEADER_LEN] = bytes.try_into().map_err(|_| Malformed::Length)?;
        if bytes[0..4] != MAGIC {
            return Err(Malformed::Magic);
        }
        let version = u16::from_le_bytes([bytes[4], bytes[5]]);
        if version != VERSION {
            return Err(Malformed::Version(version));
        }
        let header = Self {
            fd_count: u16::from_le_bytes([bytes[6], bytes[7]]),
            body_len: u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
        };
        header.check().map(|()| header)
    }

    fn check(self) -> Result<(), Malformed> {
        if self.body_len > MAX_BODY || usize::from(self.fd_count) > MAX_FDS {
            return Err(Malformed::Bound);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_header_survives(fd_count in 0..=MAX_FDS as u16, body_len in 0..=MAX_BODY) {
            let header = Header { fd_count, body_len };
            prop_assert_eq!(Header::decode(&header.encode().unwrap()), Ok(header));
        }

        #[test]
        fn arbitrary_bytes_never_break_a_bound(bytes in proptest::collection::vec(any::<u8>(), 0..32)) {
            if let Ok(header) = Header::decode(&bytes) {
                prop_assert!(header.body_len <= MAX_BODY);
            }
        }
    }

    #[test]
    fn too_much_is_refused_on_both_sides() {
        let header = Header {
            fd_count: 0,
            body_len: MAX_BODY + 1,
        };
        assert_eq!(header.encode(), Err(Malformed::Bound));
        let mut bytes = Header {
            fd_count: 0,
            body_len: 0,
        }
        .encode()
        .unwrap();
        bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Header::decode(&bytes), Err(Malformed::Bound));
    }
}
