//! The reasons for which a call runs plainly before a server is asked, in words for `unsnarl warm why`.
//!
//! Must never decide: the plan does.

use crate::syscall::Bytes;

/// Why no server may take a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Against {
    /// `UNSNARL=off`.
    Off,
    /// This variable requires a process of its own.
    Variable(&'static str),
    /// `PYTHONHASHSEED=random`.
    HashSeed,
    /// This option of the interpreter.
    Option(Bytes),
    /// The interpreter is a script.
    Lookup,
    /// There is no interpreter at this path, which the first line of the script names, or someone else.
    Interpreter { path: Bytes, is_named_by_script: bool },
    /// The environment is so large that its size decides something in the command's imports.
    Environment,
    /// A relative script whose directory cannot be read.
    Directory,
    /// The runtime directory is not this user's alone.
    Untrusted(Bytes),
    /// The file system of the runtime directory is full.
    Full(Bytes),
    /// The leader of the session is in another pid namespace.
    Session,
    /// No shell could continue the job.
    Orphaned,
    /// The command's facts say so.
    Learned,
    /// The state of the process cannot be compared: seccomp, `no_new_privs`, set-id.
    State,
}

impl Against {
    /// Returns the reason and the next step as one line.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Off => "UNSNARL=off is set: unset it".into(),
            Self::Variable(name) => format!("{name} is set, and asks for a process of its own: unset it"),
            Self::HashSeed => "PYTHONHASHSEED=random asks for another seed in each run: unset it".into(),
            Self::Option(option) => format!(
                "the script's first line gives the interpreter the option {}",
                String::from_utf8_lossy(option)
            ),
            Self::Lookup => {
                "the interpreter is a script that looks for one (pyenv, asdf): name the one it finds".into()
            }
            Self::Interpreter {
                path,
                is_named_by_script,
            } => format!(
                "there is no interpreter {}: {}",
                String::from_utf8_lossy(path),
                interpreter_cure(*is_named_by_script)
            ),
            Self::Environment => "its environment is larger than a mebibyte, and its imports ask for the size".into(),
            Self::Directory => "the working directory cannot be read: name the script by its absolute path".into(),
            Self::Untrusted(path) => format!(
                "the runtime directory {} is no directory that is yours alone: set UNSNARL_WARM_DIR to another one",
                String::from_utf8_lossy(path)
            ),
            Self::Full(path) => format!(
                "the runtime directory {} has no room left: free some space, or set UNSNARL_WARM_DIR to another one",
                String::from_utf8_lossy(path)
            ),
            Self::Session => "this session was started in another pid namespace".into(),
            Self::Orphaned => {
                "a worker could be stopped from this terminal and never continued: start it from a shell \
                               with job control, or without a terminal: `setsid --wait CMD`"
                    .into()
            }
            Self::Learned => "its imports rule it out".into(),
            Self::State => {
                "this process is confined by seccomp, no_new_privs or a set-user-id program, which a worker \
                            cannot be"
                    .into()
            }
        }
    }
}

/// Returns what to do where an interpreter is missing that the first line of a script names, or someone else.
pub(crate) fn interpreter_cure(is_named_by_script: bool) -> &'static str {
    if is_named_by_script {
        "install the command again, or mend its first line"
    } else {
        "check the path"
    }
}
