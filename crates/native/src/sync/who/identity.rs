//! Who is calling: which thread, greenlet or task; and in which process.
//!
//! Invariant: an identity is an address of a thread or a greenlet, or made of a task's
//! address and its thread's number: two parties that live at the same time never share one.

use super::running;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicIsize, AtomicU32, AtomicUsize, Ordering};

static EPOCH: AtomicU32 = AtomicU32::new(0);
static GENERATION: AtomicU32 = AtomicU32::new(0);
static SURVIVOR: AtomicUsize = AtomicUsize::new(NOBODY);
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// A number that no thread has.
const NOBODY: usize = usize::MAX;

/// A number that differs between a process and its forked children.
pub(crate) fn epoch() -> u32 {
    EPOCH.load(Ordering::Relaxed)
}

/// Another number whenever parties may have died: by a fork, or with their thread.
pub(in crate::sync) fn generation() -> u32 {
    // ORDERING: pairs with the release in `count_deaths`: who sees the number sees who has died.
    GENERATION.load(Ordering::Acquire)
}

/// Say that some have.
pub(in crate::sync) fn count_deaths() {
    // ORDERING: pairs with the acquire in `generation`.
    GENERATION.fetch_add(1, Ordering::Release);
}

/// This process's number.
#[cfg_attr(Py_3_12, allow(dead_code, reason = "asyncio tells without being asked twice"))]
pub(in crate::sync) fn process() -> libc::pid_t {
    PROCESS.load(Ordering::Relaxed)
}

/// The number of the thread that the last fork left alive.
pub(in crate::sync) fn survivor() -> usize {
    SURVIVOR.load(Ordering::Relaxed)
}

/// Take the other greenlets of the thread that the last fork left alive for dead: as threads they are the parent's.
#[pyo3::pyfunction]
pub(crate) fn leave_greenlets_behind() {
    SURVIVOR.store(NOBODY, Ordering::Relaxed);
    count_deaths();
}

/// Count forks, so that waiters of the parent's threads are known as dead in the child.
pub(crate) fn watch_forks() {
    extern "C" fn in_child() {
        SURVIVOR.store(number(), Ordering::Relaxed);
        EPOCH.fetch_add(1, Ordering::Relaxed);
        count_deaths();
        note_process();
        crate::sync::wait::spin::forget();
    }
    fn note_process() {
        // SAFETY: getpid(2) always succeeds.
        PROCESS.store(unsafe { libc::getpid() }, Ordering::Relaxed);
    }
    static WATCH: Once = Once::new();
    note_process();
    // SAFETY: pthread_atfork(3): the handler only writes to atomics, and the library
    // that contains it is never unloaded (extension modules are not).
    WATCH.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
    });
}

/// This thread's number, as `threading.get_ident()` gives it.
#[inline]
pub(crate) fn thread() -> usize {
    // SAFETY: pthread_self(3) always succeeds.
    (unsafe { libc::pthread_self() }) as usize
}

/// Whether this is the process's first thread, which runs Python's signal handlers.
pub(crate) fn is_main_thread() -> bool {
    // SAFETY: gettid(2) and getpid(2) always succeed.
    unsafe { libc::gettid() == libc::getpid() }
}

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
pub(crate) fn is_imported(py: Python<'_>, name: &Bound<'_, pyo3::types::PyString>) -> bool {
    modules(py).is_some_and(|modules| modules.contains(name).unwrap_or(false))
}

/// What libraries there can be parties of, as bits.
const GREENLETS: u32 = 1;
const HUBS: u32 = 2;
const TRIO: u32 = 4;
const CURIO: u32 = 8;

/// Which of them have been imported. Asks `sys.modules` only when its size changed.
#[inline]
fn libraries(py: Python<'_>) -> u32 {
    static SIZE: AtomicIsize = AtomicIsize::new(-1);
    static FOUND: AtomicU32 = AtomicU32::new(0);
    let Some(modules) = modules(py) else {
        return 0;
    };
    // SAFETY: a live dict, attached.
    let size = unsafe { ffi::PyDict_Size(modules.as_ptr()) };
    // ORDERING: who reads this size here has what was found with it, below.
    if size != SIZE.load(Ordering::Acquire) {
        // Never back to none: another thread may have found more since this one looked.
        FOUND.fetch_or(look_for_libraries(py), Ordering::Relaxed);
        SIZE.store(size, Ordering::Release);
    }
    FOUND.load(Ordering::Relaxed)
}

#[cold]
fn look_for_libraries(py: Python<'_>) -> u32 {
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

/// Whether there can be greenlets.
#[inline]
fn has_greenlets(py: Python<'_>) -> bool {
    libraries(py) & GREENLETS != 0
}

/// The owner that a synchronous call acts for: the thread, or the greenlet if
/// that is not the thread's main one.
#[inline]
pub(crate) fn caller(py: Python<'_>) -> usize {
    if has_greenlets(py) {
        greenlet(py).unwrap_or_else(|_| thread())
    } else {
        thread()
    }
}

#[cold]
fn greenlet(py: Python<'_>) -> PyResult<usize> {
    static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let current = CURRENT
        .get_or_try_init(py, || {
            Ok::<_, PyErr>(py.import("greenlet")?.getattr("getcurrent")?.unbind())
        })?
        .bind(py)
        .call0()?;
    let is_main = current.getattr(pyo3::intern!(py, "parent"))?.is_none();
    Ok(if is_main { thread() } else { current.as_ptr() as usize })
}

/// Bits of a task's identity that say which thread it runs in, and that it is a task:
/// addresses of threads and greenlets are even.
const THREAD_BITS: u32 = 20;
/// Objects of Python are aligned to this many bits.
const ALIGNMENT_BITS: u32 = 4;

/// The owner that an asynchronous call acts for: the running task.
///
/// # Errors
/// `RuntimeError` outside of a task.
pub(crate) fn task(py: Python<'_>) -> PyResult<usize> {
    match task_if_any(py)? {
        NO_TASK => Err(pyo3::exceptions::PyRuntimeError::new_err(
            "the asynchronous methods work in a task of asyncio, trio, anyio or curio; there is none here",
        )),
        task => Ok(task),
    }
}

/// The same where no task need run, as in `asyncio.run(lock.async_acquire())`: then [`NO_TASK`], and whoever takes
/// the first step is the owner.
#[inline]
pub(in crate::sync) fn task_if_any(py: Python<'_>) -> PyResult<usize> {
    let task = running::task(py)?;
    if task.is_none() {
        return Ok(NO_TASK);
    }
    Ok((task.as_ptr() as usize >> ALIGNMENT_BITS) << THREAD_BITS | thread_mark())
}

/// What no party's identity is.
pub(in crate::sync) const NO_TASK: usize = 0;

/// Whether this is a task's identity.
pub(in crate::sync) fn is_task(identity: usize) -> bool {
    identity & 1 == 1
}

/// Whether this is the identity of a task that will not run again, other than to be closed. Asks Python, and at
/// length: not where it may be asked often.
pub(in crate::sync) fn is_over(py: Python<'_>, identity: usize) -> PyResult<bool> {
    if !is_task(identity) {
        return Ok(false);
    }
    python(py, "is_over")?.call1((address_of(identity),))?.is_truthy()
}

fn address_of(task: usize) -> usize {
    (task >> THREAD_BITS) << ALIGNMENT_BITS
}

/// The address of the task with this identity if it runs in the calling thread.
pub(in crate::sync) fn task_of_this_thread(identity: usize) -> Option<usize> {
    let is_here = identity & ((1 << THREAD_BITS) - 1) == thread_mark();
    is_here.then_some(address_of(identity))
}

/// An odd number that two threads share only if half a million were started between them.
fn thread_mark() -> usize {
    (number() << 1 | 1) & ((1 << THREAD_BITS) - 1)
}

/// The thread's own number, also in the child that it forks; no other thread has it, here or there.
pub(in crate::sync) fn number() -> usize {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = LAST.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}

/// Whether a library other than asyncio may run tasks.
#[inline]
pub(crate) fn has_other_loops(py: Python<'_>) -> bool {
    libraries(py) & (TRIO | CURIO) != 0
}

/// Whether curio may run tasks.
pub(in crate::sync) fn has_curio(py: Python<'_>) -> bool {
    libraries(py) & CURIO != 0
}

/// Whether there can be a greenlet hub.
pub(crate) fn has_hubs(py: Python<'_>) -> bool {
    libraries(py) & HUBS != 0
}

/// A function of `unsnarl.sync.backends`.
pub(crate) fn python<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static BACKENDS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    BACKENDS
        .get_or_try_init(py, || {
            Ok::<_, PyErr>(py.import("unsnarl.sync.backends")?.into_any().unbind())
        })?
        .bind(py)
        .getattr(name)
}

/// How many of the threads released together are on their way at once: a few where there is
/// a GIL to fight for, all where there is none. One is too few: the kernel leaves a woken
/// thread in a processor's queue for milliseconds now and then, and all behind it wait.
pub(crate) fn fan_out() -> usize {
    if has_gil() { CHAINS } else { usize::MAX }
}

/// Enough that one of them moves on; few enough that who sets an event does not pay for waking everybody, and that
/// those who are awake find the GIL free: with eight, eight parties at a barrier slept for it once more each.
const CHAINS: usize = 4;

/// Whether this interpreter has a GIL.
#[inline]
pub(in crate::sync) const fn has_gil() -> bool {
    !cfg!(Py_GIL_DISABLED)
}

/// Leave the cores' mutexes to the GIL, where one is always there. A build that can do
/// without counts as one that does, even while its GIL is on: an import of a module that
/// declares nothing switches it on, and it may go off again.
pub(crate) fn rely_on_gil() {
    if has_gil() {
        // SAFETY: no primitive exists yet (the module is being made); from now on the cores
        // are only called by attached threads, and never detach under way (see `sync`).
        unsafe { unsnarl_sync::elide_mutexes() };
    }
}
