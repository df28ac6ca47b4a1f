//! Executes the interpreter with the program and the settings of `unsnarl run`.
//!
//! The settings are those of `python/unsnarl/run_settings.py`. Two of them only an interpreter knows: `abi` and
//! `prefix` are `?`, and `_unsnarl_boot` replaces them in the process that `main_pid` names.

use super::environment::Environment;
use super::program;
use super::request::{self, Request};
use crate::syscall::{Bytes, exec, variable};

/// The variable that carries the settings.
const VARIABLE: &[u8] = b"UNSNARL_RUN=";

/// Becomes the program of `unsnarl run WORDS...`, whose environment has its scripts in `scripts`. Returns if anything
/// is in doubt; nothing has happened then.
pub(crate) fn launch(words: &[Bytes], scripts: Option<Bytes>, environ: &[Bytes]) {
    let Some((environment, argv, environ)) = prepared(words, scripts, environ) else {
        return;
    };
    exec(&environment.python, &argv, &environ);
}

fn prepared(
    words: &[Bytes],
    scripts: Option<Bytes>,
    environ: &[Bytes],
) -> Option<(Environment, Vec<Bytes>, Vec<Bytes>)> {
    let request = request::parse(words)?;
    let environment = Environment::at(scripts?, environ)?;
    let program = program::words(&request, &environment, environ)?;
    let argv = [environment.python.clone()].into_iter().chain(program).collect();
    let settings = (variable(environ, b"UNSNARL") != Some(b"off")).then(|| settings(&request, std::process::id()));
    let kept = environ.iter().filter(|entry| !entry.starts_with(VARIABLE)).cloned();
    Some((environment, argv, kept.chain(settings).collect()))
}

/// Returns the entry of the environment.
fn settings(request: &Request, pid: u32) -> Bytes {
    let yes_no = |is_set: bool| if is_set { "yes" } else { "no" };
    let slice = request
        .slice_ms
        .map(|slice_ms| format!("slice_ms={slice_ms:?} "))
        .unwrap_or_default();
    let text = format!(
        "{slice}kernel_hints={} children={} stats={} patch={} green=no pack= main_pid={pid} abi=? prefix=?",
        yes_no(request.kernel_hints),
        yes_no(request.children),
        request.stats,
        yes_no(request.patch),
    );
    [VARIABLE, text.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_what_python_reads() {
        let words = [&b"--slice"[..], b"5", b"--stats=all", b"-c", b"pass"].map(<[u8]>::to_vec);
        let request = request::parse(&words).unwrap();
        assert_eq!(
            settings(&request, 4711),
            b"UNSNARL_RUN=slice_ms=5.0 kernel_hints=yes children=yes stats=all patch=no green=no pack= main_pid=4711 \
              abi=? prefix=?"
        );
    }
}
