//! The set of imported libraries whose tasks or greenlets may call, cached against the size of `sys.modules`.
//!
//! Must never: import a library; a program that has not imported one has none of its tasks.
//!
//! Invariant: a library that was found stays found.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};
use std::sync::atomic::{AtomicIsize, AtomicU32, Ordering};

/// The libraries, one bit each.
const GREENLETS: u32 = 1;
const HUBS: u32 = 2;
const TRIO: u32 = 4;
const CURIO: u32 = 8;

fn modules(py: Python<'_>) -> Option<&Bound<'_, PyDict>> {
    static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    MODULES
        .get_or_try_init(py, || {
            py.import("sys")?
                .getattr("modules")?
                .cast_into::<PyDict>()
                .map(Bound::unbind)
                .map_err(PyErr::from)
        })
        .ok()
        .map(|modules| modules.bind(py))
}

/// Whether a module has been imported.
pub(in crate::sync) fn is_imported(py: Python<'_>, name: &Bound<'_, PyString>) -> bool {
    modules(py).is_some_and(|modules| modules.contains(name).unwrap_or(false))
}

/// The bits of the imported libraries. Searches `sys.modules` only when its size has changed.
#[inline]
fn libraries(py: Python<'_>) -> u32 {
    static SIZE: AtomicIsize = AtomicIsize::new(-1);
    static FOUND: AtomicU32 = AtomicU32::new(0);
    let Some(modules) = modules(py) else {
        return 0;
    };
    // SAFETY: a live dict, attached.
    let size = unsafe { ffi::PyDict_Size(modules.as_ptr()) };
    // ORDERING: pairs with the release below; a thread that reads this size sees what was found with it.
    if size != SIZE.load(Ordering::Acquire) {
        // Bits are only added: another thread may have found more since this one searched.
        FOUND.fetch_or(search(py), Ordering::Relaxed);
        // ORDERING: pairs with the acquire above.
        SIZE.store(size, Ordering::Release);
    }
    FOUND.load(Ordering::Relaxed)
}

#[cold]
fn search(py: Python<'_>) -> u32 {
    let bit_if = |is_there: bool, bit| if is_there { bit } else { 0 };
    let has = |name| is_imported(py, name);
    bit_if(has(pyo3::intern!(py, "greenlet")), GREENLETS)
        | bit_if(has(pyo3::intern!(py, "trio")), TRIO)
        | bit_if(has(pyo3::intern!(py, "curio")), CURIO)
        | bit_if(
            has(pyo3::intern!(py, "gevent")) || has(pyo3::intern!(py, "eventlet")),
            HUBS,
        )
}

/// Whether greenlets may call.
#[inline]
pub(in crate::sync) fn has_greenlets(py: Python<'_>) -> bool {
    libraries(py) & GREENLETS != 0
}

/// Whether a library other than asyncio may run tasks.
#[inline]
pub(in crate::sync) fn has_other_loops(py: Python<'_>) -> bool {
    libraries(py) & (TRIO | CURIO) != 0
}

/// Whether curio may run tasks.
pub(in crate::sync) fn has_curio(py: Python<'_>) -> bool {
    libraries(py) & CURIO != 0
}

/// Whether a thread may run a greenlet hub.
pub(in crate::sync) fn has_hubs(py: Python<'_>) -> bool {
    libraries(py) & HUBS != 0
}
