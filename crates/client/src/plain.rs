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
    fail(&target.python)
}

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
    fail_with(
        what,
        "check the path, or run `unsnarl warm disable` for a shim of a removed environment",
    )
}

/// Reports that the interpreter next to this executable could not be executed.
pub(crate) fn fail_without_interpreter(python: &[u8]) -> ! {
    fail_with(
        python,
        "the interpreter of this environment was removed: make the environment anew, and install unsnarl there",
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
