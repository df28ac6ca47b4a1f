//! The innermost task that runs in this thread, and its event loop.
//!
//! Loops nest: trio or curio may run inside a task of asyncio, or asyncio inside a task of theirs. The outer
//! task then waits like any other caller.
//!
//! Must never: query trio or curio when asyncio's state suffices; that takes a microsecond.
//!
//! Invariant: the answer is the innermost task.

use super::backends;
use super::libraries;
use super::libraries::is_imported;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The running task, of whichever library, or None.
pub(in crate::sync) fn task(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let task = asyncio_task(py)?;
    if !libraries::has_other_loops(py) || is_innermost(py, &task) {
        return Ok(task);
    }
    backends::function(py, "current_task")?.call0()
}

/// A parker that suspends the running task, if the task is not one of asyncio.
pub(in crate::sync) fn parker<'py>(
    py: Python<'py>,
    running: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let is_asyncio = running.is_some() && !libraries::has_other_loops(py);
    if is_asyncio || is_innermost(py, &asyncio_task(py)?) {
        return Ok(None);
    }
    let parker = backends::function(py, "task_parker")?.call0()?;
    Ok((!parker.is_none()).then_some(parker))
}

/// Whether this task of asyncio runs with no other library inside it. False for None, and in doubt.
fn is_innermost(py: Python<'_>, task: &Bound<'_, PyAny>) -> bool {
    !task.is_none() && !libraries::has_curio(py) && is_outside_trio(py).unwrap_or(false)
}

/// Whether trio's mark for sniffio says that trio does not run in this thread. trio has the mark from 0.23
/// on.
fn is_outside_trio(py: Python<'_>) -> PyResult<bool> {
    static LOCAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let local = LOCAL.get_or_try_init(py, || {
        let modules = py.import("sys")?.getattr("modules")?;
        let trio = modules.get_item("trio._core._run")?;
        Ok::<_, PyErr>(trio.getattr("sniffio_library")?.unbind())
    })?;
    let name = local.bind(py).getattr(pyo3::intern!(py, "name"))?;
    Ok(name.is_none())
}

/// asyncio's running task, or None.
#[cfg(Py_3_12)]
pub(in crate::sync) fn asyncio_task(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let none = || Ok(py.None().into_bound(py));
    if CURRENT.get(py).is_none() && !is_imported(py, pyo3::intern!(py, "asyncio.tasks")) {
        return none();
    }
    match CURRENT.import(py, "asyncio.tasks", "current_task")?.call0() {
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyRuntimeError>(py) => none(),
        outcome => outcome,
    }
}

/// asyncio's running task, or None. Does what `asyncio.current_task` does, which is written in Python before
/// 3.12.
#[cfg(not(Py_3_12))]
pub(in crate::sync) fn asyncio_task(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    use pyo3::types::PyDict;
    static TASKS: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let none = || Ok(py.None().into_bound(py));
    let Some(running) = running_loop(py)? else {
        return none();
    };
    let tasks = TASKS.import(py, "asyncio.tasks", "_current_tasks")?;
    tasks.get_item(running)?.map_or_else(none, Ok)
}

/// asyncio's running loop in this thread.
pub(in crate::sync) fn running_loop(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    if !is_imported(py, pyo3::intern!(py, "asyncio.events")) {
        return Ok(None);
    }
    #[cfg(not(Py_3_12))]
    return holder::running_loop(py);
    #[cfg(Py_3_12)]
    ask_for_loop(py)
}

fn ask_for_loop(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let running = RUNNING.import(py, "asyncio.events", "_get_running_loop")?.call0()?;
    Ok((!running.is_none()).then_some(running))
}

/// asyncio's running loop without a system call: before 3.12 asyncio calls getpid(2) for each question.
///
/// asyncio's C code keeps an object in the thread's dict that names the loop and the process (3.11's
/// Modules/_asynciomodule.c, PyRunningLoopHolder; no later 3.11 will change it).
///
/// Invariant: the object is read only after its content has once agreed with asyncio's own answer.
#[cfg(not(Py_3_12))]
mod holder {
    use crate::sync::who::process;
    use pyo3::ffi;
    use pyo3::prelude::*;
    use std::ptr;
    use std::sync::atomic::{AtomicPtr, Ordering};

    #[repr(C)]
    struct Holder {
        base: ffi::PyObject,
        event_loop: *mut ffi::PyObject,
        process: libc::pid_t,
    }

    /// The class whose objects have the layout declared above.
    static KNOWN: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(ptr::null_mut());

    pub(in crate::sync) fn running_loop(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
        let Some(holder) = current(py) else {
            return super::ask_for_loop(py);
        };
        // SAFETY: a live object of the thread's dict.
        let class = unsafe { ffi::Py_TYPE(holder.cast_mut().cast()) };
        if class == KNOWN.load(Ordering::Relaxed) {
            // SAFETY: an object of the class whose layout was verified; what it names lives as long as it
            // does.
            let (process, event_loop) = unsafe {
                let named = Bound::from_borrowed_ptr(py, (*holder).event_loop);
                ((*holder).process, named)
            };
            let is_here = process == process::id() && !event_loop.is_none();
            return Ok(is_here.then_some(event_loop));
        }
        let running = super::ask_for_loop(py)?;
        // SAFETY: a live class; the object is read only if it is large enough.
        let agrees = unsafe {
            usize::try_from((*class).tp_basicsize) == Ok(size_of::<Holder>())
                && running
                    .as_ref()
                    .is_some_and(|running| running.as_ptr() == (*holder).event_loop)
                && (*holder).process == process::id()
        };
        if agrees {
            KNOWN.store(class, Ordering::Relaxed);
        }
        Ok(running)
    }

    /// The object that asyncio keeps in the thread's dict, borrowed.
    fn current(py: Python<'_>) -> Option<*const Holder> {
        // SAFETY: attached; both are borrowed references or null.
        let found = unsafe {
            let key = pyo3::intern!(py, "__asyncio_running_event_loop__");
            let dict = ffi::PyThreadState_GetDict();
            if dict.is_null() {
                return None;
            }
            ffi::PyDict_GetItemWithError(dict, key.as_ptr())
        };
        (!found.is_null()).then_some(found.cast_const().cast())
    }
}
