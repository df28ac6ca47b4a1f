//! `unsnarl warm why CMD [ARGS]`: finds what this very call meets, and hands it to `unsnarl.cli.warm` to be shown.
//!
//! Lines of text:
//!
//! | line | meaning |
//! |---|---|
//! | `record ID` | the stem of the command's facts |
//! | `key ID` | the stem of the files of this call's server |
//! | `plain REASON` | the call runs plainly |
//! | `refused` | an earlier start found that there can be no server of this key |
//! | `silent` | the server did not answer a call within the last minute |
//! | `served` | a worker would take the call now |
//! | `frozen` | nothing is learned, since `UNSNARL_WARM_FROZEN` is set |
//! | `calls COUNT MORE` | no server waits: so many calls ran plainly, and so many more pay for one, or `never` |
//! | `varied NAME VALUES CALLS …` | these parts of keys (`server/parts.rs`) had so many values in so many plain calls |
//!
//! Must never start a server, nor run the command.

use crate::call::handover;
use crate::server::against::Against;
use crate::server::calls::Calls;
use crate::server::economy;
use crate::server::key;
use crate::server::plan::Plan;
use crate::syscall::{Bytes, stat};
use crate::target::{self, Target};

/// Describes a call; `None` if there is no such command.
pub(crate) fn describe(words: &[Bytes], environ: &[Bytes]) -> Option<String> {
    let Some((target, _)) = Target::from_words(words, environ) else {
        return Some(format!("plain {}\n", no_target(words, environ)?));
    };
    let mut text = String::new();
    if let Some(id) = key::command_id(&target, environ) {
        text += &format!("record {id}\n");
    }
    // Before the plan: a key is made of the interpreter's file.
    if !target.has_interpreter() {
        let reason = Against::Interpreter {
            is_named_by_script: target.is_named_by_script(),
            path: target.python,
        };
        text += &format!("plain {}\n", reason.words());
        return Some(text);
    }
    match Plan::make(&target, environ) {
        Err(Against::Learned) => {}
        Err(against) => text += &format!("plain {}\n", against.words()),
        Ok(_) if !target.names_a_program() => text += &format!("plain {}\n", Against::Lookup.words()),
        Ok(plan) => {
            text += &format!("key {}\n", plan.key_id);
            let (calls, more) = plan.lacking(environ);
            text += &varied(&calls);
            if plan.is_refused() {
                text += "refused\n";
            } else if plan.is_silent() {
                text += "silent\n";
            } else if handover::is_served(&plan.socket()) {
                text += "served\n";
            } else if plan.directory.is_full() {
                text += &format!("plain {}\n", Against::Full(plan.directory.path.clone()).words());
            } else {
                if economy::is_frozen(environ) {
                    text += "frozen\n";
                }
                let more = more.map_or_else(|| "never".to_owned(), |more| more.to_string());
                text += &format!("calls {} {more}\n", calls.all());
            }
        }
    }
    Some(text)
}

/// Returns the line about parts of keys that had several values; nothing if none had.
fn varied(calls: &Calls) -> String {
    let parts = calls.varied();
    let words: String = parts
        .iter()
        .map(|part| format!(" {} {} {}", part.name, part.values, part.calls))
        .collect();
    if words.is_empty() {
        words
    } else {
        format!("varied{words}\n")
    }
}

/// Returns why words that name a program are no Python command.
fn no_target(words: &[Bytes], environ: &[Bytes]) -> Option<&'static str> {
    let file = target::find(words.first()?, environ)?;
    let found = stat(&file)?;
    Some(if found.st_mode & libc::S_IFMT == libc::S_IFDIR {
        "it is a directory: name a command in it, or a directory with a `__main__.py` after its interpreter, as in \
         `unsnarl warm run -- python DIRECTORY`"
    } else if target::is_python(&file) {
        "only a script or `-m MODULE`, right after the interpreter, can be warm: no option of the interpreter, no code \
         as an argument or on the standard input"
    } else if target::is_archive(&file) {
        "it is an archive without a first line, which no kernel starts: `unsnarl warm run -- python FILE`"
    } else {
        "it is no Python script, so there is nothing to import ahead"
    })
}
