//! A simulator in virtual time: scenario → trace → assertions.
//!
//! It runs the policy against a model of the machine (processors with run
//! queues, wake-ups that take time), of CPython's GIL (`take_gil` and `drop_gil`
//! of `Python/ceval_gil.c`: the flag, the drop request, the forced switch, the
//! switch number, barging), and of the mechanism between the two (park, notify,
//! revoke, appoint, timers), which calls the policy in the order in which the
//! real one does. Ten thousand threads on 64 processors take seconds.
//!
//! Must never: read a clock, start a thread, or decide anything that is the
//! policy's to decide. Invariant: the same scenario gives the same trace.
//!
//! Not modelled: the time that the policy itself takes, caches, and
//! the waits for the GIL's mutex (every call of the policy is one instant).

mod actor;
mod cores;
mod events;
mod gil;
mod parker;
mod random;
mod scenario;
mod steps;
mod trace;
mod waiting;
mod world;

pub use random::Random;
pub use scenario::{Delays, Machine, Program, Scenario, Scheduler, Step};
pub use trace::{Served, Trace, growth_exponent, jain};

/// Runs a scenario to its end.
///
/// # Panics
/// When the model contradicts itself, which is a defect of the simulator.
#[must_use]
pub fn run(scenario: &Scenario) -> Trace {
    world::World::new(scenario).run()
}
