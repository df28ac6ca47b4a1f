//! Installs the scheduler and the recorder in a running interpreter, and uninstalls them.
//!
//! Invariants: if any step fails, the slots are as they were; an installation, which releases the
//! GIL on its way, holds the installation guard, and no thread waits for that guard with the GIL
//! held.
//!
//! Arrows between the files: this one and `recording` use `redirection` and `activation`; those use
//! `probe`; all use `python_api`, and `attach` to release the GIL.

mod activation;
mod attach;
mod guard;
mod probe;
mod python_api;
mod recording;
mod redirection;

pub use activation::Options;
pub use python_api::PythonApi;
pub use recording::{start_recording, stop_recording};

use crate::elf::slots::Slots;
use crate::error::Unsupported;
use crate::gil::enter::with_mutex;
use crate::gil::state;
use activation::{activate, deactivate, prepare};
use guard::InstallGuard;
use python_api::refuse_at_the_end;
use redirection::{installed, redirect, release};

/// Installs the scheduler; does nothing if it is installed.
///
/// The calling thread holds the GIL of the main interpreter, and releases it meanwhile.
///
/// # Errors
/// [`Unsupported`]; the interpreter is as it was before.
pub fn install(api: &PythonApi, options: &Options) -> Result<(), Unsupported> {
    let _guard = InstallGuard::acquire(api);
    if state::is_active() {
        with_mutex(|policy| policy.set_batch_share(options.batch_share_permille));
        return Ok(());
    }
    refuse_at_the_end(api)?;
    prepare(options)?;
    redirect(api, || activate(api, options))
}

/// Uninstalls the scheduler; returns whether it was installed. The calling thread
/// holds the GIL of the main interpreter.
///
/// # Errors
/// [`Unsupported`] if the slots cannot be written; the hooks pass through then.
pub fn uninstall(api: &PythonApi) -> Result<bool, Unsupported> {
    let _guard = InstallGuard::acquire(api);
    let was_active = state::is_active();
    deactivate();
    release()?;
    Ok(was_active)
}

/// Whether the scheduler is installed and all its slots are in place. The calling
/// thread holds the GIL of the main interpreter.
#[must_use]
pub fn is_installed() -> bool {
    // SAFETY: the caller holds the GIL.
    state::is_active() && unsafe { installed() }.as_ref().is_some_and(Slots::is_intact)
}
