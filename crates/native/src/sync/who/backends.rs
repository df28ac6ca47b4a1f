//! The functions of `unsnarl.sync.backends`, the Python side that knows each event loop and greenlet library.
//!
//! Must never: be called on a path that has nothing to wait for; the first call imports a package.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// A function of `unsnarl.sync.backends`.
pub(in crate::sync) fn function<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static BACKENDS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    BACKENDS
        .get_or_try_init(py, || {
            Ok::<_, PyErr>(py.import("unsnarl.sync.backends")?.into_any().unbind())
        })?
        .bind(py)
        .getattr(name)
}
