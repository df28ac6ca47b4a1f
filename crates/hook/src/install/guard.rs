//! The installation guard: the exclusive right to install, uninstall, start or stop a recording.
//!
//! Must never: wait with the GIL held, since the holder of the guard may wait for the GIL.
//! Invariant: at most one thread holds it, but for a thread that hung with it when the
//! interpreter ended.

use super::attach;
use super::python_api::PythonApi;
use crate::gil::state::IS_CHANGING;
use std::sync::atomic::{Ordering::Acquire, Ordering::Release};
use std::time::Duration;

/// Pause between two tries.
const PAUSE: Duration = Duration::from_micros(20);

/// Held by the thread that installs or uninstalls.
#[must_use]
pub(super) struct InstallGuard;

impl InstallGuard {
    /// Waits for the guard; the calling thread holds the GIL, and releases it meanwhile.
    pub(super) fn acquire(api: &PythonApi) -> Self {
        // ORDERING: Acquire pairs with the Release in `drop`.
        while IS_CHANGING.swap(true, Acquire) {
            if api.is_ending {
                // The holder hangs without the GIL, for ever.
                break;
            }
            attach::without_gil(api, || std::thread::sleep(PAUSE));
        }
        Self
    }
}

impl Drop for InstallGuard {
    fn drop(&mut self) {
        // ORDERING: Release pairs with the Acquire in `acquire`.
        IS_CHANGING.store(false, Release);
    }
}
