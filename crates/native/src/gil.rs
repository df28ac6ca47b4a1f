//! The scheduler's functions for Python.
//!
//! Must never: hold the GIL's mutex while it calls Python.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};
use pyo3::{create_exception, ffi};
use std::ffi::{c_int, c_void};
use unsnarl_hook::{Class, ClassStats, Hint, Histogram, Options, PythonApi};

create_exception!(
    unsnarl._native,
    Unsupported,
    pyo3::exceptions::PyException,
    "The scheduler cannot be installed: (reason, hint)."
);

pub(crate) fn unsupported(error: unsnarl_hook::Unsupported) -> PyErr {
    Unsupported::new_err((error.reason, error.hint))
}

/// Whether the calling thread runs code of the main interpreter.
pub(crate) fn is_main_interpreter() -> bool {
    // SAFETY: both are callable with the GIL held, and only compare pointers.
    unsafe { ffi::PyInterpreterState_Get() == ffi::PyInterpreterState_Main() }
}

pub(crate) fn check_build() -> PyResult<()> {
    if cfg!(Py_GIL_DISABLED) {
        return Err(Unsupported::new_err((
            "this is a free-threaded build: it has no GIL to schedule",
            "run without the scheduler",
        )));
    }
    if !is_main_interpreter() {
        return Err(Unsupported::new_err((
            "this is a sub-interpreter",
            "install from the main interpreter",
        )));
    }
    Ok(())
}

// PyO3 wraps some of these; the hook crate needs the interpreter's own addresses. Before
// CPython 3.14 they may end the thread, by unwinding. If they were declared as functions that do
// not unwind, the whole library would be compiled so, and the linker would leave out PyO3's
// guard against unwinding (its `HangThread`).
unsafe extern "C-unwind" {
    fn PyGILState_Ensure() -> c_int;
    fn PyGILState_Release(state: c_int);
    fn PyEval_SaveThread() -> *mut c_void;
    fn PyEval_RestoreThread(thread_state: *mut c_void);
}

unsafe extern "C" {
    /// Public from 3.13 on; private under another name before.
    #[cfg_attr(not(Py_3_13), link_name = "_Py_IsFinalizing")]
    fn Py_IsFinalizing() -> c_int;
}

/// The functions and facts that the hook crate needs, with the GIL held. `fork_exec` is the built-in
/// function through which `subprocess` starts programs. The caller imports it: an import runs Python
/// code, and a thread that the interpreter ends in the middle would be unwound through this library.
pub(crate) fn python_api(fork_exec: Option<&Bound<'_, PyCFunction>>) -> PythonApi {
    // SAFETY: it is a built-in function, as its type says.
    let fork_exec = fork_exec.and_then(|function| unsafe { ffi::PyCFunction_GetFunction(function.as_ptr()) });
    PythonApi {
        ensure: PyGILState_Ensure,
        release: PyGILState_Release,
        save_thread: PyEval_SaveThread,
        restore_thread: PyEval_RestoreThread,
        fork_exec: fork_exec.map_or(std::ptr::null(), |function| function as *const c_void),
        // SAFETY: callable at any time.
        is_ending: unsafe { Py_IsFinalizing() } != 0,
    }
}

/// Install the scheduler; do nothing if it is installed.
#[pyfunction]
#[pyo3(signature = (slice_ns, batch_share_permille, kernel_hints, fork_exec=None))]
pub(crate) fn install(
    slice_ns: u64,
    batch_share_permille: u32,
    kernel_hints: bool,
    fork_exec: Option<&Bound<'_, PyCFunction>>,
) -> PyResult<()> {
    check_build()?;
    let options = Options {
        slice_ns,
        batch_share_permille,
        kernel_hints,
    };
    unsnarl_hook::install(&python_api(fork_exec), &options).map_err(unsupported)
}

/// Uninstall the scheduler; return whether it was installed.
#[pyfunction]
pub(crate) fn uninstall() -> PyResult<bool> {
    unsnarl_hook::uninstall(&python_api(None)).map_err(unsupported)
}

/// Return whether the scheduler is installed.
#[pyfunction]
pub(crate) fn is_installed() -> bool {
    unsnarl_hook::is_installed()
}

/// Set the hint of the calling thread; return the one before.
#[pyfunction]
#[pyo3(signature = (kind, /))]
pub(crate) fn hint(kind: Option<&str>) -> PyResult<Option<&'static str>> {
    let hint = match kind {
        None => Hint::None,
        Some("interactive") => Hint::Interactive,
        Some("batch") => Hint::Batch,
        Some(other) => {
            return Err(PyValueError::new_err(format!(
                "a hint is 'interactive', 'batch' or None, not {other:?}"
            )));
        }
    };
    Ok(match unsnarl_hook::hint(hint) {
        Hint::None => None,
        Hint::Interactive => Some("interactive"),
        Hint::Batch => Some("batch"),
    })
}

/// Set all counters to zero.
#[pyfunction]
pub(crate) fn reset_stats() {
    unsnarl_hook::reset_stats();
}

/// Return the counters as a dictionary, or None if nothing was ever installed.
#[pyfunction]
pub(crate) fn stats(py: Python<'_>) -> PyResult<Option<Bound<'_, PyDict>>> {
    let Some((stats, waiting)) = unsnarl_hook::stats() else {
        return Ok(None);
    };
    let result = PyDict::new(py);
    let classes = PyDict::new(py);
    for class in Class::ALL {
        classes.set_item(class.name(), class_dict(py, &stats.classes[class.index()])?)?;
    }
    result.set_item("classes", classes)?;
    result.set_item("hand_overs", stats.hand_overs)?;
    result.set_item("aged_picks", stats.aged_picks)?;
    result.set_item("share_picks", stats.share_picks)?;
    result.set_item("lingers", stats.lingers)?;
    result.set_item("lingers_hit", stats.lingers_hit)?;
    result.set_item(
        "longest_hold_ns",
        stats.longest_hold.map_or(0, |longest| longest.hold_ns),
    )?;
    result.set_item("longest_hold_ident", stats.longest_hold.map(|longest| longest.tag))?;
    result.set_item("waiting", waiting)?;
    Ok(Some(result))
}

/// Exponents of the bounds of `wait_counts`: 2¹² ns is 4 µs, 2³⁴ ns is 17 s. `WAIT_BOUNDS_NS` in `gil_counts.py`
/// has the same bounds.
const WAIT_EXPONENTS: std::ops::RangeInclusive<u32> = 12..=34;

fn class_dict<'py>(py: Python<'py>, class: &ClassStats) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("waits", class.waits)?;
    result.set_item("asks", class.asks)?;
    result.set_item("forced_drops", class.forced_drops)?;
    result.set_item("barged", class.barged)?;
    set_histogram(&result, &class.wait_ns)?;
    Ok(result)
}

fn set_histogram(result: &Bound<'_, PyDict>, histogram: &Histogram) -> PyResult<()> {
    result.set_item("served", histogram.count())?;
    let counts: Vec<u64> = WAIT_EXPONENTS.map(|exponent| histogram.count_below(exponent)).collect();
    result.set_item("wait_counts", PyTuple::new(result.py(), counts)?)?;
    result.set_item("wait_sum_ns", histogram.sum())?;
    result.set_item("wait_p50_ns", histogram.quantile(500))?;
    result.set_item("wait_p99_ns", histogram.quantile(990))?;
    result.set_item("wait_max_ns", histogram.max())
}
