//! Programs and the checked run that the files of scenarios share.
//!
//! Invariant: a run that returns has violated nothing.

#![allow(dead_code, unreachable_pub)] // each file of tests uses a part

use unsnarl_policy::sim::Step::{Block, Compute, Mark, Work};
use unsnarl_policy::sim::{Program, Scenario, Trace, run};
use unsnarl_policy::{MICROSECOND, MILLISECOND, Nanos};

pub const US: Nanos = MICROSECOND;
pub const MS: Nanos = MILLISECOND;
pub const SECOND: Nanos = 1_000 * MS;

/// Receives, answers (a call that does not block), waits for the next request.
pub fn echo() -> Program {
    Program::forever([Compute(5 * US), Work(5 * US), Compute(3 * US), Mark, Block(60 * US)])
}

pub fn hog() -> Program {
    Program::forever([Compute(SECOND)])
}

pub fn hogs(count: usize) -> Vec<Program> {
    vec![hog(); count]
}

pub fn beside(mut first: Vec<Program>, others: Vec<Program>) -> Vec<Program> {
    first.extend(others);
    first
}

/// Runs, and checks what must hold in every scenario.
pub fn simulate(scenario: &Scenario) -> Trace {
    let trace = run(scenario);
    assert_eq!(trace.violations, Vec::<String>::new());
    assert_eq!(trace.insurance_needed, 0, "nobody but the insurance would have looked");
    trace
}
