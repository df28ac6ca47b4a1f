//! Becomes the plain command, whenever anything is in doubt.
//!
//! Invariant: these functions do not return; only the process id of the client survives them.

use crate::syscall::{Bytes, complain, errno, exec, exit};
use crate::target::Target;

/// Becomes the plain command.
pub(crate) fn run(target: &Target, args: &[Bytes], environ: &[Bytes]) -> ! {
    let mut argv = target.plain_argv(args);
    argv[0].clone_from(&target.called);
    exec(&target.python, &argv, environ);
    if errno() == libc::ENOENT {
        // execve(2) says the same of a program whose loader is not there, and of a script whose interpreter is not.
        if target.has_interpreter() {
            fail_without_loader_of(&target.python);
        }
        fail_without_interpreter_of(target);
    }
    fail(&target.python)
}

/// Reports that the interpreter of a command is not there; the exit status is that of a shell.
pub(crate) fn fail_without_interpreter_of(target: &Target) -> ! {
    let python = String::from_utf8_lossy(&target.python);
    let name = String::from_utf8_lossy(&target.name);
    complain(&if target.is_named_by_script() {
        format!(
            "error: no such interpreter: {python}, which the first line of {name} names\n\
             hint: install {name} again, or mend that line\n"
        )
    } else {
        format!("error: no such interpreter: {python}\nhint: check the path; {DISABLE}\n")
    });
    exit(127)
}

/// Reports that what starts an interpreter is not there; the exit status is that of a shell.
fn fail_without_loader_of(python: &[u8]) -> ! {
    complain(&format!(
        "error: cannot be executed: {}\n\
         hint: the loader or the interpreter that this file names is not there: install it again\n",
        String::from_utf8_lossy(python)
    ));
    exit(127)
}

const DISABLE: &str = "`unsnarl warm disable` removes the shim of an environment that is gone";

/// Becomes a program that is not a known Python command.
pub(crate) fn run_words(words: &[Bytes], environ: &[Bytes]) -> ! {
    if let Some(file) = crate::target::find(&words[0], environ) {
        exec(&file, words, environ);
        if errno() == libc::ENOEXEC {
            // A shell and execvp(3) do the same.
            let shell = b"/bin/sh".to_vec();
            let argv: Vec<Bytes> = [shell.clone(), file]
                .into_iter()
                .chain(words[1..].iter().cloned())
                .collect();
            exec(&shell, &argv, environ);
        }
    }
    fail(&words[0])
}

/// Reports that `what` could not be executed; the exit statuses are those of a shell.
pub(crate) fn fail(what: &[u8]) -> ! {
    fail_with(what, "check the name, the path and its permissions")
}

/// Reports that what a shim names could not be executed.
pub(crate) fn fail_shim(shim: &[u8]) -> ! {
    fail_with(shim, DISABLE)
}

/// Reports that the interpreter next to this executable could not be executed.
pub(crate) fn fail_without_interpreter(python: &[u8]) -> ! {
    fail_with(
        python,
        "unsnarl needs the interpreter beside it, and there is none: make the environment again, and install it there",
    )
}

fn fail_with(what: &[u8], hint: &str) -> ! {
    let missing = errno() == libc::ENOENT || !what.contains(&b'/');
    let reason = if missing {
        "no such command"
    } else {
        "cannot be executed"
    };
    complain(&format!(
        "error: {reason}: {}\nhint: {hint}\n",
        String::from_utf8_lossy(what)
    ));
    exit(if missing { 127 } else { 126 })
}
