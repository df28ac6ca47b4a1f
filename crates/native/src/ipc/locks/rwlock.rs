//! RWLock: many readers in any processes, or one writer.

use super::ownership::{Acquired, Ownership, OwnershipWords};
use crate::ipc::THREADS;
use crate::ipc::account::OwnAccount;
use crate::ipc::methods::{self, Primitive};
use crate::ipc::segment::{Body, Inheritance};
use crate::ipc::wait::{self, WaitRound, Watch, told, yes};
use crate::sync::arguments::Patience as Timeout;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use unsnarl_ipc::{ALL, Account, Books, Kernel, Kind, Ordering, RwWords, Step, TID_MASK};
use unsnarl_shm::Host;

/// A read/write lock between processes; writers do not starve.
///
/// Many readers together, or one writer alone. If a writer died inside, the next writer gets `OwnerDied`
/// and holds the lock, to repair and to call `make_consistent`; until then readers get it too, and hold
/// nothing. A reader that dies is taken back silently.
/// Fairness: new readers stay out while a writer waits; readers may starve behind writers without pause.
/// Cancellation: a task that is cancelled has taken nothing. Timeouts are in seconds.
#[pyclass(frozen, subclass, weakref, module = "unsnarl.ipc", name = "RWLock")]
pub(in crate::ipc) struct IpcRWLock {
    body: Body,
    ownership: Ownership,
    account: OwnAccount,
}

impl Primitive for IpcRWLock {
    fn body(&self) -> &Body {
        &self.body
    }
}

#[repr(C)]
struct Words {
    ownership: OwnershipWords,
    rw: RwWords,
}

/// One side of a read/write lock between processes.
///
/// `RuntimeError` for a release of what nobody holds; `OwnerDied`, fairness and cancellation are those of
/// `RWLock`.
#[pyclass(frozen, module = "unsnarl.ipc", name = "RWLockSide")]
pub(in crate::ipc) struct IpcRWLockSide {
    lock: Py<IpcRWLock>,
    is_writer: bool,
}

impl IpcRWLock {
    fn of(body: Body) -> Self {
        Self {
            body,
            ownership: Ownership::default(),
            account: OwnAccount::default(),
        }
    }

    fn words(&self) -> &RwWords {
        // SAFETY: atomics alone.
        &unsafe { self.body.segment.mapping.state::<Words>() }.rw
    }

    fn books(&self) -> Books<'_> {
        // SAFETY: atomics alone, 16 bytes.
        self.words()
            .books(unsafe { self.body.segment.mapping.table::<Account>() }, THREADS)
    }

    fn account(&self) -> Option<&Account> {
        self.account.of(&self.books())
    }

    fn death(&self, py: Python<'_>) -> PyErr {
        self.ownership.death(py, &self.body, "the write lock")
    }

    fn is_damaged(&self) -> bool {
        super::ownership::words(&self.body.segment.mapping)
            .damage
            .load(Ordering::Acquire)
            != 0
    }

    fn read_attempt(&self, py: Python<'_>, has_slept: bool) -> PyResult<Step<'_, ()>> {
        let writer = self.body.segment.mapping.robust_word();
        let (books, account) = (self.books(), self.account());
        match self.words().read(writer, &books, account, has_slept, &Host) {
            Step::Sleep(word, expected) => Ok(Step::Sleep(word, expected)),
            Step::Done(true) if !self.is_damaged() => Ok(Step::Done(())),
            Step::Done(entered) => {
                if entered {
                    self.words().leave(&self.books(), self.account(), &Host);
                }
                Err(self.death(py))
            }
        }
    }

    fn read(&self, py: Python<'_>, timeout: Timeout) -> PyResult<bool> {
        let writer = self.body.segment.mapping.robust_word();
        let is_ready = || writer.load(Ordering::Relaxed) & TID_MASK == 0;
        let outcome = wait::block(py, timeout, Some(&self.body.spin), Watch::Kernel, &is_ready, |round| {
            self.read_attempt(py, round.slept.has_slept())
        });
        outcome.map(|had| had.is_some())
    }

    /// Whether nothing is half-changed: a writer that died before it was alone has changed nothing.
    fn is_sound(&self, had: Acquired) -> bool {
        had == Acquired::Sound || self.words().is_writing.load(Ordering::SeqCst) == 0
    }

    /// The writer's word is taken: wait for the readers to leave; false if the time was up.
    fn drain(&self, py: Python<'_>, timeout: Timeout, had: Acquired) -> PyResult<bool> {
        let is_sound = self.is_sound(had);
        let is_ready = || self.words().readers.value() == 0;
        let outcome = wait::block(py, timeout, Some(&self.body.spin), Watch::Own, &is_ready, |_| {
            Ok(self.words().drain(&self.books(), &Host))
        });
        if let Ok(Some(())) = outcome {
            return self.conclude(py, had, is_sound).map(|()| true);
        }
        self.back_out(had)?;
        outcome.map(|_| false)
    }

    /// Alone inside: tell what the writer before left.
    fn conclude(&self, py: Python<'_>, had: Acquired, is_sound: bool) -> PyResult<()> {
        if !is_sound {
            return Err(self.death(py));
        }
        if had == Acquired::Damaged {
            self.ownership.make_consistent(&self.body)?;
        }
        Ok(())
    }

    /// Give the writer's word back without having been alone inside.
    fn back_out(&self, had: Acquired) -> PyResult<()> {
        if had == Acquired::Damaged && self.is_sound(had) {
            self.ownership.make_consistent(&self.body)?;
        }
        self.ownership.release(&self.body, ALL);
        Ok(())
    }

    fn write(&self, py: Python<'_>, timeout: Timeout) -> PyResult<bool> {
        match self.ownership.acquire(py, &self.body, timeout)? {
            Some(had) => self.drain(py, timeout, had),
            None => Ok(false),
        }
    }

    fn release_write(&self) -> PyResult<()> {
        if !self.ownership.is_held(&self.body) {
            return Err(PyRuntimeError::new_err("release of a write lock that nobody holds"));
        }
        if !self.is_damaged() {
            self.words().is_writing.store(0, Ordering::SeqCst);
        }
        self.ownership.release(&self.body, ALL);
        Ok(())
    }

    fn release_read(&self) -> PyResult<()> {
        if self.words().leave(&self.books(), self.account(), &Host) {
            return Ok(());
        }
        Err(PyRuntimeError::new_err("release of a read lock that nobody holds"))
    }
}

#[pymethods]
impl IpcRWLock {
    #[new]
    #[pyo3(signature = (name=None))]
    fn new(py: Python<'_>, name: Option<&str>) -> PyResult<Self> {
        Body::make(py, name, Kind::RWLock, 0, 0, |_| {}).map(Self::of)
    }

    #[staticmethod]
    fn _inherit(py: Python<'_>, allocation: Inheritance) -> PyResult<Self> {
        Body::inherit(py, allocation, Kind::RWLock).map(Self::of)
    }

    /// The side for readers.
    #[getter]
    fn reader(slf: &Bound<'_, Self>) -> IpcRWLockSide {
        IpcRWLockSide {
            lock: slf.clone().unbind(),
            is_writer: false,
        }
    }

    /// The side for writers.
    #[getter]
    fn writer(slf: &Bound<'_, Self>) -> IpcRWLockSide {
        IpcRWLockSide {
            lock: slf.clone().unbind(),
            is_writer: true,
        }
    }

    /// Turn the write lock into a read lock.
    fn downgrade(&self) -> PyResult<()> {
        if !self.ownership.is_held(&self.body) || self.is_damaged() {
            return Err(PyRuntimeError::new_err("downgrade() needs the write lock"));
        }
        self.books().change(self.account(), 1, |_| true);
        self.release_write()
    }

    /// Turn the read lock that is held into the write lock, if nobody else reads or waits to
    /// write; never waits. False, and the read lock is still held, otherwise.
    fn try_upgrade(&self, py: Python<'_>) -> PyResult<bool> {
        if !self.account().is_none_or(Account::holds) || self.readers() == 0 {
            return Err(PyRuntimeError::new_err(
                "upgrade of a read lock that this process does not hold",
            ));
        }
        let Some(had) = self.ownership.try_acquire(&self.body) else {
            return Ok(false);
        };
        // New readers stay out now; one that is just finding that out may be counted.
        if self.readers() != 1 {
            self.books().repair(&Host);
        }
        if self.readers() != 1 {
            self.back_out(had)?;
            return Ok(false);
        }
        self.words().leave(&self.books(), self.account(), &Host);
        self.drain(py, Timeout::Endless, had)
    }

    /// Say that what a dead writer left is repaired.
    fn make_consistent(&self) -> PyResult<()> {
        self.ownership.make_consistent(&self.body)
    }

    /// Tell whether anybody is inside.
    fn locked(&self) -> bool {
        self.ownership.is_held(&self.body) || self.readers() > 0
    }

    /// How many read.
    #[getter]
    fn readers(&self) -> u32 {
        self.words().readers.value()
    }

    /// Describe the lock's state.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = self.ownership.describe(py, &self.body)?;
        statistics.set_item("readers", self.readers())?;
        Ok(statistics)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        Ok(format!(
            "<unsnarl.ipc.{}{}: readers={}, writer {}>",
            slf.get_type().name()?,
            this.body.label(),
            this.readers(),
            this.ownership.state(&this.body)
        ))
    }
}

#[pymethods]
impl IpcRWLockSide {
    /// Acquire this side; with blocking=False or a timeout (seconds), False if that failed.
    #[pyo3(signature = (blocking=true, timeout=None))]
    fn acquire(&self, py: Python<'_>, blocking: bool, timeout: Option<Bound<'_, PyAny>>) -> PyResult<bool> {
        let timeout = if blocking {
            wait::timeouts::wait_timeout(timeout.as_ref())?
        } else {
            Timeout::None
        };
        let lock = self.lock.get();
        if self.is_writer {
            lock.write(py, timeout)
        } else {
            lock.read(py, timeout)
        }
    }

    /// Release this side.
    fn release(&self) -> PyResult<()> {
        let lock = self.lock.get();
        if self.is_writer {
            lock.release_write()
        } else {
            lock.release_read()
        }
    }

    fn async_release(&self) -> PyResult<()> {
        self.release()
    }

    /// Take this side for a task: True, or what to sleep on.
    fn _attempt(slf: &Bound<'_, Self>, has_slept: bool) -> PyResult<Py<PyAny>> {
        let (py, lock) = (slf.py(), slf.get().lock.get());
        let done = |()| yes(py);
        if !slf.get().is_writer {
            return told(py, slf.as_any(), lock.read_attempt(py, has_slept)?, done);
        }
        let round = WaitRound::of_task(has_slept, false);
        let step = lock.ownership.attempt(&lock.body, round);
        Host.end();
        match step? {
            Step::Sleep(word, expected) => told(py, slf.as_any(), Step::Sleep(word, expected), yes),
            // Readers leave soon; a task waits for them by trying again.
            Step::Done(had) => {
                let is_sound = lock.is_sound(had);
                let alone = lock.words().drain(&lock.books(), &Host);
                if let Step::Sleep(word, expected) = alone {
                    lock.back_out(had)?;
                    return told(py, slf.as_any(), Step::Sleep(word, expected), done);
                }
                lock.conclude(py, had, is_sound)?;
                yes(py)
            }
        }
    }

    fn _is_mine(&self) -> bool {
        let lock = self.lock.get();
        self.is_writer && lock.ownership.is_mine(&lock.body)
    }

    fn locked(&self) -> bool {
        let lock = self.lock.get();
        if self.is_writer {
            lock.ownership.is_held(&lock.body)
        } else {
            lock.readers() > 0
        }
    }

    /// `with` does not run its block if a writer died, so the lock is given back, still to be repaired.
    fn __enter__(&self, py: Python<'_>) -> PyResult<bool> {
        let entered = self.acquire(py, true, None);
        if entered.is_err() && self.is_writer && self.lock.get().ownership.is_mine(&self.lock.get().body) {
            self.release()?;
        }
        entered
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, _args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.release()
    }
}

pub(in crate::ipc) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let (side, class) = (py.get_type::<IpcRWLockSide>(), py.get_type::<IpcRWLock>());
    crate::sync::fast::install(&side, &methods::LOCKING)?;
    methods::install::<IpcRWLock>(&class, &[])?;
    module.add("IpcRWLockSide", side)?;
    module.add("IpcRWLock", class)
}
