//! The functions of `unsnarl ipc`: list and remove named segments.
//!
//! Invariant: a segment in use is removed only by force.

use crate::ipc::segment::errors;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use unsnarl_shm::{Listed, Removal};

/// Every named segment of this user, as dicts.
#[pyfunction]
fn ipc_list(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let listed = py
        .detach(unsnarl_shm::list)
        .map_err(|error| errors::segment(py, error))?;
    listed.into_iter().map(|one| row(py, one)).collect()
}

fn row(py: Python<'_>, listed: Listed) -> PyResult<Bound<'_, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("name", listed.name)?;
    row.set_item("size", listed.size)?;
    row.set_item("users", listed.users)?;
    row.set_item("used", listed.is_used)?;
    match listed.header {
        Ok(header) => {
            row.set_item("kind", header.kind.name())?;
            row.set_item("creator", (header.creator >> 32) as u32)?;
            row.set_item("problem", py.None())?;
        }
        Err(error) => {
            row.set_item("kind", py.None())?;
            row.set_item("creator", py.None())?;
            row.set_item("problem", error.what)?;
        }
    }
    Ok(row)
}

/// Remove a named segment: "removed", "used" or "missing".
#[pyfunction]
fn ipc_remove(py: Python<'_>, name: &str, force: bool) -> PyResult<&'static str> {
    let removal = py.detach(|| unsnarl_shm::remove(name, force));
    match removal.map_err(|error| errors::segment(py, error))? {
        Removal::Removed => Ok("removed"),
        Removal::Used => Ok("used"),
        Removal::Missing => Ok("missing"),
    }
}

/// The directory of the named segments.
#[pyfunction]
fn ipc_directory() -> String {
    unsnarl_shm::directory().display().to_string()
}

/// Leave every named segment, as `close` does.
#[pyfunction]
fn ipc_leave(py: Python<'_>) {
    py.detach(unsnarl_shm::leave_all);
}

pub(in crate::ipc) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(ipc_list, module)?)?;
    module.add_function(wrap_pyfunction!(ipc_remove, module)?)?;
    module.add_function(wrap_pyfunction!(ipc_leave, module)?)?;
    module.add_function(wrap_pyfunction!(ipc_directory, module)?)
}
