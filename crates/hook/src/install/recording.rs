//! Starts and stops a recording: hooks what only the recorder observes, and the rest if the scheduler has not.
//!
//! Invariant: if a start fails, the interpreter and the file system are as they were.

use super::guard::InstallGuard;
use super::python_api::{PythonApi, refuse_at_the_end};
use super::redirection::{interpreter, recorded, redirect, release, replace_until_intact};
use crate::elf::slots::Slots;
use crate::error::Unsupported;
use crate::gil::{fork, sighting, state};
use crate::hooked::{self, Purpose};
use crate::{record, thread};

/// Starts to record into a new file, whether or not the scheduler is installed. The calling thread
/// holds the GIL of the main interpreter, and releases it meanwhile.
///
/// # Errors
/// [`Unsupported`] if the slots cannot be replaced or the file cannot be made; the
/// interpreter is as it was before.
pub fn start_recording(api: &PythonApi, destination: &record::Destination) -> Result<(), Unsupported> {
    let _guard = InstallGuard::acquire(api);
    if record::is_recording() {
        return Err(Unsupported::new("a recording is on already", "stop it first"));
    }
    refuse_at_the_end(api)?;
    thread::prepare()?;
    fork::register()?;
    redirect(api, || {
        let own = Slots::find(&interpreter(api)?, &hooked::replacements(&[Purpose::Recording]))?;
        own.replace()
            .and_then(|()| replace_until_intact(&own))
            .or_else(|error| own.restore().and(Err(error)))?;
        if let Err(error) = record::create(destination, state::is_active()) {
            own.restore()?;
            return Err(Unsupported::new(
                format!("the trace file cannot be made: {error}"),
                "name a directory with room that can be written to",
            ));
        }
        // SAFETY: the caller holds the GIL.
        *unsafe { recorded() } = Some(own);
        let seen = sighting::last();
        record::begin(seen.cond, seen.switch_cond);
        Ok(())
    })
}

/// Ends the recording; returns whether there was one. The calling thread holds the GIL of
/// the main interpreter.
///
/// # Errors
/// [`Unsupported`] if the slots cannot be written; the hooks pass through then.
pub fn stop_recording(api: &PythonApi) -> Result<bool, Unsupported> {
    let _guard = InstallGuard::acquire(api);
    let was_recording = record::is_recording();
    record::finish();
    // SAFETY: the caller holds the GIL.
    if let Some(slots) = (unsafe { recorded() }).take() {
        slots.restore()?;
    }
    release()?;
    Ok(was_recording)
}
