//! BytesQueue: a bounded queue of bytes; pickled objects are added in Python.
//!
//! Invariant: an item is in the queue whole or not at all.

use super::account::OwnAccount;
use super::item::{self, PICKLE, Plain};
use super::methods::{self, Primitive};
use super::segment::errors;
use super::segment::{Body, Inheritance};
use super::threads::THREADS;
use super::wait::{self, WaitRound, Watch, task_outcome, yes};
use crate::sync::calls::arguments::{self, Timeout};
use crate::sync::calls::fast::{self, Method};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyType};
use unsnarl_ipc::{AtomicU64, Kernel, Kind, PutAttempts, Ring, RingWords, Slept, Step, Take};
use unsnarl_shm::Host;

/// A bounded queue of bytes between processes.
///
/// `maxsize` bounds the number of items (0: no bound), `capacity` their bytes; an item longer than `longest` is a
/// `ValueError`. `Full` if there is no room and `Empty` if there is no item (in time, seconds); `ShutDown` after
/// `shutdown`. An item is in the queue whole or not at all, whichever process is killed.
/// Fairness: none between processes; items come out in the order they went in.
/// Cancellation: a cancelled get has taken nothing, a cancelled put has put nothing.
#[pyclass(frozen, subclass, weakref, module = "unsnarl.ipc", name = "BytesQueue")]
pub(super) struct IpcBytesQueue {
    body: Body,
    promiser: OwnAccount,
}

impl Primitive for IpcBytesQueue {
    fn body(&self) -> &Body {
        &self.body
    }
}

/// A task's memory between its attempts at one put.
#[pyclass(frozen, module = "unsnarl._native", name = "IpcPutAttempts")]
#[derive(Default)]
pub(super) struct IpcPutAttempts(PutAttempts);

impl IpcBytesQueue {
    fn of(body: Body) -> Self {
        Self {
            body,
            promiser: OwnAccount::default(),
        }
    }

    fn ring(&self) -> Ring<'_> {
        let mapping = &self.body.segment.mapping;
        // SAFETY: atomics alone.
        let (words, data) = unsafe { (mapping.state::<RingWords>(), mapping.table::<AtomicU64>()) };
        Ring {
            words,
            data,
            max_records: self.body.segment.header.parameter as u32,
        }
    }

    fn check(&self, length: usize) -> PyResult<()> {
        let longest = self.ring().longest();
        if length <= longest {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "an item of {length} bytes does not fit into a queue of {longest} (hint: make it with a larger capacity)"
        )))
    }

    fn damaged(&self) -> PyErr {
        let name = self.body.segment.name().unwrap_or("(no name)");
        PyRuntimeError::new_err(format!("the queue {name:?} was overwritten"))
    }

    fn put_step(
        &self,
        py: Python<'_>,
        tag: u8,
        record: &[u8],
        attempts: &PutAttempts,
        slept: Slept,
    ) -> PyResult<Step<'_, ()>> {
        finish(self.ring().put(tag, record, attempts, slept, &Host), |is_put| {
            is_put.then_some(()).ok_or_else(|| errors::queue(py, "ShutDown"))
        })
    }

    fn get_step(&self, py: Python<'_>, slept: Slept) -> PyResult<Step<'_, (u8, Vec<u8>)>> {
        finish(self.ring().get(slept, &Host), |taken| match taken {
            Take::Record(tag, record) => Ok((tag, record)),
            Take::Shut => Err(errors::queue(py, "ShutDown")),
            Take::Damaged => Err(self.damaged()),
        })
    }

    /// Repeats an attempt until it is done; raises the exception `failure` if that takes too long.
    ///
    /// An attempt that fails makes the other side ring for the caller, so `is_ready` is checked before the first
    /// attempt.
    #[inline]
    fn repeat<'a, T>(
        &'a self,
        py: Python<'_>,
        limit: (bool, Option<&Bound<'_, PyAny>>),
        failure: &str,
        is_ready: impl Fn() -> bool,
        mut attempt: impl FnMut(Slept) -> PyResult<Step<'a, T>>,
    ) -> PyResult<T> {
        if is_ready()
            && let Step::Done(done) = attempt(Slept::NOT)?
        {
            return Ok(done);
        }
        let ring = self.ring();
        let timeout = wait::timeouts::queue_timeout(limit.0, limit.1)?;
        if matches!(timeout, Timeout::None) && !is_ready() && !ring.is_shut() {
            return Err(errors::queue(py, failure));
        }
        let outcome = wait::block_behind_guard(
            py,
            timeout,
            Some(&self.body.spin),
            Watch::Kernel,
            &is_ready,
            &|word| ring.is_guard(word),
            |round: WaitRound| attempt(round.slept),
        )?;
        outcome.ok_or_else(|| errors::queue(py, failure))
    }

    /// Puts an object that needs no pickle, if there is room; false otherwise.
    fn put_plain(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Some(plain) = Plain::of(item) else {
            return Ok(false);
        };
        let (tag, record) = plain.record();
        // The check precedes the attempt: an attempt without room would make a getter ring although no thread waits.
        if record.len() > self.ring().longest() || !self.ring().fits(record.len()) {
            return Ok(false);
        }
        let step = self.put_step(item.py(), tag, record, &PutAttempts::default(), Slept::NOT)?;
        Ok(matches!(step, Step::Done(())))
    }

    /// Takes a record, waiting for it if necessary.
    fn take(&self, py: Python<'_>, block: bool, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<(u8, Vec<u8>)> {
        let is_ready = || !self.ring().is_empty();
        self.repeat(py, (block, timeout), "Empty", is_ready, |slept| {
            self.get_step(py, slept)
        })
    }
}

/// Converts the outcome of an attempt at the ring; a caller about to sleep ends its registration with the kernel.
fn finish<'a, T, U>(step: Step<'a, T>, done: impl FnOnce(T) -> PyResult<U>) -> PyResult<Step<'a, U>> {
    match step {
        Step::Done(value) => done(value).map(Step::Done),
        Step::Sleep(word, expected) => {
            Host.end();
            Ok(Step::Sleep(word, expected))
        }
    }
}

unsafe extern "C" fn put_plain(slf: *mut ffi::PyObject, item: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of IpcBytesQueue.
    let this = unsafe { fast::this::<IpcBytesQueue>(slf) };
    fast::enter(|py| {
        // SAFETY: the argument of this call.
        let item = unsafe { Bound::from_borrowed_ptr(py, item) };
        this.put_plain(&item).map(fast::boolean)
    })
}

unsafe extern "C" fn get_object(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: a method descriptor of IpcBytesQueue.
    let this = unsafe { fast::this::<IpcBytesQueue>(slf) };
    fast::enter(|py| {
        // SAFETY: the arguments of this call.
        let [block, timeout] = unsafe { arguments::sort(py, "get", ["block", "timeout"], args, nargs, kwnames)? };
        let block = block.map_or(Ok(true), |block| block.is_truthy())?;
        let (tag, record) = this.take(py, block, timeout.as_ref())?;
        item::object(py, tag, &record).map(Bound::into_ptr)
    })
}

#[pymethods]
impl IpcBytesQueue {
    #[new]
    #[pyo3(signature = (maxsize=0, name=None, *, capacity=1 << 20, _allocation=None))]
    fn new(
        py: Python<'_>,
        maxsize: i64,
        name: Option<&str>,
        capacity: i64,
        _allocation: Option<Inheritance>,
    ) -> PyResult<Self> {
        if let Some(allocation) = _allocation {
            let body = Body::inherit(py, allocation, Kind::Queue)?;
            return Ok(Self::of(body));
        }
        let maxsize = u32::try_from(maxsize.max(0)).map_err(|_| PyValueError::new_err("maxsize is too large"))?;
        let capacity = u64::try_from(capacity)
            .ok()
            .filter(|capacity| (64..=1 << 34).contains(capacity))
            .ok_or_else(|| PyValueError::new_err("capacity takes 64 bytes to 16 GiB"))?;
        let body = Body::make(py, name, Kind::Queue, u64::from(maxsize), capacity, |_| {})?;
        Ok(Self::of(body))
    }

    /// Inherits an object of the same class: the queue of objects is a subclass.
    #[classmethod]
    fn _inherit<'py>(class: &Bound<'py, PyType>, allocation: Inheritance) -> PyResult<Bound<'py, PyAny>> {
        let arguments = PyDict::new(class.py());
        arguments.set_item("_allocation", allocation)?;
        class.call((), Some(&arguments))
    }

    /// Put bytes at the end; Full if there is no room (in time), ShutDown after `shutdown`.
    #[pyo3(signature = (item, block=true, timeout=None))]
    fn put_bytes(
        &self,
        py: Python<'_>,
        item: &Bound<'_, PyAny>,
        block: bool,
        timeout: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let buffer;
        let record = match item.cast::<PyBytes>() {
            Ok(bytes) => bytes.as_bytes(),
            Err(_) => {
                buffer = item.extract::<pyo3::buffer::PyBuffer<u8>>()?.to_vec(py)?;
                &buffer[..]
            }
        };
        self.check(record.len())?;
        let attempts = PutAttempts::default();
        let is_ready = || self.ring().fits(record.len());
        self.repeat(py, (block, timeout.as_ref()), "Full", is_ready, |slept| {
            self.put_step(py, PICKLE, record, &attempts, slept)
        })
    }

    /// Take the oldest bytes; Empty if there are none (in time), ShutDown if none will follow.
    #[pyo3(signature = (block=true, timeout=None))]
    fn get_bytes<'py>(
        &self,
        py: Python<'py>,
        block: bool,
        timeout: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (_, record) = self.take(py, block, timeout.as_ref())?;
        Ok(PyBytes::new(py, &record))
    }

    /// The state that a task passes to every attempt at one put.
    #[staticmethod]
    fn _put_attempts() -> IpcPutAttempts {
        IpcPutAttempts::default()
    }

    fn _attempt_put(
        slf: &Bound<'_, Self>,
        item: &Bound<'_, PyBytes>,
        attempts: &Bound<'_, IpcPutAttempts>,
        has_slept: bool,
    ) -> PyResult<Py<PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        this.check(item.as_bytes().len())?;
        let slept = Slept::somewhere(has_slept);
        let step = this.put_step(py, PICKLE, item.as_bytes(), &attempts.get().0, slept)?;
        task_outcome(py, slf.as_any(), step, |()| Ok(py.None()))
    }

    fn _attempt_get(slf: &Bound<'_, Self>, has_slept: bool) -> PyResult<Py<PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let step = this.get_step(py, Slept::somewhere(has_slept))?;
        task_outcome(py, slf.as_any(), step, |(tag, record)| {
            item::object(py, tag, &record).map(Bound::unbind)
        })
    }

    fn _attempt_join(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        task_outcome(py, slf.as_any(), slf.get().ring().join(THREADS, &Host), |()| yes(py))
    }

    /// Announces that this process will put an item later: `join` waits for it from now on.
    fn _promise(&self) {
        let books = self.ring().promises(THREADS);
        self.ring().promise(&books, self.promiser.of(&books));
    }

    /// Resolves a promise: the item was put, or will not be.
    fn _resolve(&self) {
        let books = self.ring().promises(THREADS);
        self.ring().resolve(&books, self.promiser.of(&books), &Host);
    }

    /// Count an item as dealt with; ValueError if all are.
    fn task_done(&self) -> PyResult<()> {
        if self.ring().task_done(&Host) {
            return Ok(());
        }
        Err(PyValueError::new_err("task_done() called too many times"))
    }

    /// Wait until every item is dealt with; False if the timeout (seconds) passed first.
    #[pyo3(signature = (timeout=None))]
    fn join(&self, py: Python<'_>, timeout: Option<Bound<'_, PyAny>>) -> PyResult<bool> {
        let ring = self.ring();
        let timeout = wait::timeouts::wait_timeout(timeout.as_ref())?;
        let is_ready = || ring.unfinished() == 0;
        let outcome = wait::block(py, timeout, Some(&self.body.spin), Watch::Kernel, &is_ready, |_| {
            Ok(ring.join(THREADS, &Host))
        })?;
        Ok(outcome.is_some())
    }

    /// Refuse further items; getters take the items that are left, then get ShutDown.
    fn shutdown(&self, py: Python<'_>) -> PyResult<()> {
        let ring = self.ring();
        wait::block(
            py,
            Timeout::Endless,
            None,
            Watch::Kernel,
            &|| true,
            |round: WaitRound| {
                let step = ring.shut(round.slept, &Host);
                Host.end();
                Ok(step)
            },
        )
        .map(|_| ())
    }

    /// Whether the queue refuses items.
    #[getter]
    fn is_shutdown(&self) -> bool {
        self.ring().is_shut()
    }

    /// Return the number of items.
    fn qsize(&self) -> u32 {
        self.ring().len()
    }

    /// Tell whether there are no items.
    fn empty(&self) -> bool {
        self.ring().is_empty()
    }

    /// Tell whether the number of items has reached `maxsize`.
    fn full(&self) -> bool {
        self.ring().is_full()
    }

    /// The largest number of items; 0 for no bound.
    #[getter]
    fn maxsize(&self) -> u32 {
        self.ring().max_records
    }

    /// The capacity in bytes.
    #[getter]
    fn capacity(&self) -> u64 {
        self.body.segment.header.capacity
    }

    /// The longest item in bytes.
    #[getter]
    fn longest(&self) -> usize {
        self.ring().longest()
    }

    /// Describe the queue's state; `deaths` counts processes that died inside, whose items were dropped whole.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = self.body.describe(py)?;
        let ring = self.ring();
        statistics.set_item("items", ring.len())?;
        statistics.set_item("unfinished", ring.unfinished())?;
        statistics.set_item("shut", ring.is_shut())?;
        statistics.set_item("deaths", ring.deaths())?;
        Ok(statistics)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        let bound = match this.maxsize() {
            0 => String::new(),
            maxsize => format!("/{maxsize}"),
        };
        Ok(format!(
            "<unsnarl.ipc.{}{}: items={}{bound}>",
            slf.get_type().name()?,
            this.body.label(),
            this.qsize()
        ))
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<IpcBytesQueue>();
    fast::install(
        &class,
        &[
            (
                c"_put_plain",
                c"Put an object that needs no pickle, if there is room; False otherwise.",
                Method::One(put_plain),
            ),
            (
                c"_get_object",
                c"Take the oldest object: get(block=True, timeout=None).",
                Method::FastKeywords(get_object),
            ),
        ],
    )?;
    methods::install::<IpcBytesQueue>(&class, &methods::JOINING)?;
    module.add("IpcBytesQueue", class)
}
