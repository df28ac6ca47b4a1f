//! The lock of a condition: one of ours, or any other object with `acquire` and `release`.
//!
//! Invariant: `acquire_restore` needs nothing but what `release_save` returned.

use crate::sync::permit::acquirable::Acquirable;
use crate::sync::permit::calls::acquire_again;
use crate::sync::permit::lock::Lock;
use crate::sync::permit::rlock::RLock;
use crate::sync::who::identity;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// The lock of a condition.
pub(in crate::sync) enum Guard {
    Lock(Py<Lock>),
    RLock(Py<RLock>),
    Foreign(Py<PyAny>),
}

impl Guard {
    pub(in crate::sync) fn of(lock: &Bound<'_, PyAny>) -> Self {
        if let Ok(lock) = lock.cast_exact::<RLock>() {
            Self::RLock(lock.clone().unbind())
        } else if let Ok(lock) = lock.cast_exact::<Lock>() {
            Self::Lock(lock.clone().unbind())
        } else {
            Self::Foreign(lock.clone().unbind())
        }
    }

    /// Whether a task can be the owner: an RLock of ours, or of a class derived from it.
    pub(in crate::sync) fn is_owned_by_tasks(&self, py: Python<'_>) -> bool {
        match self {
            Self::RLock(_) => true,
            Self::Lock(_) => false,
            Self::Foreign(lock) => lock.bind(py).is_instance_of::<RLock>(),
        }
    }

    pub(in crate::sync) fn object<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match self {
            Self::Lock(lock) => lock.bind(py).as_any().clone(),
            Self::RLock(lock) => lock.bind(py).as_any().clone(),
            Self::Foreign(lock) => lock.bind(py).clone(),
        }
    }

    pub(in crate::sync) fn is_owned_by(&self, py: Python<'_>, who: usize) -> PyResult<bool> {
        match self {
            Self::Lock(lock) => Ok(lock.get().locked()),
            Self::RLock(lock) => Ok(lock.get().is_owned_by(who)),
            Self::Foreign(lock) => {
                let lock = lock.bind(py);
                if identity::is_task(who)
                    && let Ok(lock) = lock.cast::<RLock>()
                {
                    return Ok(lock.get().is_owned_by(who));
                }
                // As threading.Condition._is_owned: a lock that cannot be acquired counts as the caller's.
                if is_standard_lock(lock) {
                    return lock.call_method0(intern!(py, "locked"))?.is_truthy();
                }
                if is_standard_rlock(lock) {
                    return lock.call_method0(intern!(py, "_is_owned"))?.is_truthy();
                }
                if let Ok(is_owned) = lock.getattr(intern!(py, "_is_owned")) {
                    return is_owned.call0()?.is_truthy();
                }
                if lock.call_method1(intern!(py, "acquire"), (false,))?.is_truthy()? {
                    lock.call_method0(intern!(py, "release"))?;
                    return Ok(false);
                }
                Ok(true)
            }
        }
    }

    /// Acquire a lock of ours, or of a class derived from it, if it is free; None for any other lock.
    pub(in crate::sync) fn try_take_for(&self, py: Python<'_>, who: usize, depth: usize) -> Option<bool> {
        let object = self.object(py);
        if let Ok(lock) = object.cast::<RLock>() {
            let taken = lock.get().try_take_for(who);
            if taken {
                lock.get().set_depth(depth);
            }
            return Some(taken);
        }
        object.cast::<Lock>().ok().map(|lock| lock.get().try_take_for(who))
    }

    pub(in crate::sync) fn release_save(&self, py: Python<'_>) -> PyResult<Saved> {
        match self {
            Self::Lock(lock) => {
                lock.get().try_put_back();
                Ok(Saved::Depth(1))
            }
            Self::RLock(lock) => Ok(Saved::Depth(lock.get().put_down_all())),
            Self::Foreign(lock) => {
                let lock = lock.bind(py);
                if !is_standard_lock(lock)
                    && let Ok(release_save) = lock.getattr(intern!(py, "_release_save"))
                {
                    return Ok(Saved::Foreign(release_save.call0()?.unbind()));
                }
                lock.call_method0(intern!(py, "release")).map(|_| Saved::Depth(1))
            }
        }
    }

    /// Acquire the lock again, also if exceptions are raised meanwhile; the first exception is returned afterwards.
    pub(in crate::sync) fn acquire_restore(&self, py: Python<'_>, saved: &Saved) -> PyResult<()> {
        let mut first_error = None;
        loop {
            let outcome = match (self, saved) {
                (Self::Lock(lock), _) => acquire_again(lock.bind(py)),
                (Self::RLock(lock), saved) => acquire_again(lock.bind(py)).map(|()| {
                    if let Saved::Depth(depth) = saved {
                        lock.get().set_depth(*depth);
                    }
                }),
                (Self::Foreign(lock), Saved::Foreign(state)) => {
                    return lock
                        .call_method1(py, intern!(py, "_acquire_restore"), (state,))
                        .map(drop);
                }
                (Self::Foreign(lock), _) => return lock.call_method0(py, intern!(py, "acquire")).map(drop),
            };
            match outcome {
                Ok(()) => return first_error.map_or(Ok(()), Err),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
    }
}

/// Whether this is `threading.Lock()`, which has neither `_is_owned` nor `_release_save`: to look for a name that is not
/// there raises an exception, which takes longer than the rest of a `notify`.
fn is_standard_lock(lock: &Bound<'_, PyAny>) -> bool {
    static KIND: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    is_of_kind(lock, &KIND, "LockType")
}

/// Whether this is `threading.RLock()`, whose methods are called without an object for each bound one.
fn is_standard_rlock(lock: &Bound<'_, PyAny>) -> bool {
    static KIND: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    is_of_kind(lock, &KIND, "RLock")
}

/// Whether this is of a type of `_thread` itself, and of no class derived from it.
fn is_of_kind(lock: &Bound<'_, PyAny>, kind: &PyOnceLock<Py<PyType>>, name: &str) -> bool {
    kind.import(lock.py(), "_thread", name)
        .is_ok_and(|kind| lock.get_type().is(kind))
}

/// How the lock was held before the wait.
pub(in crate::sync) enum Saved {
    Depth(usize),
    Foreign(Py<PyAny>),
}
