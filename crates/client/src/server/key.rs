//! The key of a server: the text of everything that makes two calls interchangeable.
//!
//! The hash of the key names the socket. The worker compares the whole text, so a collision only costs a plain run.
//! The key contains values of the environment, so it is never written to a file (`parts` are, as digests).
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
    "LC_ALL",
    "LC_CTYPE",
    "LOCPATH",
    "NLSPATH",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    // Python/initconfig.c, Python/pylifecycle.c, Modules/main.c and Modules/getpath.py of CPython 3.11 to 3.15, without
    // those with which a command always runs plainly ([`forbids_server`]).
    "PYTHONASYNCIODEBUG",
    "PYTHONBREAKPOINT",
    "PYTHONCASEOK",
    "PYTHONCOERCECLOCALE",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONEXECUTABLE",
    "PYTHONFAULTHANDLER",
    "PYTHONHASHSEED",
    "PYTHONHOME",
    "PYTHONINTMAXSTRDIGITS",
    "PYTHONIOENCODING",
    "PYTHONLEGACYWINDOWSSTDIO",
    "PYTHONMALLOC",
    "PYTHONNODEBUGRANGES",
    "PYTHONNOUSERSITE",
    "PYTHONOPTIMIZE",
    "PYTHONPATH",
    "PYTHONPLATLIBDIR",
    "PYTHONPYCACHEPREFIX",
    "PYTHONSAFEPATH",
    "PYTHONSTARTUP",
    "PYTHONTHREADDEBUG",
    "PYTHONUNBUFFERED",
    "PYTHONUSERBASE",
    "PYTHONUTF8",
    "PYTHONWARNDEFAULTENCODING",
    "PYTHON_BASIC_REPL",
    "PYTHON_COLORS",
    "PYTHON_CONTEXT_AWARE_WARNINGS",
    "PYTHON_CPU_COUNT",
    "PYTHON_DISABLE_REMOTE_DEBUG",
    "PYTHON_FROZEN_MODULES",
    "PYTHON_GIL",
    "PYTHON_HISTORY",
    "PYTHON_JIT",
    "PYTHON_LAZY_IMPORTS",
    "PYTHON_PERF_JIT_SUPPORT",
    "PYTHON_PRESITE",
    "PYTHON_THREAD_INHERIT_CONTEXT",
    "PYTHON_TLBC",
    "__PYVENV_LAUNCHER__",
];

/// The same, by prefix.
const PREFIXES: &[&str] = &["LD_", "MALLOC_", "UNSNARL"];

/// Variables of ours that only say whether a server is started.
const OF_STARTS: &[&str] = &["UNSNARL_WARM_SPEND", "UNSNARL_WARM_FROZEN", "UNSNARL_WARM_ASKED"];

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
        "unsnarl-key 2 {}\n{session:?}\n{}:{}:{}.{}:{}\n",
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
    let (streams, size) = tty.split_once(':').unwrap_or((tty, ""));
    if facts.asks_tty {
        key.extend(streams.as_bytes());
    }
    if facts.asks_size && streams.contains('1') {
        if size.is_empty() {
            return None; // which of several sizes the imports would ask for is unknown
        }
        key.extend(size.as_bytes());
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
    for (name, value) in relevant(environ, facts, ignored, has_user_site(facts, environ)) {
        key.extend(name);
        key.extend(value);
        key.push(0);
    }
    for name in walked(environ, facts) {
        key.extend(name);
        key.push(0);
    }
    Some(key)
}

/// Whether the user's own packages exist: then the home directory decides which modules are found.
fn has_user_site(facts: &Facts, environ: &[Bytes]) -> bool {
    let (Some(path), Some(home)) = (&facts.user_site, variable(environ, b"HOME")) else {
        return false;
    };
    stat(&[home, b"/", path].concat()).is_some_and(|found| found.st_mode & libc::S_IFMT == libc::S_IFDIR)
}

/// Returns names of variables with what of them belongs to the key, sorted by name: a shell may reorder them between
/// two calls. Entries of one name keep their order: the first one counts.
fn relevant<'a>(environ: &'a [Bytes], facts: &Facts, ignored: &[u8], is_home: bool) -> Vec<(&'a [u8], &'a [u8])> {
    let mut parts: Vec<(&[u8], &[u8])> = environ
        .iter()
        .filter_map(|entry| {
            let name = name_of(entry);
            let value = &entry[name.len()..];
            if is_listed(name, ignored) {
                Some((name, kind_of(value)))
            } else if is_relevant(name, facts) || (is_home && name == b"HOME") {
                Some((name, value))
            } else if facts.kept.iter().any(|kept| kept == name) {
                Some((name, kind_of(value)))
            } else {
                None
            }
        })
        .collect();
    parts.sort_by_key(|(name, _)| *name);
    parts
}

pub(super) fn name_of(entry: &[u8]) -> &[u8] {
    entry.split(|b| *b == b'=').next().unwrap_or(entry)
}

/// Returns the names of the variables that a walk through the environment finds, in the order in which it does.
fn walked<'a>(environ: &'a [Bytes], facts: &'a Facts) -> impl Iterator<Item = &'a [u8]> {
    environ
        .iter()
        .map(|entry| name_of(entry))
        .filter(|name| facts.walks.iter().any(|prefix| name.starts_with(prefix)))
}

/// Whether a list of names, separated by spaces, has this one. The user names in UNSNARL_WARM_IGNORE variables that
/// are only kept.
pub(super) fn is_listed(name: &[u8], names: &[u8]) -> bool {
    names.split(|b| *b == b' ').any(|n| n == name)
}

/// The kind of a kept value, given with its sign: code that only keeps a value may still have asked whether it is empty,
/// and may have joined it with other paths, which takes an absolute path in its normal form.
fn kind_of(value: &[u8]) -> &'static [u8] {
    match value.strip_prefix(b"=").unwrap_or_default() {
        b"" => b" is empty",
        path if is_normal(path) => b" is a path",
        _ => b" is set",
    }
}

/// Whether this is an absolute path, other than `/`, that no normalisation changes.
fn is_normal(path: &[u8]) -> bool {
    path.strip_prefix(b"/").is_some_and(|rest| {
        rest.split(|b| *b == b'/')
            .all(|part| !part.is_empty() && part != b"." && part != b"..")
    })
}

pub(super) fn is_relevant(name: &[u8], facts: &Facts) -> bool {
    if OF_STARTS.iter().any(|n| n.as_bytes() == name) {
        return false;
    }
    NAMES.iter().any(|n| n.as_bytes() == name)
        || PREFIXES.iter().any(|p| name.starts_with(p.as_bytes()))
        || facts.prefixes.iter().any(|p| name.starts_with(p))
        || facts.variables.iter().any(|v| v == name)
}

/// Largest environment, in bytes, where imports keep a bound that is the same for all smaller ones
/// (`unsnarl.warm.learning.environment_walk`), and what each entry takes beside its text.
const LARGEST: usize = 1 << 20;
const POINTER: usize = 9;

/// Whether the environment is so large that such a bound may be another one.
pub(crate) fn is_large(environ: &[Bytes]) -> bool {
    environ.iter().map(|entry| entry.len() + POINTER).sum::<usize>() > LARGEST
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
        assert_eq!(relevant(&one, &facts, b"", false), relevant(&other, &facts, b"", false));
        let twice = [b"TZ=b".to_vec(), b"TZ=a".to_vec()];
        assert_eq!(
            relevant(&twice, &facts, b"", false),
            [(&b"TZ"[..], &b"=b"[..]), (b"TZ", b"=a")]
        );
    }

    #[test]
    fn the_order_matters_where_imports_walk() {
        let facts = Facts {
            prefixes: vec![b"OMP_".to_vec(), b"Q_".to_vec()],
            walks: vec![b"Q_".to_vec()],
            ..Facts::default()
        };
        let one = ["Q_B=1", "OMP_A=1", "Q_A=2", "OMP_B=1"].map(Bytes::from);
        let other = ["OMP_B=1", "Q_A=2", "OMP_A=1", "Q_B=1"].map(Bytes::from);
        let names = |environ| walked(environ, &facts).collect::<Vec<_>>();
        assert_eq!(names(&one), [b"Q_B", b"Q_A"]);
        assert_eq!(names(&other), [b"Q_A", b"Q_B"]);
        assert_eq!(relevant(&one, &facts, b"", false), relevant(&other, &facts, b"", false));
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
        let facts = Facts {
            variables: vec![b"HGUSER".to_vec()],
            prefixes: vec![b"OMP_".to_vec()],
            ..Facts::default()
        };
        for name in ["LC_ALL", "TZ", "PYTHONHASHSEED", "HGUSER", "OMP_NUM_THREADS"] {
            assert!(is_relevant(name.as_bytes(), &facts), "{name}");
        }
        for name in [
            "UNSNARL_WARM_SPEND",
            "PWD",
            "HOME",
            "HGUSERS",
            "PYTHON_VERSION",
            "LC_TIME",
            "SSL_CERT_FILE",
        ] {
            assert!(!is_relevant(name.as_bytes(), &facts), "{name}");
        }
    }

    #[test]
    fn of_a_kept_variable_only_the_kind_matters() {
        let facts = Facts {
            kept: vec![b"A".to_vec()],
            ..Facts::default()
        };
        let part = |entry: &str| {
            let environ = [Bytes::from(entry)];
            let by_facts = relevant(&environ, &facts, b"", false)
                .first()
                .map(|part| part.1.to_vec());
            let by_name = relevant(&environ, &Facts::default(), b"C A", false);
            assert_eq!(by_facts, by_name.first().map(|part| part.1.to_vec()));
            by_facts
        };
        assert_eq!(part("A=1"), part("A=x/y"));
        assert_eq!(part("A=/x/1"), part("A=/y"));
        let kinds = ["A=", "A=1", "A=/x", "B=1"].map(part);
        for (at, kind) in kinds.iter().enumerate() {
            assert!(!kinds[..at].contains(kind));
        }
        for path in ["A=/", "A=//x", "A=/x/", "A=/x/../y", "A=/./x"] {
            assert_eq!(part(path), part("A=1"), "{path}");
        }
    }
}
