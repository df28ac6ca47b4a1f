//! Discovers the GIL's condvars and mutex by provoking a wait.
//!
//! While this thread holds the GIL, a probe thread requests it. The condvar that the probe waits on is
//! `gil.cond`; the one that it signals once it has the GIL is `gil.switch_cond`. No offset into
//! a structure of CPython is needed.
//!
//! Must never: give up before a slow machine has run the probe. Invariant: the calling thread holds the
//! GIL before and after.

use super::attach;
use super::python_api::PythonApi;
use crate::error::Unsupported;
use crate::gil::sighting;
use crate::thread::{kernel, with_current};
use std::time::{Duration, Instant};

/// How long a provoked wait may take: microseconds, and seconds on a machine where the probe
/// waits for a processor. It is generous because giving up too early reports a suitable
/// interpreter as unsupported; an unsuitable one mostly lacks the slots already.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Pause between two checks for the effect of the probe.
const PAUSE: Duration = Duration::from_micros(20);

/// Discovers the GIL's condvars and mutex; [`sighting::last`] returns them.
pub(super) fn discover(api: &PythonApi) -> Result<(), Unsupported> {
    sighting::start();
    let has_waited = provoke_wait(api, sighting::has_seen_wait);
    sighting::stop();
    if !has_waited || !sighting::has_seen_signal() {
        return Err(Unsupported::new(
            "a thread that wanted the GIL did not wait on a condition variable",
            "install from the main interpreter of a stock CPython 3.11 to 3.15",
        ));
    }
    Ok(())
}

/// Has a probe thread request the GIL until `is_seen` observes the effect, then lets the probe take
/// the GIL; returns whether the effect was observed.
pub(super) fn provoke_wait(api: &PythonApi, is_seen: impl Fn() -> bool) -> bool {
    let own_api = *api;
    let probe = std::thread::Builder::new().name("unsnarl-probe".into()).spawn(move || {
        with_current(|current| current.is_probe.set(true));
        kernel::learn_default();
        attach::visit(&own_api);
    });
    let Ok(probe) = probe else { return false };
    let start = Instant::now();
    while !is_seen() && start.elapsed() < TIMEOUT {
        std::thread::sleep(PAUSE);
    }
    // If the interpreter ends, the probe hangs, and so does this thread: it has no GIL either.
    let has_ended = attach::without_gil(api, || probe.join().is_ok());
    has_ended && is_seen()
}
