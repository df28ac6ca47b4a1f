//! The blocking wait of threads and greenlets.
//!
//! A thread releases the GIL once per sleep and takes it back once. If a signal cuts the sleep short, the
//! thread runs the signal handlers and then waits for the rest of the time (PEP 475). In a thread that runs a
//! greenlet hub, the greenlet is parked instead, and the hub continues. Before it sleeps a thread may spin (see
//! [`super::spin`]), and on a single processor it may nap ([`super::nap`]).
//!
//! Must never: return while the waiter is in a queue.
//!
//! Invariant: the waiter's chain of wake-ups is passed on (`relay`) whenever its thread runs again.

use super::futex;
use super::nap;
use super::party::Party;
use super::protocol::Wait;
use super::spin;
use crate::sync::who::backends;
use crate::sync::who::libraries;
use crate::sync::who::process;
use pyo3::prelude::*;
use std::time::{Duration, Instant};
use unsnarl_hook::LockWait;
use unsnarl_sync::{Arc, Waiter};

enum Sleep {
    Signalled,
    TimedOut,
    Failed(PyErr),
}

/// Wait until acquired (true) or until the deadline has passed (false).
pub(in crate::sync) fn block(py: Python<'_>, wait: &mut dyn Wait, deadline: Option<Instant>) -> PyResult<bool> {
    if libraries::has_hubs(py) {
        let parker = backends::function(py, "green_parker")?.call0()?;
        if !parker.is_none() {
            return park(&parker, wait, deadline);
        }
    }
    let lock = wait.object();
    let waiter = Waiter::new(Party::thread(lock));
    if wait.begin(py, &waiter)? {
        return Ok(true);
    }
    loop {
        match sleep(py, &waiter, lock, deadline) {
            Sleep::Signalled => {
                if resume(py, wait, &waiter)? {
                    return Ok(true);
                }
            }
            Sleep::TimedOut => return cancel(py, wait, &waiter),
            Sleep::Failed(error) => {
                if withdraw(py, wait, &waiter)? {
                    wait.give_back(py);
                }
                return Err(error);
            }
        }
    }
}

fn resume(py: Python<'_>, wait: &mut dyn Wait, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
    let outcome = wait.resume(py, waiter);
    waiter.relay();
    if outcome.is_err() {
        cancel(py, wait, waiter)?;
    }
    outcome
}

fn cancel(py: Python<'_>, wait: &mut dyn Wait, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
    let outcome = wait.cancel(py, waiter);
    waiter.relay();
    outcome
}

fn withdraw(py: Python<'_>, wait: &mut dyn Wait, waiter: &Arc<Waiter<Party>>) -> PyResult<bool> {
    let outcome = wait.withdraw(py, waiter);
    waiter.relay();
    outcome
}

/// The first and the longest sleep of the main thread. A signal that arrives after the GIL was released and
/// before the kernel has put the thread to sleep interrupts nothing. So the main thread, which runs the
/// handlers, checks for signals now and then.
const FIRST_CHECK: Duration = Duration::from_millis(10);
const LAST_CHECK: Duration = Duration::from_secs(1);

/// A thread that takes longer than this from its wake-up to the GIL had to queue for the GIL: it is several
/// times what the kernel needs to give a thread a processor.
const HELD_UP_FROM: Duration = Duration::from_micros(200);

/// Sleep until the waiter is signalled, the deadline has passed or a signal handler raised.
fn sleep(py: Python<'_>, waiter: &Arc<Waiter<Party>>, lock: usize, deadline: Option<Instant>) -> Sleep {
    let mut check_after = process::is_in_main_thread().then_some(FIRST_CHECK);
    loop {
        let check = check_after.map(|check_after| Instant::now() + check_after);
        let until = match (deadline, check) {
            (Some(deadline), Some(check)) => Some(deadline.min(check)),
            (deadline, check) => deadline.or(check),
        };
        let departures = spin::departures();
        nap::announce();
        waiter.party.set_idle(true);
        let (woken, awake_since) = py.detach(|| {
            let wait = LockWait::begin(lock);
            let woken = doze(waiter, departures, until);
            wait.end(waiter.is_signalled());
            (woken, Instant::now())
        });
        waiter.party.set_idle(false);
        if waiter.is_signalled() {
            let delay = awake_since.elapsed();
            waiter.note_delay(delay >= HELD_UP_FROM);
            nap::learn(delay);
            return Sleep::Signalled;
        }
        if let Err(error) = py.check_signals() {
            return Sleep::Failed(error);
        }
        if woken == futex::Woken::TimedOut {
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Sleep::TimedOut;
            }
            check_after = check_after.map(|check_after| (check_after * 2).min(LAST_CHECK));
        }
    }
}

/// Spin, nap or sleep, without the GIL. A thread that was woken as one of many wakes the next.
fn doze(waiter: &Waiter<Party>, departures: u32, until: Option<Instant>) -> futex::Woken {
    nap::pay();
    if spin::wait(waiter, departures) || !waiter.fall_asleep() {
        return futex::Woken::Perhaps;
    }
    let woken = nap::sleep(waiter, until);
    if waiter.is_signalled() {
        waiter.relay();
        nap::pay(); // the chain goes on without delay: this thread may do other work next
    }
    woken
}

/// The wait of a greenlet, which `parker` suspends. The hub's clock decides when the time is up.
fn park(parker: &Bound<'_, PyAny>, wait: &mut dyn Wait, deadline: Option<Instant>) -> PyResult<bool> {
    let py = parker.py();
    let waiter = Waiter::new(Party::greenlet(py, parker.getattr("unpark")?.unbind())?);
    if wait.begin(py, &waiter)? {
        return Ok(true);
    }
    let timeout_s = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()).as_secs_f64());
    loop {
        let parked = parker.call_method1("park", (timeout_s,));
        let is_expired = match parked.and_then(|is_expired| is_expired.is_truthy()) {
            Ok(is_expired) => is_expired,
            Err(error) => {
                if withdraw(py, wait, &waiter)? {
                    wait.give_back(py);
                }
                return Err(error);
            }
        };
        if waiter.is_signalled() {
            if resume(py, wait, &waiter)? {
                return Ok(true);
            }
        } else if is_expired {
            return cancel(py, wait, &waiter);
        }
    }
}
