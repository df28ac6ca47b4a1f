//! The body of a request: the command, and everything that its process inherits.
//!
//! Strings are raw bytes terminated by NUL, as in `execve`; so they contain no NUL themselves. Numbers are
//! little-endian.
//!
//! Invariant: `decode(encode(r)) == r`, and no input makes `decode` allocate
//! more than a small multiple of the input's own length.

use crate::{MAX_FDS, Malformed};

/// A soft resource limit; the hard ones are part of the server's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoftLimit {
    /// `RLIMIT_…` number of the kernel.
    pub resource: u32,
    /// `rlim_cur`; all ones mean unlimited.
    pub soft: u64,
}

/// One command to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// Canonical text of the server's key: the worker compares it with the key of its server.
    pub key: Vec<u8>,
    /// Arguments after the command itself.
    pub argv: Vec<Vec<u8>>,
    /// `NAME=VALUE`, in the client's order.
    pub environ: Vec<Vec<u8>>,
    /// Numbers under which the descriptors after the first are to be installed.
    pub fds: Vec<u32>,
    /// File mode creation mask.
    pub umask: u32,
    /// Bit `n - 1`: signal `n` is ignored.
    pub ignored: u64,
    /// Bit `n - 1`: signal `n` is blocked.
    pub blocked: u64,
    /// Soft resource limits.
    pub limits: Vec<SoftLimit>,
}

/// Most resource limits: RLIM_NLIMITS is 16 (asm-generic/resource.h).
const MAX_LIMITS: u32 = 32;

impl Request {
    /// Encodes the body.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256 + self.environ.iter().map(|v| v.len() + 1).sum::<usize>());
        out.extend(self.umask.to_le_bytes());
        out.extend(self.ignored.to_le_bytes());
        out.extend(self.blocked.to_le_bytes());
        out.extend(count(self.limits.len()).to_le_bytes());
        for limit in &self.limits {
            out.extend(limit.resource.to_le_bytes());
            out.extend(limit.soft.to_le_bytes());
        }
        out.extend(count(self.fds.len()).to_le_bytes());
        for fd in &self.fds {
            out.extend(fd.to_le_bytes());
        }
        out.extend(count(self.key.len()).to_le_bytes());
        out.extend(&self.key);
        push_strings(&mut out, &self.argv);
        push_strings(&mut out, &self.environ);
        out
    }

    /// Decodes a whole body.
    ///
    /// # Errors
    /// [`Malformed`] if anything is missing, left over or out of bounds.
    pub fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let mut rest = Reader { rest: body };
        let request = Self {
            umask: rest.u32()?,
            ignored: rest.u64()?,
            blocked: rest.u64()?,
            limits: rest.limits()?,
            fds: rest.fds()?,
            key: rest.blob()?.to_vec(),
            argv: rest.strings()?,
            environ: rest.strings()?,
        };
        if rest.rest.is_empty() {
            Ok(request)
        } else {
            Err(Malformed::Length)
        }
    }
}

fn count(len: usize) -> u32 {
    // A header bounds the body far below this; a saturated length is an error there.
    u32::try_from(len).unwrap_or(u32::MAX)
}

fn push_strings(out: &mut Vec<u8>, strings: &[Vec<u8>]) {
    out.extend(count(strings.iter().map(|s| s.len() + 1).sum()).to_le_bytes());
    for string in strings {
        out.extend(string);
        out.push(0);
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.rest.split_at_checked(len).ok_or(Malformed::Length)?;
        self.rest = tail;
        Ok(head)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        let low = u64::from(self.u32()?);
        Ok(low | u64::from(self.u32()?) << 32)
    }

    fn blob(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.u32()?;
        self.take(len as usize)
    }

    fn strings(&mut self) -> Result<Vec<Vec<u8>>, Malformed> {
        let blob = self.blob()?;
        let Some((last, body)) = blob.split_last() else {
            return Ok(Vec::new());
        };
        if *last != 0 {
            return Err(Malformed::Length);
        }
        Ok(body.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect())
    }

    fn limits(&mut self) -> Result<Vec<SoftLimit>, Malformed> {
        let n = self.u32()?;
        if n > MAX_LIMITS {
            return Err(Malformed::Bound);
        }
        (0..n)
            .map(|_| {
                Ok(SoftLimit {
                    resource: self.u32()?,
                    soft: self.u64()?,
                })
            })
            .collect()
    }

    fn fds(&mut self) -> Result<Vec<u32>, Malformed> {
        let n = self.u32()?;
        if n as usize > MAX_FDS {
            return Err(Malformed::Bound);
        }
        (0..n).map(|_| self.u32()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn string() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(1..=255u8, 0..40)
    }

    prop_compose! {
        fn request()(
            key in proptest::collection::vec(any::<u8>(), 0..200),
            argv in proptest::collection::vec(string(), 0..20),
            environ in proptest::collection::vec(string(), 0..20),
            fds in proptest::collection::vec(any::<u32>(), 0..50),
            umask in any::<u32>(), ignored in any::<u64>(), blocked in any::<u64>(),
            limits in proptest::collection::vec((any::<u32>(), any::<u64>()), 0..16),
        ) -> Request {
            let limits = limits.into_iter().map(|(resource, soft)| SoftLimit { resource, soft }).collect();
            Request { key, argv, environ, fds, umask, ignored, blocked, limits }
        }
    }

    proptest! {
        #[test]
        fn any_request_survives(request in request()) {
            prop_assert_eq!(Request::decode(&request.encode()), Ok(request));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Request::decode(&bytes);
        }

        #[test]
        fn a_cut_request_is_malformed(request in request(), cut in any::<proptest::sample::Index>()) {
            let bytes = request.encode();
            prop_assert!(Request::decode(&bytes[..cut.index(bytes.len())]).is_err());
        }

        #[test]
        fn a_flipped_byte_does_not_panic(request in request(), at in any::<proptest::sample::Index>(), with in any::<u8>()) {
            let mut bytes = request.encode();
            let at = at.index(bytes.len());
            bytes[at] ^= with;
            let _ = Request::decode(&bytes);
        }
    }
}
