//! Which client this is: a name for all time, and what `unsnarl cluster list` shows of it.
//!
//! Invariant: no two clients have one name, in whatever processes; a fork makes a new one.

/// What a client says of itself.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// 16 hexadecimal digits, by chance.
    pub(crate) client: String,
    host: String,
    pid: u32,
}

impl Identity {
    pub(crate) fn new() -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self {
            client: format!("{:016x}", random()),
            host,
            pid: std::process::id(),
        }
    }

    /// Host and pid in one word, to be kept in the store.
    pub(crate) fn words(&self) -> String {
        format!("{}/{}", self.pid, self.host)
    }

    /// Reads what `words` wrote.
    pub(crate) fn read(words: &str) -> (String, u32) {
        let (pid, host) = words.split_once('/').unwrap_or(("", words));
        (host.to_owned(), pid.parse().unwrap_or(0))
    }
}

/// Returns a number between 1 and 2^63 - 1, which is also what etcd takes for the id of a lease.
pub(crate) fn random() -> u64 {
    let mut bytes = [0_u8; 8];
    // Cannot fail for so few bytes, once the kernel has started (getrandom(2)).
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    (u64::from_ne_bytes(bytes) >> 1).max(1)
}
