//! `unsnarl._native`: the thin shell between Python and the crates.
//!
//! Must never: decide anything; it converts arguments, results and errors.
//!
//! A program under `unsnarl run` imports this module at its first thread, and most of them need the scheduler's
//! functions alone. Everything else is added when a name is asked for that is not there (PEP 562): to make
//! their classes takes about as long as to install the scheduler.
//!
//! Invariant: what is added then is the main interpreter's alone. PyO3 keeps classes once a process, and a call that
//! waits asks for the GIL as a thread of the main interpreter, which a sub-interpreter that shares the GIL holds
//! already.

mod gil;
mod ipc;
mod rounds;
mod sampler;
mod sync;
mod trace;

use pyo3::exceptions::{PyAttributeError, PyImportError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString};

/// Native part of unsnarl; use the public modules instead.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::gil::{Unsupported, hint, install, is_installed, reset_stats, stats, uninstall};
    #[pymodule_export]
    use super::{list, look_up};

    /// Leave the list of names out, so that who asks for it has the rest added.
    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        use pyo3::types::{PyAnyMethods, PyModuleMethods};
        module.dict().del_item("__all__")
    }
}

/// What the first complete module has.
static REST: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

/// Add what the scheduler does not need, and look again.
#[pyfunction(name = "__getattr__", pass_module)]
fn look_up<'py>(module: &Bound<'py, PyModule>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
    let text = name.to_string();
    // The import system asks for `__path__` and other such names of its own.
    if text == "__all__" || !text.starts_with("__") {
        if !gil::is_main_interpreter() {
            return Err(refused(&text));
        }
        complete(module)?;
        if let Some(found) = module.dict().get_item(name)? {
            return Ok(found);
        }
    }
    Err(PyAttributeError::new_err(format!(
        "module 'unsnarl._native' has no attribute '{text}'"
    )))
}

fn refused(name: &str) -> PyErr {
    PyImportError::new_err(format!(
        "cannot import '{name}' from 'unsnarl._native': this is a sub-interpreter, and unsnarl's primitives do not work \
         here (hint: import them in the main interpreter alone, and use the standard library's here)"
    ))
}

/// Add what the scheduler does not need, where that works, and list every name, for `dir()`.
#[pyfunction(name = "__dir__", pass_module)]
fn list<'py>(module: &Bound<'py, PyModule>) -> PyResult<Bound<'py, PyList>> {
    if gil::is_main_interpreter() {
        complete(module)?;
    }
    Ok(module.dict().keys())
}

fn complete(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let names = REST.get_or_try_init(py, || {
        register(module).and_then(|()| Ok(module.dict().copy()?.unbind()))
    })?;
    // A program that removes the module from `sys.modules` and imports it again has another one, with the same classes.
    module.dict().update_if_missing(names.bind(py).as_mapping())
}

fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let names = PyList::empty(module.py());
    for name in module.dict().keys() {
        if !name.cast::<PyString>()?.to_str()?.starts_with("__") {
            names.append(name)?;
        }
    }
    // First, since each name that is added goes into the list that it finds.
    module.dict().set_item("__all__", names)?;
    trace::register(module)?;
    module.add_class::<rounds::SampledRounds>()?;
    module.add_class::<sampler::TraceSampler>()?;
    sync::register(module)?;
    ipc::register(module)
}
