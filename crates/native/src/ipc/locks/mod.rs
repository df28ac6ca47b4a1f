//! Lock, RLock and RWLock: the classes that hold the robust word of a segment.
//!
//! Invariant: only `ownership` takes and releases that word.

mod held;
mod lock;
mod ownership;
mod rlock;
mod rwlock;

pub(super) use held::timeout_of;
pub(super) use lock::IpcLock;
pub(super) use rlock::IpcRLock;

use pyo3::prelude::*;

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    lock::register(module)?;
    rlock::register(module)?;
    rwlock::register(module)
}
