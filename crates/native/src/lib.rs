//! `unsnarl._native`: the thin shell between Python and the crates.
//!
//! Must never: decide anything; it converts arguments, results and errors.

mod gil;
mod ipc;
mod rounds;
mod sampler;
mod sync;
mod trace;

use pyo3::prelude::*;

/// Native part of unsnarl; use the public modules instead.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::gil::{Unsupported, hint, install, is_installed, reset_stats, stats, uninstall};
    #[pymodule_export]
    use super::rounds::SampledRounds;
    #[pymodule_export]
    use super::sampler::TraceSampler;
    #[pymodule_export]
    use super::trace::{
        NamedStart, TimedBody, TimedImport, trace_calibrate, trace_first_line, trace_is_on, trace_name, trace_read,
        trace_start, trace_stop,
    };

    /// Add the primitives.
    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        super::sync::register(module)?;
        super::ipc::register(module)
    }
}
