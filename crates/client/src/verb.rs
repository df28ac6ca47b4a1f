//! The verbs of the executable: the fast ones run here, all others in Python.
//!
//! | words | effect |
//! |---|---|
//! | `--shim FILE args…` (what a shim runs) | that command, warm or plain |
//! | `warm run [--] CMD args…` | the same without a shim |
//! | `warm run --require [--] CMD args…` | warm, or not at all |
//! | `warm run --frozen [--] CMD args…` | warm if it was learned before, else plain; nothing is learned |
//! | `warm start [--] CMD` | start the command's server and wait until it serves |
//! | `warm why [--] CMD args…` | describe the call, then `unsnarl.cli` |
//! | `run …` | the program with the scheduler; what [`crate::run`] does not handle goes to Python |
//! | `--warm-serve …` | second step of a start, see [`crate::server::start`] |
//! | anything else | `unsnarl.cli` in the Python next to this file |
//!
//! Must never import Python code that the verb does not need.
//!
//! Invariant: a verb ends in an `exit` or an `exec`.

use crate::call::Declined;
use crate::call::handover::{self, Call};
use crate::plain;
use crate::run::launch;
use crate::server::against::{Against, interpreter_cure};
use crate::server::economy;
use crate::server::facts::Facts;
use crate::server::key;
use crate::server::plan::{Plan, is_orphaned_job};
use crate::server::process_state::{self, Session, own_directory};
use crate::server::runtime_directory::RuntimeDirectory;
use crate::server::start;
use crate::syscall::{Bytes, complain, exec, exit, stat, unlink};
use crate::target::{self, Target};
use crate::why;
use core::ffi::c_int;

/// The fallback of a call that no worker takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fallback {
    /// The command runs plainly.
    Plain,
    /// The command runs plainly, and nothing is learned.
    Frozen,
    /// It does not run: the caller wants to know, as a test does.
    Refuse,
}

/// Exit status of a call with `--require` that no worker took: `EX_UNAVAILABLE` of sysexits.h.
const NOT_WARM: c_int = 69;

/// Runs the verb that the words name.
pub(crate) fn dispatch(args: &[Bytes], environ: Vec<Bytes>) -> c_int {
    let words: Vec<&[u8]> = args.iter().skip(1).map(Vec::as_slice).collect();
    match words.as_slice() {
        [b"--shim", file, ..] => match Target::from_file(file, &environ) {
            Some(target) => run(&target, &args[3..], &environ, Fallback::Plain),
            None => without_interpreter(file, &args[3..], &environ),
        },
        [b"warm", b"run", b"--require", b"--", ..] => run_words(&args[5..], &environ, Fallback::Refuse),
        [b"warm", b"run", b"--require", ..] => run_words(&args[4..], &environ, Fallback::Refuse),
        [b"warm", b"run", b"--frozen", b"--", ..] => run_words(&args[5..], &environ, Fallback::Frozen),
        [b"warm", b"run", b"--frozen", ..] => run_words(&args[4..], &environ, Fallback::Frozen),
        [b"warm", b"run", b"--", ..] => run_words(&args[4..], &environ, Fallback::Plain),
        [b"warm", b"run", word, ..] if !word.starts_with(b"-") => run_words(&args[3..], &environ, Fallback::Plain),
        [b"warm", b"start", b"--", ..] => start_words(&args[4..], &environ),
        [b"warm", b"start", word, ..] if !word.starts_with(b"-") => start_words(&args[3..], &environ),
        [b"warm", b"why", b"--", ..] => why(args, &args[4..], &environ),
        [b"warm", b"why", word, ..] if !word.starts_with(b"-") => why(args, &args[3..], &environ),
        [b"--warm-serve", ..] => serve(&args[2..], &environ),
        [b"run", ..] => {
            launch(&args[2..], own_directory(), &environ);
            python(args, &environ)
        }
        _ => python(args, &environ),
    }
}

/// Runs the script of a shim whose interpreter is missing or no longer an interpreter: the script itself reports
/// that.
fn without_interpreter(shim: &[u8], args: &[Bytes], environ: &[Bytes]) -> ! {
    if let Some(script) = Target::script_of_shim(shim) {
        let words: Vec<Bytes> = [script].into_iter().chain(args.iter().cloned()).collect();
        plain::run_words(&words, environ);
    }
    plain::fail_shim(shim)
}

/// Hands the description of a call to Python, where there is such a command.
fn why(args: &[Bytes], words: &[Bytes], environ: &[Bytes]) -> ! {
    let split: Vec<Bytes> = match words {
        // A quoted command line.
        [one] if one.starts_with(b"python") => one.split(|b| *b == b' ').map(<[u8]>::to_vec).collect(),
        _ => words.to_vec(),
    };
    let Some(call) = why::describe(&split, environ) else {
        python(args, environ);
    };
    let head = [&args[0][..], b"warm", b"why", b"--call", call.as_bytes()].map(<[u8]>::to_vec);
    python(&[&head[..], &split].concat(), environ)
}

/// What the interpreter executes. An update of the interpreter to another minor version leaves this file where it is,
/// but its packages in the directory of the earlier version.
const CODE: &[u8] = b"import sys
try:
 from unsnarl.cli import main
except ModuleNotFoundError as error:
 if error.name != 'unsnarl':
  raise
 sys.exit(f'error: unsnarl is not installed for {sys.executable}, which is Python {sys.version.split()[0]}\\n'
  f'hint: after an update of the interpreter, run `{sys.executable} -m pip install unsnarl`')
sys.exit(main())";

fn python(args: &[Bytes], environ: &[Bytes]) -> ! {
    let python = [&own_directory().unwrap_or_default()[..], b"/python"].concat();
    let mut argv = vec![python.clone()];
    argv.extend([&b"-P"[..], b"-c", CODE].map(<[u8]>::to_vec));
    argv.extend(args.iter().skip(1).cloned());
    exec(&python, &argv, environ);
    plain::fail_without_interpreter(&python)
}

fn run_words(words: &[Bytes], environ: &[Bytes], fallback: Fallback) -> ! {
    if words.is_empty() {
        usage("warm run -- CMD [args]");
    }
    match Target::from_words(words, environ) {
        Some((target, used)) => run(&target, &words[used..], environ, fallback),
        None if fallback == Fallback::Refuse => not_warm(None),
        None => plain::run_words(words, environ),
    }
}

fn usage(words: &str) -> ! {
    complain(&format!("error: no command given\nhint: unsnarl {words}\n"));
    exit(2)
}

/// Reports that no server can be started for a command: it is missing, or not a Python script.
fn not_python(word: &[u8], environ: &[Bytes]) -> ! {
    if target::find(word, environ).and_then(|file| stat(&file)).is_none() {
        plain::fail(word);
    }
    let is_archive = target::find(word, environ).is_some_and(|file| target::is_archive(&file));
    let word = String::from_utf8_lossy(word);
    complain(&if is_archive {
        format!("error: an archive without a first line, which no kernel starts: {word}\nhint: name `python {word}`\n")
    } else {
        format!(
            "error: no Python command: {word}\nhint: name a console script, `python SCRIPT` or `python -m MODULE`\n"
        )
    });
    exit(2)
}

/// Returns the next step for a user whose command runs plainly: `usual`, unless its name or this process's state
/// forbids a worker.
fn hint(target: Option<&Target>, usual: &str) -> String {
    if let Some(target) = target.filter(|target| !target.has_interpreter()) {
        let cure = interpreter_cure(target.is_named_by_script());
        return format!("its interpreter is not there: {cure}");
    }
    let words = if target.is_some_and(|target| !target.names_a_program()) {
        "the interpreter is a script that looks for one (pyenv, asdf): name the one it finds, or use an environment of its own"
    } else if process_state::session().is_some_and(is_orphaned_job) {
        "a worker could be stopped from this terminal and never continued; start it from a shell with job control, or without a terminal: `setsid --wait CMD`"
    } else {
        usual
    };
    words.to_owned()
}

fn not_warm(target: Option<&Target>) -> ! {
    complain(&format!(
        "error: no warm worker took the command, and --require rules out a plain run\nhint: {}\n",
        hint(
            target,
            "`unsnarl warm start -- CMD` waits for its server, \
             `unsnarl warm why CMD` and `unsnarl warm logs` say what is against it"
        )
    ));
    exit(NOT_WARM)
}

fn run(target: &Target, args: &[Bytes], environ: &[Bytes], fallback: Fallback) -> ! {
    if let Ok(plan) = Plan::make(target, environ).map_err(drop)
        && !plan.is_silent()
    {
        let socket = plan.socket();
        let shares_terminal = plan.session != Session::Detached;
        let call = Call {
            socket: &socket,
            key: plan.key.clone(),
            args,
            environ,
            shares_terminal,
        };
        match handover::run(call) {
            // Checked only here: if a server exists, it was not refused.
            Declined::NoServer if target.names_a_program() && !plan.is_refused() => {
                provide(&plan, target, environ, fallback);
            }
            Declined::Silent => plan.note_silence(),
            Declined::NoServer | Declined::Refused => {}
        }
    }
    if fallback == Fallback::Refuse {
        not_warm(Some(target));
    }
    plain::run(target, args, environ)
}

/// Starts a server for calls like this one, if that is allowed and pays.
fn provide(plan: &Plan, target: &Target, environ: &[Bytes], fallback: Fallback) {
    let is_frozen = fallback == Fallback::Frozen || economy::is_frozen(environ);
    if is_frozen && plan.is_unknown() {
        return;
    }
    // A caller that requires a server has the next call in mind, not the account.
    if (!plan.pays(environ) && fallback != Fallback::Refuse) || plan.directory.is_full() {
        return;
    }
    let flag = is_frozen.then(|| [economy::FROZEN, b"=1"].concat());
    let environ: Vec<Bytes> = flag.into_iter().chain(environ.iter().cloned()).collect();
    start::in_background(&plan.start(target, &environ));
}

/// How many steps of [`STEP_MS`] `warm start` waits.
const STEPS: u32 = 6000;
const STEP_MS: c_int = 10;

fn start_words(words: &[Bytes], environ: &[Bytes]) -> ! {
    let Some(word) = words.first() else {
        usage("warm start -- CMD");
    };
    let Some((target, _)) = Target::from_words(words, environ) else {
        not_python(word, environ);
    };
    if !target.has_interpreter() {
        plain::fail_without_interpreter_of(&target);
    }
    forget_verdicts(&target, environ);
    // A start by hand is not charged to the command's account (`unsnarl.warm.ledger`).
    let asked = [&[b"UNSNARL_WARM_ASKED=1".to_vec()], environ].concat();
    for _ in 0..STEPS {
        // Planned again each time: learning changes the key.
        let plan = Plan::make(&target, environ).ok();
        let Some(plan) = plan.filter(|plan| target.names_a_program() && !plan.is_refused()) else {
            complain(&format!(
                "error: this command is run plainly here\nhint: {}\n",
                hint(Some(&target), "`unsnarl warm why CMD` says why")
            ));
            exit(1)
        };
        if handover::is_served(&plan.socket()) {
            plan.forget_silence();
            exit(0);
        }
        if plan.directory.is_full() {
            let reason = Against::Full(plan.directory.path).words();
            complain(&format!("error: no server can start\nhint: {reason}\n"));
            exit(1)
        }
        start::in_background(&plan.start(&target, &asked));
        // SAFETY: no descriptors, a number.
        unsafe { libc::poll(core::ptr::null_mut(), 0, STEP_MS) };
    }
    complain("error: no server came up within a minute\nhint: see `unsnarl warm logs`\n");
    exit(1)
}

/// Forgets that the command was found to run plainly: a user who asks for a server has it learned again.
fn forget_verdicts(target: &Target, environ: &[Bytes]) {
    let Some(directory) = RuntimeDirectory::open(environ) else {
        return;
    };
    let Some(command_id) = key::command_id(target, environ) else {
        return;
    };
    let facts = directory.file(&command_id, ".rec");
    if Facts::read(&facts).is_some_and(|facts| facts.is_plain) {
        unlink(&facts);
    } else if let Some(plan) = Plan::make(target, environ).ok().filter(Plan::is_refused) {
        unlink(&directory.file(&plan.key_id, ".rec"));
    }
}

/// `--warm-serve TTY KIND NAME PYTHON [options]`
fn serve(words: &[Bytes], environ: &[Bytes]) -> c_int {
    let [tty, kind, name, python, options @ ..] = words else {
        return 2;
    };
    let target = Target::from_kind_word(kind, name, python, options);
    let tty = String::from_utf8_lossy(tty).into_owned();
    let Some(plan) = Plan::of_learned(&target, environ, tty) else {
        return 1;
    };
    start::in_place(&plan.start(&target, environ))
}
