//! The recorder's functions for Python, and the reader of its files.
//!
//! Must never: change what a call that it times or names returns or raises.

use crate::gil::{check_build, python_api, unsupported};
use crate::sampler;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyCFunction, PyDict, PyTuple};
use std::ffi::{CString, OsString, c_int, c_void};
use std::os::unix::ffi::OsStringExt;
use unsnarl_hook::record::{self, Destination, FrameApi, FrameLayout};

// PyO3 declares these with other types, or not at all.
unsafe extern "C" {
    fn PyGILState_GetThisThreadState() -> *mut c_void;
    fn PyCode_Addr2Line(code: *mut c_void, offset: c_int) -> c_int;
    fn PyUnicode_GetLength(text: *mut c_void) -> isize;
    fn PyUnicode_ReadChar(text: *mut c_void, index: isize) -> u32;
    fn PyMethod_New(function: *mut ffi::PyObject, owner: *mut ffi::PyObject) -> *mut ffi::PyObject;
}

/// By `Include/cpython/pystate.h`, `code.h` and `Include/internal/pycore_frame.h`
/// (from 3.14 on `pycore_interpframe_structs.h`) of each version.
pub(crate) const LAYOUT: FrameLayout = FrameLayout {
    cframe: if cfg!(Py_3_13) { None } else { Some(56) },
    current_frame: if cfg!(Py_3_13) {
        72
    } else if cfg!(Py_3_12) {
        0
    } else {
        8
    },
    code: if cfg!(Py_3_12) { 0 } else { 32 },
    previous: if cfg!(Py_3_12) { 8 } else { 48 },
    instruction: 56,
    filename: 112,
    qualname: 128,
    first_line: if cfg!(Py_3_12) { 68 } else { 72 },
    bytecode: if cfg!(Py_3_14) {
        208
    } else if cfg!(Py_3_13) {
        200
    } else if cfg!(Py_3_12) {
        192
    } else {
        184
    },
};

/// Add the functions and classes.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(trace_calibrate, module)?)?;
    module.add_function(wrap_pyfunction!(trace_first_line, module)?)?;
    module.add_function(wrap_pyfunction!(trace_is_on, module)?)?;
    module.add_function(wrap_pyfunction!(trace_name, module)?)?;
    module.add_function(wrap_pyfunction!(trace_read, module)?)?;
    module.add_function(wrap_pyfunction!(trace_start, module)?)?;
    module.add_function(wrap_pyfunction!(trace_stop, module)?)?;
    module.add_class::<NamedStart>()?;
    module.add_class::<TimedBody>()?;
    module.add_class::<TimedImport>()
}

/// Start to record into a new file; `has_counter` is whether times may be read from the processor's counter.
#[pyfunction]
#[pyo3(signature = (path, chunks, text, executed_ns, interval_ns, *, has_counter=true, fork_exec=None))]
pub(crate) fn trace_start(
    path: OsString,
    chunks: usize,
    text: String,
    executed_ns: u64,
    interval_ns: u64,
    has_counter: bool,
    fork_exec: Option<&Bound<'_, PyCFunction>>,
) -> PyResult<()> {
    check_build()?;
    if !(1..=1 << 24).contains(&chunks) {
        return Err(PyValueError::new_err("a trace has between 1 and 16,777,216 chunks"));
    }
    let path = CString::new(path.into_vec()).map_err(|_| PyValueError::new_err("the path has a zero byte"))?;
    let destination = Destination {
        path,
        chunks,
        text,
        executed_ns,
        interval_ns,
        has_counter,
        has_parked_locks: cfg!(Py_3_14),
    };
    unsnarl_hook::start_recording(&python_api(fork_exec), &destination).map_err(unsupported)
}

/// End the recording; return whether there was one.
#[pyfunction]
pub(crate) fn trace_stop() -> PyResult<bool> {
    unsnarl_hook::stop_recording(&python_api(None)).map_err(unsupported)
}

/// Return whether a recording is on.
#[pyfunction]
pub(crate) fn trace_is_on() -> bool {
    record::is_recording()
}

/// Check that stacks can be read; return whether they can. `code` and `line` are those of the calling frame.
#[pyfunction]
#[pyo3(signature = (code, line, /))]
pub(crate) fn trace_calibrate(code: &Bound<'_, PyAny>, line: i32) -> bool {
    let api = FrameApi {
        thread_state: PyGILState_GetThisThreadState,
        line: PyCode_Addr2Line,
        length: PyUnicode_GetLength,
        character: PyUnicode_ReadChar,
        code_type: &raw const ffi::PyCode_Type as usize,
        layout: LAYOUT,
    };
    check_build().is_ok() && record::calibrate(api, code.as_ptr() as usize, line)
}

/// Record that the program's first line runs next.
#[pyfunction]
pub(crate) fn trace_first_line() {
    record::mark_first_line();
}

/// Record the name of a thread.
#[pyfunction]
#[pyo3(signature = (ident, name, /))]
pub(crate) fn trace_name(ident: u64, name: &str) {
    record::name_thread(ident, name);
}

/// Return the summary of a trace file as JSON.
#[pyfunction]
#[pyo3(signature = (path, /))]
pub(crate) fn trace_read(py: Python<'_>, path: OsString) -> PyResult<String> {
    let bytes = py.detach(|| std::fs::read(&path)).map_err(PyErr::from)?;
    let samples = py.detach(|| sampler::of_recording(path.as_ref()));
    let summary = py
        .detach(|| unsnarl_trace::summary::summarise_with(&bytes, &samples))
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    py.detach(|| serde_json::to_string(&summary))
        .map_err(|error| PyOSError::new_err(error.to_string()))
}

/// Calls `original`, and records its duration as the import of the module `name`, if there is a name.
fn timed<'py>(
    original: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    name: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(name) = name {
        record::import_begins(name);
    }
    let result = original.call(args, kwargs);
    if name.is_some() {
        record::import_ends();
    }
    result
}

/// Call a function and record its duration as the import of the module that the first argument
/// names; call `notice` with the name after the import of each of the modules `noticed`.
#[pyclass(frozen, module = "unsnarl._native")]
pub(crate) struct TimedImport {
    original: Py<PyAny>,
    noticed: Vec<String>,
    notice: Py<PyAny>,
}

#[pymethods]
impl TimedImport {
    #[new]
    fn new(original: Py<PyAny>, noticed: Vec<String>, notice: Py<PyAny>) -> Self {
        Self {
            original,
            noticed,
            notice,
        }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let first = args.get_item(0);
        let name = first.as_ref().ok().and_then(|first| first.extract::<&str>().ok());
        let result = timed(self.original.bind(py), args, kwargs, Some(name.unwrap_or("?")))?;
        if let Some(name) = name.filter(|name| self.noticed.iter().any(|noticed| noticed == name)) {
            self.notice.call1(py, (name,))?;
        }
        Ok(result)
    }
}

/// Binds a callable to an object, as a function is bound; to `None`, a class's own attribute, it stays as it is.
pub(crate) fn bound<'py>(callable: Bound<'py, PyAny>, owner: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if owner.is_none() {
        return Ok(callable);
    }
    // SAFETY: both are live objects, and the GIL is held; a new reference or null is returned.
    unsafe { Bound::from_owned_ptr_or_err(owner.py(), PyMethod_New(callable.as_ptr(), owner.as_ptr())) }
}

/// The method of a loader that runs a module's body. It is timed as a part of the module's import, or as
/// the import itself where the body runs later: `importlib.util.LazyLoader`, `reload`.
#[pyclass(frozen, module = "unsnarl._native")]
pub(crate) struct TimedBody {
    original: Py<PyAny>,
}

#[pymethods]
impl TimedBody {
    #[new]
    fn new(original: Py<PyAny>) -> Self {
        Self { original }
    }

    /// Bind to a loader, as a function does.
    fn __get__<'py>(
        this: Bound<'py, Self>,
        loader: &Bound<'py, PyAny>,
        _class: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        bound(this.into_any(), loader)
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // The method itself reads the name first.
        let name = args.get_item(1).and_then(|module| module.getattr("__name__"));
        let name = name.as_ref().ok().and_then(|name| name.extract::<&str>().ok());
        timed(self.original.bind(py), args, kwargs, name)
    }
}

/// Start a thread, and record its name.
#[pyclass(frozen, module = "unsnarl._native")]
pub(crate) struct NamedStart {
    original: Py<PyAny>,
}

#[pymethods]
impl NamedStart {
    #[new]
    fn new(original: Py<PyAny>) -> Self {
        Self { original }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let result = self.original.bind(py).call(args, kwargs)?;
        if record::is_recording() {
            let _ = note_name(&result, args, kwargs);
        }
        Ok(result)
    }
}

/// Records the name of a started thread. The identifier is the result of `start_new_thread`, or of the
/// handle that `start_joinable_thread` returns. The name is that of the `threading.Thread` whose method is
/// started, or else the function's.
fn note_name(result: &Bound<'_, PyAny>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    let function = match args.get_item(0) {
        Ok(function) => function,
        Err(error) => kwargs
            .and_then(|words| words.get_item("function").ok().flatten())
            .ok_or(error)?,
    };
    let ident = match result.extract::<u64>() {
        Ok(ident) => ident,
        Err(_) => result.getattr("ident")?.extract()?,
    };
    let name = function
        .getattr("__self__")
        .and_then(|thread| thread.getattr("_name"))
        .or_else(|_| function.getattr("__qualname__"))?;
    record::name_thread(ident, name.extract()?);
    Ok(())
}
