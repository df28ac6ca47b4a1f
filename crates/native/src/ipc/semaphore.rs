//! Semaphore and BoundedSemaphore: permits in a ledger that records which process took them.
//!
//! Invariant: a death is reported to one caller at most, and a caller that gets `OwnerDied` holds no permit.

use super::account::OwnAccount;
use super::methods::{self, Primitive};
use super::segment::errors;
use super::segment::{Body, Inheritance};
use super::threads::THREADS;
use super::wait::{self, WaitRound, Watch, task_outcome, yes};
use crate::sync::calls::arguments::{self, Timeout};
use crate::sync::calls::fast::{self, Method};
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use unsnarl_ipc::{Account, Books, Kind, SemaphoreWords, Step};
use unsnarl_shm::{Host, Mapping};

/// The largest value that sem_post(3) allows, and so multiprocessing.
const MOST: u32 = i32::MAX as u32;

/// A counter of permits between processes.
///
/// A caller that would wait for permits of a dead process gets `OwnerDied`, once, and no permit;
/// `make_consistent` gives them back. Once a process has given back more than it took, permits pass between
/// processes, and no death is reported any more; `statistics()` reports the permits that are certainly lost. A
/// semaphore that starts at 0 counts events, which no process holds: no death is reported there. `ValueError` for
/// a bad value and for more releases than fit.
/// Fairness: none between processes. Timeouts are in seconds.
/// Cancellation: a task that is cancelled has taken nothing; a wake-up meant for it goes to another sleeper.
#[pyclass(frozen, subclass, weakref, module = "unsnarl.ipc", name = "Semaphore")]
pub(super) struct IpcSemaphore {
    body: Body,
    bound: u32,
    account: OwnAccount,
}

impl Primitive for IpcSemaphore {
    fn body(&self) -> &Body {
        &self.body
    }
}

fn words(mapping: &Mapping) -> &SemaphoreWords {
    // SAFETY: atomics alone.
    unsafe { mapping.state::<SemaphoreWords>() }
}

impl IpcSemaphore {
    fn of(body: Body) -> Self {
        let initial = body.segment.header.parameter as u32;
        let is_bounded = body.segment.header.kind == Kind::BoundedSemaphore;
        Self {
            body,
            bound: if is_bounded { initial } else { MOST },
            account: OwnAccount::default(),
        }
    }

    fn make(py: Python<'_>, name: Option<&str>, kind: Kind, value: i64) -> PyResult<Self> {
        let value = u32::try_from(value)
            .ok()
            .filter(|value| *value <= MOST)
            .ok_or_else(|| PyValueError::new_err("semaphore initial value must be >= 0 and fit into 31 bits"))?;
        let start = |mapping: &Mapping| words(mapping).ledger.start(value);
        Body::make(py, name, kind, u64::from(value), 0, start).map(Self::of)
    }

    #[inline]
    fn words(&self) -> &SemaphoreWords {
        words(&self.body.segment.mapping)
    }

    fn accounts(&self) -> &[Account] {
        // SAFETY: atomics alone, 16 bytes.
        unsafe { self.body.segment.mapping.table::<Account>() }
    }

    #[inline]
    fn books(&self) -> Books<'_> {
        self.words()
            .books(self.accounts(), self.body.segment.header.parameter as u32, THREADS)
    }

    #[inline]
    fn try_acquire(&self) -> bool {
        let books = self.books();
        self.words().try_acquire(&books, self.account.of(&books))
    }

    fn attempt(&self, py: Python<'_>, round: WaitRound, may_wait: bool) -> PyResult<Step<'_, ()>> {
        let books = self.books();
        let account = self.account.of(&books);
        let step = self.words().acquire(&books, account, round.slept.has_slept(), &Host);
        // The caller is about to wait, or woke without a permit: check whether a dead process holds permits.
        let has_holders = self.body.segment.header.parameter != 0;
        if let Step::Sleep(..) = step
            && has_holders
            && may_wait
            && (round.is_recheck || !round.slept.has_slept())
            && let Some((process, count)) = books.unreported(&Host)
        {
            let what = format!("{count} permit(s) of the semaphore{}", self.body.label());
            return Err(errors::owner_died(py, &what, process));
        }
        Ok(step)
    }

    fn acquire(&self, py: Python<'_>, timeout: Timeout) -> PyResult<bool> {
        let is_ready = || self.words().ledger.value() > 0;
        let may_wait = !matches!(timeout, Timeout::None);
        let outcome = wait::block(py, timeout, Some(&self.body.spin), Watch::Own, &is_ready, |round| {
            self.attempt(py, round, may_wait)
        });
        outcome.map(|done| done.is_some())
    }

    #[inline]
    fn try_release(&self, count: u32) -> bool {
        let books = self.books();
        let account = self.account.of(&books);
        self.words().release(&books, account, count, self.bound, &Host)
    }

    fn release(&self, count: i64) -> PyResult<()> {
        let count = u32::try_from(count)
            .ok()
            .filter(|count| (1..=MOST).contains(count))
            .ok_or_else(|| PyValueError::new_err("n must be one or more"))?;
        if self.try_release(count) {
            return Ok(());
        }
        Err(PyValueError::new_err("Semaphore released too many times"))
    }
}

unsafe extern "C" fn enter(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of IpcSemaphore.
    let this = unsafe { fast::this::<IpcSemaphore>(slf) };
    if this.try_acquire() {
        return fast::boolean(true);
    }
    fast::enter(|py| this.acquire(py, Timeout::Endless).map(fast::boolean))
}

unsafe extern "C" fn acquire(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of IpcSemaphore.
    let this = unsafe { fast::this::<IpcSemaphore>(slf) };
    if nargs == 0 && kwnames.is_null() && this.try_acquire() {
        return fast::boolean(true);
    }
    fast::enter(|py| {
        // SAFETY: the arguments of this call.
        let timeout = unsafe { super::locks::timeout_of(py, args, nargs, kwnames)? };
        this.acquire(py, timeout).map(fast::boolean)
    })
}

unsafe extern "C" fn release(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of IpcSemaphore.
    let this = unsafe { fast::this::<IpcSemaphore>(slf) };
    if nargs == 0 && kwnames.is_null() && this.try_release(1) {
        return fast::none();
    }
    fast::enter(|py| {
        // SAFETY: the arguments of this call.
        let [count] = unsafe { arguments::sort(py, "release", ["n"], args, nargs, kwnames)? };
        this.release(count.map_or(Ok(1), |count| count.extract())?)?;
        Ok(fast::none())
    })
}

unsafe extern "C" fn exit(
    slf: *mut ffi::PyObject,
    _args: *mut *mut ffi::PyObject,
    _nargs: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    // SAFETY: the same contract, without arguments.
    unsafe { release(slf, std::ptr::null(), 0, std::ptr::null_mut()) }
}

#[pymethods]
impl IpcSemaphore {
    #[new]
    #[pyo3(signature = (value=1, name=None))]
    fn new(py: Python<'_>, value: i64, name: Option<&str>) -> PyResult<Self> {
        Self::make(py, name, Kind::Semaphore, value)
    }

    #[staticmethod]
    fn _inherit(py: Python<'_>, allocation: Inheritance) -> PyResult<Self> {
        Body::inherit(py, allocation, Kind::Semaphore).map(Self::of)
    }

    /// Attempts to take a permit for a task: True, or the sleep.
    fn _attempt(slf: &Bound<'_, Self>, has_slept: bool) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        // A task does not know why it woke, so it checks for dead processes whenever it woke without a permit.
        let round = WaitRound::of_task(has_slept, has_slept);
        let step = slf.get().attempt(py, round, true)?;
        task_outcome(py, slf.as_any(), step, |()| yes(py))
    }

    /// Give back the permits of dead processes; returns their number.
    fn make_consistent(&self) -> i64 {
        let change = self.books().repair(&Host);
        if change > 0 {
            self.words().bell.ring(change as u32, &Host);
        }
        change
    }

    /// Tell whether no permit is free.
    fn locked(&self) -> bool {
        self.free() == 0
    }

    /// The number of free permits.
    #[getter(value)]
    fn free(&self) -> u32 {
        self.words().ledger.value()
    }

    /// Return the number of free permits.
    fn get_value(&self) -> u32 {
        self.free()
    }

    /// Describe the semaphore's state; `lost` permits are those of dead processes.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = self.body.describe(py)?;
        let (processes, held) = self.books().census(&Host);
        statistics.set_item("value", self.free())?;
        statistics.set_item("waiting", self.words().bell.is_heard())?;
        statistics.set_item("processes", processes)?;
        statistics.set_item("held", held)?;
        statistics.set_item("lost", self.books().lost(&Host).map_or(0, |(_, count)| count))?;
        Ok(statistics)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        let bound = if this.bound == MOST {
            String::new()
        } else {
            format!("/{}", this.bound)
        };
        Ok(format!(
            "<unsnarl.ipc.{}{}: value={}{bound}>",
            slf.get_type().name()?,
            this.body.label(),
            this.free()
        ))
    }

    // The interface that multiprocessing's own queues and pools expect of a semaphore.
    #[getter]
    fn _semlock<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }
    fn _is_zero(&self) -> bool {
        self.locked()
    }
    fn _get_value(&self) -> u32 {
        self.free()
    }
    /// The bound of the value.
    #[getter]
    fn maxvalue(&self) -> u32 {
        self.bound
    }
}

/// A semaphore that refuses to be released more often than it was acquired.
///
/// The bound is the initial value: a release beyond it raises `ValueError`. All else: as `Semaphore`.
#[pyclass(frozen, subclass, weakref, extends = IpcSemaphore, module = "unsnarl.ipc", name = "BoundedSemaphore")]
pub(super) struct IpcBoundedSemaphore;

#[pymethods]
impl IpcBoundedSemaphore {
    #[new]
    #[pyo3(signature = (value=1, name=None))]
    fn new(py: Python<'_>, value: i64, name: Option<&str>) -> PyResult<PyClassInitializer<Self>> {
        let base = IpcSemaphore::make(py, name, Kind::BoundedSemaphore, value)?;
        Ok(PyClassInitializer::from(base).add_subclass(Self))
    }

    #[staticmethod]
    fn _inherit(py: Python<'_>, allocation: Inheritance) -> PyResult<Py<Self>> {
        let base = Body::inherit(py, allocation, Kind::BoundedSemaphore).map(IpcSemaphore::of)?;
        Py::new(py, PyClassInitializer::from(base).add_subclass(Self))
    }
}

const ACQUIRE: &std::ffi::CStr = c"Acquire a permit; with blocking=False or a timeout (seconds), False if that failed. OwnerDied, once, if it would wait for a permit of a dead process.";
const RELEASE: &std::ffi::CStr = c"Give n permits back; ValueError beyond the bound.";

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let calls = [
        (c"__enter__", ACQUIRE, Method::NoArgs(enter)),
        (c"__exit__", RELEASE, Method::Fast(exit)),
        (c"acquire", ACQUIRE, Method::FastKeywords(acquire)),
        (c"release", RELEASE, Method::FastKeywords(release)),
        (c"async_release", RELEASE, Method::FastKeywords(release)),
    ];
    // CPython calls a method directly only on the very class it was made for.
    for (name, class) in [
        ("IpcSemaphore", py.get_type::<IpcSemaphore>()),
        ("IpcBoundedSemaphore", py.get_type::<IpcBoundedSemaphore>()),
    ] {
        fast::install(&class, &calls)?;
        methods::install::<IpcSemaphore>(&class, &methods::LOCKING)?;
        module.add(name, class)?;
    }
    Ok(())
}
