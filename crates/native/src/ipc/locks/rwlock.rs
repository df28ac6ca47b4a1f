//! RWLock: many readers in any processes, or one writer; writers do not starve.
//!
//! Invariant: a writer is alone inside when `drain` has returned true.

use super::ownership::{Acquired, Ownership, OwnershipWords};
use crate::ipc::account::OwnAccount;
use crate::ipc::methods::{self, Primitive};
use crate::ipc::segment::{Body, Inheritance};
use crate::ipc::threads::THREADS;
use crate::ipc::wait::{self, WaitRound, Watch, task_outcome, yes};
use crate::sync::calls::arguments::Timeout;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use unsnarl_ipc::{ALL, Account, Books, Kernel, Kind, Ordering, RwWords, Step, TID_MASK};
use unsnarl_shm::Host;

/// A read/write lock between processes; writers do not starve.
///
/// Many readers together, or one writer alone. If a writer died inside, the next writer gets `OwnerDied` and
/// holds the lock, to repair and to call `make_consistent`; until then readers get `OwnerDied` too, and hold
/// nothing. A reader that dies releases its read lock silently.
/// Fairness: new readers stay out while a writer waits; readers may starve behind writers that follow each other
/// without a pause.
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
/// `RuntimeError` for a release without a holder; `OwnerDied`, fairness and cancellation are those of `RWLock`.
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
            // ORDERING: pairs with the release stores in `ownership`.
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
        outcome.map(|done| done.is_some())
    }

    /// Whether no data is half-changed: a writer that died before it was alone changed nothing.
    fn is_sound(&self, acquired: Acquired) -> bool {
        // ORDERING: pairs with the store in `RwWords::drain` by a writer that died.
        acquired == Acquired::Sound || self.words().is_writing.load(Ordering::SeqCst) == 0
    }

    /// Waits until all readers have left; false if the time was up. The caller holds the writer's word.
    fn drain(&self, py: Python<'_>, timeout: Timeout, acquired: Acquired) -> PyResult<bool> {
        let is_sound = self.is_sound(acquired);
        let is_ready = || self.words().readers.value() == 0;
        let outcome = wait::block(py, timeout, Some(&self.body.spin), Watch::Own, &is_ready, |_| {
            Ok(self.words().drain(&self.books(), &Host))
        });
        if let Ok(Some(())) = outcome {
            return self.conclude(py, acquired, is_sound).map(|()| true);
        }
        self.back_out(acquired)?;
        outcome.map(|_| false)
    }

    /// Reports a writer's death, if it left damage. The caller is alone inside.
    fn conclude(&self, py: Python<'_>, acquired: Acquired, is_sound: bool) -> PyResult<()> {
        if !is_sound {
            return Err(self.death(py));
        }
        if acquired == Acquired::Damaged {
            self.ownership.make_consistent(&self.body)?;
        }
        Ok(())
    }

    /// Releases the writer's word without having been alone inside.
    fn back_out(&self, acquired: Acquired) -> PyResult<()> {
        if acquired == Acquired::Damaged && self.is_sound(acquired) {
            self.ownership.make_consistent(&self.body)?;
        }
        self.ownership.release(&self.body, ALL);
        Ok(())
    }

    fn write(&self, py: Python<'_>, timeout: Timeout) -> PyResult<bool> {
        match self.ownership.acquire(py, &self.body, timeout)? {
            Some(acquired) => self.drain(py, timeout, acquired),
            None => Ok(false),
        }
    }

    fn release_write(&self) -> PyResult<()> {
        if !self.ownership.is_held(&self.body) {
            return Err(PyRuntimeError::new_err("release of a write lock that is not held"));
        }
        if !self.is_damaged() {
            // ORDERING: pairs with the load in `RwWords::read`.
            self.words().is_writing.store(0, Ordering::SeqCst);
        }
        self.ownership.release(&self.body, ALL);
        Ok(())
    }

    fn release_read(&self) -> PyResult<()> {
        if self.words().leave(&self.books(), self.account(), &Host) {
            return Ok(());
        }
        Err(PyRuntimeError::new_err("release of a read lock that is not held"))
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

    /// The readers' side.
    #[getter]
    fn reader(slf: &Bound<'_, Self>) -> IpcRWLockSide {
        IpcRWLockSide {
            lock: slf.clone().unbind(),
            is_writer: false,
        }
    }

    /// The writers' side.
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

    /// Turn the held read lock into the write lock, if no other reader is inside and no writer waits; never waits.
    /// False otherwise, with the read lock still held.
    fn try_upgrade(&self, py: Python<'_>) -> PyResult<bool> {
        if !self.account().is_none_or(Account::holds) || self.readers() == 0 {
            return Err(PyRuntimeError::new_err(
                "upgrade of a read lock that this process does not hold",
            ));
        }
        let Some(acquired) = self.ownership.try_acquire(&self.body) else {
            return Ok(false);
        };
        // New readers stay out now; a reader that is just finding the word taken may still be counted.
        if self.readers() != 1 {
            self.books().repair(&Host);
        }
        if self.readers() != 1 {
            self.back_out(acquired)?;
            return Ok(false);
        }
        self.words().leave(&self.books(), self.account(), &Host);
        self.drain(py, Timeout::Endless, acquired)
    }

    /// Declare repaired what a dead writer left.
    fn make_consistent(&self) -> PyResult<()> {
        self.ownership.make_consistent(&self.body)
    }

    /// Tell whether a reader or writer is inside.
    fn locked(&self) -> bool {
        self.ownership.is_held(&self.body) || self.readers() > 0
    }

    /// The number of readers.
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

    /// Attempts to take this side for a task: True, or the sleep.
    fn _attempt(slf: &Bound<'_, Self>, has_slept: bool) -> PyResult<Py<PyAny>> {
        let (py, lock) = (slf.py(), slf.get().lock.get());
        let done = |()| yes(py);
        if !slf.get().is_writer {
            return task_outcome(py, slf.as_any(), lock.read_attempt(py, has_slept)?, done);
        }
        let round = WaitRound::of_task(has_slept, false);
        let step = lock.ownership.attempt(&lock.body, round);
        Host.end();
        match step? {
            Step::Sleep(word, expected) => task_outcome(py, slf.as_any(), Step::Sleep(word, expected), yes),
            // Readers leave soon; a task waits for them by repeating the attempt.
            Step::Done(acquired) => {
                let is_sound = lock.is_sound(acquired);
                let alone = lock.words().drain(&lock.books(), &Host);
                if let Step::Sleep(word, expected) = alone {
                    lock.back_out(acquired)?;
                    return task_outcome(py, slf.as_any(), Step::Sleep(word, expected), done);
                }
                lock.conclude(py, acquired, is_sound)?;
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

    /// `with` does not run its block if a writer died, so the lock is released again, unrepaired.
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
    crate::sync::calls::fast::install(&side, &methods::LOCKING)?;
    methods::install::<IpcRWLock>(&class, &[])?;
    module.add("IpcRWLockSide", side)?;
    module.add("IpcRWLock", class)
}
