//! Redirects the interpreter's slots to the hooks, and restores them.
//!
//! Invariants: if any step fails, the slots are as they were; the slots that are replaced are only
//! read and changed with the GIL held.

use super::activation::deactivate;
use super::probe;
use super::python_api::PythonApi;
use crate::elf::object::LoadedObject;
use crate::elf::slots::Slots;
use crate::error::Unsupported;
use crate::gil::state;
use crate::hooked::{self, Purpose};
use crate::record;
use std::cell::UnsafeCell;
use std::time::Duration;

/// Rounds of writing the slots against late fix-ups of the dynamic linker.
const WRITE_ROUNDS: u32 = 8;
/// Pause between two rounds.
const PAUSE: Duration = Duration::from_micros(20);

struct Installed(UnsafeCell<Option<Slots>>);
// SAFETY: only `installed` and `recorded` reach a cell, and their callers hold the GIL.
unsafe impl Sync for Installed {}
static INSTALLED: Installed = Installed(UnsafeCell::new(None));
static RECORDED: Installed = Installed(UnsafeCell::new(None));

/// The slots that are replaced, while the scheduler or the recorder is active.
///
/// # Safety
/// The caller holds the GIL of the main interpreter, and drops the reference
/// before it releases the GIL.
#[allow(clippy::mut_from_ref)]
pub(super) unsafe fn installed() -> &'static mut Option<Slots> {
    // SAFETY: exclusive by the caller's promise.
    unsafe { &mut *INSTALLED.0.get() }
}

/// The slots that are replaced for the recorder alone, while it is active.
///
/// # Safety
/// As for [`installed`].
#[allow(clippy::mut_from_ref)]
pub(super) unsafe fn recorded() -> &'static mut Option<Slots> {
    // SAFETY: exclusive by the caller's promise.
    unsafe { &mut *RECORDED.0.get() }
}

/// Replaces the interpreter's slots, discovers the GIL's condvars, and calls `begin`. If any of that
/// fails, the slots are as they were.
pub(super) fn redirect(api: &PythonApi, begin: impl FnOnce() -> Result<(), Unsupported>) -> Result<(), Unsupported> {
    // SAFETY: the caller holds the GIL.
    if unsafe { installed() }.is_some() {
        return begin().inspect_err(|_| deactivate());
    }
    let slots = find_slots(api)?;
    let learned = slots
        .replace()
        .and_then(|()| probe::discover(api))
        .and_then(|()| begin())
        .and_then(|()| replace_until_intact(&slots));
    if let Err(error) = learned {
        deactivate();
        slots.restore()?;
        return Err(error);
    }
    // SAFETY: the caller holds the GIL, and this thread has taken it again.
    *unsafe { installed() } = Some(slots);
    Ok(())
}

pub(super) fn interpreter(api: &PythonApi) -> Result<LoadedObject, Unsupported> {
    LoadedObject::containing(api.restore_thread as *const () as usize).ok_or_else(|| {
        Unsupported::new(
            "the object that contains the interpreter was not found",
            "report it with the output of `ldd $(which python)`",
        )
    })
}

/// The slots of the interpreter, and those through which it starts programs.
fn find_slots(api: &PythonApi) -> Result<Slots, Unsupported> {
    let object = interpreter(api)?;
    let mut slots = Slots::find(
        &object,
        &hooked::replacements(&[Purpose::Gil, Purpose::Locks, Purpose::Starts]),
    )?;
    let subprocess = LoadedObject::containing(api.fork_exec.addr());
    if let Some(subprocess) = subprocess.filter(|subprocess| *subprocess != object) {
        slots.append(Slots::find(&subprocess, &hooked::replacements(&[Purpose::Starts]))?);
    }
    Ok(slots)
}

/// Replaces the slots again until no late fix-up of the dynamic linker has undone one.
pub(super) fn replace_until_intact(slots: &Slots) -> Result<(), Unsupported> {
    for _ in 0..WRITE_ROUNDS {
        if slots.is_intact() {
            return Ok(());
        }
        slots.replace()?;
        std::thread::sleep(PAUSE);
    }
    Err(Unsupported::new(
        "another library keeps overwriting the interpreter's relocation slots",
        "install unsnarl after that library",
    ))
}

/// Restores the slots once neither the scheduler nor the recorder is active.
pub(super) fn release() -> Result<(), Unsupported> {
    if state::is_active() || record::is_recording() {
        return Ok(());
    }
    // SAFETY: the caller holds the GIL.
    match unsafe { installed() }.take() {
        Some(slots) => slots.restore(),
        None => Ok(()),
    }
}
