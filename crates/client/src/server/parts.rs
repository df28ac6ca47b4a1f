//! The parts of a key that differ between the calls of one command, for `unsnarl warm why`.
//!
//! Invariant: a part is never more than a digest once it leaves this file.

use super::calls::Part;
use super::facts::Facts;
use super::key::{is_listed, is_relevant, name_of};
use crate::syscall::{Bytes, readlink, umask, variable};

/// Returns what of a key differs between calls of one command, the likeliest first: what imports ask the system for,
/// and variables of which the value counts. The terminal's session and limits of the process are left out.
pub(crate) fn of_call(facts: &Facts, tty: &str, environ: &[Bytes]) -> Vec<Part> {
    let (streams, size) = tty.split_once(':').unwrap_or((tty, ""));
    let of_system = [
        (facts.asks_cwd).then(|| Part::new(b"@directory", Some(&readlink(b"/proc/self/cwd").unwrap_or_default()))),
        (facts.asks_tty).then(|| Part::new(b"@streams", Some(streams.as_bytes()))),
        (facts.asks_size && !size.is_empty()).then(|| Part::new(b"@size", Some(size.as_bytes()))),
        (facts.asks_umask).then(|| Part::new(b"@umask", Some(&umask().to_ne_bytes()))),
    ];
    let ignored = variable(environ, b"UNSNARL_WARM_IGNORE").unwrap_or_default();
    let counts = |name: &[u8]| !is_listed(name, ignored);
    let read = facts.variables.iter().filter(|name| counts(name));
    let others = environ.iter().map(|entry| (name_of(entry), entry));
    of_system
        .into_iter()
        .flatten()
        .flatten()
        .chain(read.filter_map(|name| Part::new(name, variable(environ, name))))
        .chain(
            others
                .filter(|(name, _)| is_relevant(name, facts) && counts(name))
                .filter_map(|(name, entry)| Part::new(name, entry.get(name.len() + 1..))),
        )
        .collect()
}
