//! The key of a server: the text of everything that makes two calls interchangeable.
//!
//! The hash of the key names the socket. The worker compares the whole text, so a collision only costs a plain run.
//! The key contains values of the environment, so it is never written to a file.
//!
//! Invariant: if two keys are equal, everything that the command's imports have read has the same value, as far as
//! the learning run observed it.

use crate::server::against::Against;
use crate::server::facts::Facts;
use crate::server::process_state::{self, Session};
use crate::syscall::{Bytes, readlink, stat, variable};
use crate::target::{Kind, Target};

/// Variables that the interpreter or the C library read before Python code could observe it.
const NAMES: &[&str] = &[
    "TZ",
    "LANG",
    "LANGUAGE",
    "LOCPATH",
    "NLSPATH",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
];

/// The same, by prefix; C extensions commonly read the variables from OMP_ on.
const PREFIXES: &[&str] = &[
    "PYTHON",
    "LC_",
    "LD_",
    "MALLOC_",
    "UNSNARL",
    "OMP_",
    "OPENBLAS_",
    "MKL_",
    "KMP_",
    "NUMBA_",
    "CUDA_",
    "OPENSSL_",
    "SSL_",
];

/// Variables that decide which file a module's name stands for. Facts learned with one value name the files of that
/// value, and no others are watched.
const SEARCH: &[&str] = &[
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONUSERBASE",
    "PYTHONNOUSERSITE",
    "PYTHONSAFEPATH",
];

/// Variables that hold paths separated by colons. The interpreter or the dynamic linker resolves relative paths (and
/// in most of these variables an empty one) from the directory in which a process starts.
const PATHS: &[&str] = &[
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONUSERBASE",
    "PYTHONPYCACHEPREFIX",
    "LD_LIBRARY_PATH",
    "LOCPATH",
];

/// Returns the id of a command: its interpreter, options, script or module, and module search path.
pub(crate) fn command_id(target: &Target, environ: &[Bytes]) -> Option<String> {
    let mut text = b"unsnarl-command 2\0".to_vec();
    for word in target.plain_argv(&[]) {
        text.extend(word);
        text.push(0);
    }
    // A relative name leads to another file in each directory.
    text.extend(&target.file);
    text.push(0);
    for name in SEARCH {
        if let Some(value) = variable(environ, name.as_bytes()) {
            text.extend_from_slice(name.as_bytes());
            text.push(b'=');
            text.extend_from_slice(value);
            text.push(0);
        }
    }
    if starts_from_directory(target, environ) {
        text.extend(readlink(b"/proc/self/cwd")?);
    }
    Some(hash(&text))
}

/// Whether the working directory decides what the interpreter is, or finds, before any Python code runs.
fn starts_from_directory(target: &Target, environ: &[Bytes]) -> bool {
    !target.python.starts_with(b"/")
        || PATHS
            .iter()
            .filter_map(|name| variable(environ, name.as_bytes()))
            .any(|paths| !paths.is_empty() && paths.split(|b| *b == b':').any(|path| !path.starts_with(b"/")))
}

/// Builds the key; `None` if this caller must run plainly.
pub(crate) fn build(target: &Target, facts: &Facts, session: Session, tty: &str, environ: &[Bytes]) -> Option<Bytes> {
    let python = stat(&target.python)?;
    let mut key = format!(
        "unsnarl-key 1 {}\n{session:?}\n{}:{}:{}.{}:{}\n",
        env!("CARGO_PKG_VERSION"),
        python.st_dev,
        python.st_ino,
        python.st_mtime,
        python.st_mtime_nsec,
        python.st_size
    )
    .into_bytes();
    for word in target.plain_argv(&[]) {
        key.extend(word);
        key.push(0);
    }
    key.extend(&target.file);
    key.push(0);
    if facts.asks_tty {
        key.extend(tty.as_bytes());
    }
    key.push(b'\n');
    if facts.asks_cwd || starts_from_directory(target, environ) {
        key.extend(readlink(b"/proc/self/cwd")?);
    }
    key.push(b'\n');
    if facts.asks_umask {
        key.extend(format!("{:o}", crate::syscall::umask()).into_bytes());
    }
    key.push(b'\n');
    key.extend(process_state::describe()?.into_bytes());
    let ignored = variable(environ, b"UNSNARL_WARM_IGNORE").unwrap_or_default();
    for entry in relevant(environ, facts, ignored) {
        key.extend(entry);
        key.push(0);
    }
    Some(key)
}

/// Returns the relevant entries sorted by name: a shell may reorder them between two calls. Entries of one name keep
/// their order: the first one counts. Of a variable that the user wants ignored, only the name is left, or the name and
/// the sign if the value is empty: whether a variable is set, and to anything, decides more than what it is set to.
fn relevant<'a>(environ: &'a [Bytes], facts: &Facts, ignored: &[u8]) -> Vec<&'a [u8]> {
    let mut entries: Vec<&[u8]> = environ
        .iter()
        .filter(|entry| is_relevant(entry, facts))
        .map(|entry| match name_of(entry) {
            name if entry.len() > name.len() + 1 && is_named(entry, ignored) => name,
            _ => entry,
        })
        .collect();
    entries.sort_by_key(|entry| name_of(entry));
    entries
}

fn name_of(entry: &[u8]) -> &[u8] {
    entry.split(|b| *b == b'=').next().unwrap_or(entry)
}

/// Whether the user named the variable in UNSNARL_WARM_IGNORE: its value is replayed but is not part of the key.
fn is_named(entry: &[u8], names: &[u8]) -> bool {
    let name = name_of(entry);
    names.split(|b| *b == b' ').any(|n| n == name)
}

fn is_relevant(entry: &[u8], facts: &Facts) -> bool {
    let name = name_of(entry);
    NAMES.iter().any(|n| n.as_bytes() == name)
        || PREFIXES.iter().any(|p| name.starts_with(p.as_bytes()))
        || facts.variables.iter().any(|v| v == name)
}

/// Returns what the call needs that only a separate process can give, if anything.
pub(crate) fn against(target: &Target, environ: &[Bytes]) -> Option<Against> {
    const OWN_PROCESS: &[&str] = &[
        // The parent knows the process by its id, which differs from a worker's.
        "LISTEN_PID",
        "LISTEN_FDS",
        "WATCHDOG_PID",
        "NOTIFY_SOCKET",
        "UNSNARL_RUN",
        "PYTHONINSPECT",
        "PYTHONPROFILEIMPORTTIME",
        "PYTHONVERBOSE",
        "PYTHONDEBUG",
        "PYTHONDEVMODE",
        "PYTHONTRACEMALLOC",
        "PYTHONMALLOCSTATS",
        "PYTHONDUMPREFS",
        "PYTHONPERFSUPPORT",
        "PYTHONWARNINGS",
    ];
    let is_set = |name: &str| variable(environ, name.as_bytes()).is_some_and(|v| !v.is_empty());
    if variable(environ, b"UNSNARL") == Some(b"off") {
        return Some(Against::Off);
    }
    if let Some(name) = OWN_PROCESS.iter().find(|name| is_set(name)) {
        return Some(Against::Variable(name));
    }
    if variable(environ, b"PYTHONHASHSEED") == Some(b"random") {
        return Some(Against::HashSeed);
    }
    if let Some(option) = target.options.iter().find(|option| !is_allowed(option)) {
        return Some(Against::Option(option.clone()));
    }
    (target.kind == Kind::Script && !target.file.starts_with(b"/")).then_some(Against::Directory)
}

/// Whether an interpreter option still takes the next word as the script, and makes no difference to a process that a
/// worker could not make.
fn is_allowed(option: &[u8]) -> bool {
    // For X and W, the rest is the value, or the next word is.
    let letters = option
        .strip_prefix(b"-")
        .unwrap_or_default()
        .split(|b| b"XW".contains(b))
        .next()
        .unwrap_or_default();
    option.len() > 1 && option.starts_with(b"-") && letters.iter().all(|b| b"bBEIOPqsSu".contains(b))
}

/// FNV-1a, 128 bits, as 32 hexadecimal digits. (A name, not a safeguard.)
pub(crate) fn hash(text: &[u8]) -> String {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let hash = text
        .iter()
        .fold(OFFSET, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME));
    format!("{hash:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(hash(b""), "6c62272e07bb014262b821756295c58d");
        assert_eq!(hash(b"a"), "d228cb696f1a8caf78912b704e4a8964");
    }

    #[test]
    fn the_order_of_the_environment_does_not_matter() {
        let facts = Facts::default();
        let one = [b"TZ=UTC".to_vec(), b"HOME=/h".to_vec(), b"LANG=C".to_vec()];
        let other = [b"LANG=C".to_vec(), b"TZ=UTC".to_vec()];
        assert_eq!(relevant(&one, &facts, b""), relevant(&other, &facts, b""));
        let twice = [b"TZ=b".to_vec(), b"TZ=a".to_vec()];
        assert_eq!(relevant(&twice, &facts, b""), [&twice[0], &twice[1]]);
    }

    #[test]
    fn an_ignored_variable_is_unset_empty_or_set() {
        let facts = Facts::default();
        let of = |entry: &str| relevant(&[entry.into()], &facts, b"X TZ").concat();
        assert_eq!((of("TZ=UTC"), of("TZ=CET")), (b"TZ".to_vec(), b"TZ".to_vec()));
        assert_eq!((of("TZ="), of("Y=")), (b"TZ=".to_vec(), b"".to_vec()));
    }

    fn target(python: &[u8], options: &[&[u8]]) -> Target {
        Target {
            python: python.to_vec(),
            called: python.to_vec(),
            options: options.iter().map(|option| option.to_vec()).collect(),
            kind: Kind::Script,
            name: b"/v/bin/hg".to_vec(),
            file: b"/v/bin/hg".to_vec(),
        }
    }

    #[test]
    fn relative_paths_make_the_directory_matter() {
        let absolute = target(b"/v/bin/python", &[]);
        for entry in ["PYTHONPATH=/a:/b", "PYTHONPATH=", "PATH=.", "HOME=x"] {
            assert!(!starts_from_directory(&absolute, &[entry.into()]), "{entry}");
        }
        for entry in [
            "PYTHONPATH=.",
            "PYTHONPATH=/a:",
            "PYTHONPATH=/a:src",
            "LD_LIBRARY_PATH=lib",
        ] {
            assert!(starts_from_directory(&absolute, &[entry.into()]), "{entry}");
        }
        assert!(starts_from_directory(&target(b"venv/bin/python", &[]), &[]));
    }

    #[test]
    fn a_search_path_makes_another_command() {
        let command = target(b"/v/bin/python", &[]);
        let id = |entry: &str| command_id(&command, &[entry.into()]);
        assert_eq!(id("HOME=/a"), id("HOME=/b"));
        assert_ne!(id("PYTHONPATH=/a"), id("PYTHONPATH=/b"));
        assert_ne!(id("PYTHONNOUSERSITE=1"), id("HOME=/a"));
    }

    #[test]
    fn options_that_run_something_else_forbid_a_server() {
        let forbids = |option: &[u8]| against(&target(b"/v/bin/python", &[option]), &[]).is_some();
        for option in [&b"-sP"[..], b"-E", b"-OO", b"-X utf8", b"-Wignore", b"-sXdev", b"-u"] {
            assert!(!forbids(option), "{option:?}");
        }
        for option in [
            &b"-mtool"[..],
            b"-sm",
            b"-c",
            b"-i",
            b"-x",
            b"-",
            b"--version",
            b"-V",
            b"-v",
            b"",
            b"word",
        ] {
            assert!(forbids(option), "{option:?}");
        }
    }

    #[test]
    fn learned_variables_are_relevant() {
        let facts = Facts::default();
        assert!(is_relevant(b"LC_ALL=C", &facts) && is_relevant(b"TZ=UTC", &facts));
        assert!(!is_relevant(b"PWD=/h", &facts) && !is_relevant(b"HOMER=x", &facts));
    }
}
