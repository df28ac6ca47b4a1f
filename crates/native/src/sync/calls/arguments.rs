//! Parsing of the hand-written methods' arguments, and the standard library's rules for timeouts.
//!
//! Invariant: the exception types are those of `threading.Lock` (`lock_timeout`), `threading.Condition`
//! (`wait_timeout`) and `queue.Queue` (`queue_timeout`).

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// `threading.TIMEOUT_MAX`, seconds: the largest number of nanoseconds in an i64.
const TIMEOUT_MAX_S: f64 = 9_223_372_036.0;

/// How long a call may wait.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Timeout {
    /// Do not wait.
    None,
    /// Until this moment.
    Until(Instant),
    /// Without limit.
    Endless,
}

impl Timeout {
    pub(crate) fn deadline(self) -> Option<Instant> {
        match self {
            Self::Until(deadline) => Some(deadline),
            _ => None,
        }
    }

    fn seconds(seconds: f64) -> Self {
        if seconds <= 0.0 {
            return Self::None;
        }
        match Instant::now().checked_add(Duration::from_secs_f64(seconds)) {
            Some(deadline) => Self::Until(deadline),
            None => Self::Endless,
        }
    }
}

/// Sort the arguments of a METH_FASTCALL | METH_KEYWORDS call by parameter.
///
/// # Safety
/// The arguments are those that CPython passed to the method.
pub(crate) unsafe fn sort<'py, const N: usize>(
    py: Python<'py>,
    function: &str,
    names: [&str; N],
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> PyResult<[Option<Bound<'py, PyAny>>; N]> {
    let nargs = nargs as usize;
    let mut sorted = [const { None }; N];
    if nargs > N {
        return Err(PyTypeError::new_err(format!(
            "{function}() takes at most {N} arguments ({nargs} given)"
        )));
    }
    for (index, slot) in sorted.iter_mut().enumerate().take(nargs) {
        // SAFETY: `args` holds `nargs` borrowed objects.
        *slot = Some(unsafe { Bound::from_borrowed_ptr(py, *args.add(index)) });
    }
    if kwnames.is_null() {
        return Ok(sorted);
    }
    // SAFETY: `kwnames` is a tuple of str, whose values follow the positional arguments.
    let keywords = unsafe { Bound::from_borrowed_ptr(py, kwnames).cast_into_unchecked::<pyo3::types::PyTuple>() };
    for (offset, keyword) in keywords.iter().enumerate() {
        let keyword: String = keyword.extract()?;
        let index = names.iter().position(|name| *name == keyword).ok_or_else(|| {
            PyTypeError::new_err(format!("{function}() got an unexpected keyword argument '{keyword}'"))
        })?;
        if sorted[index].is_some() {
            return Err(PyTypeError::new_err(format!(
                "{function}() got multiple values for argument '{keyword}'"
            )));
        }
        // SAFETY: as above, `nargs + len(kwnames)` objects.
        sorted[index] = Some(unsafe { Bound::from_borrowed_ptr(py, *args.add(nargs + offset)) });
    }
    Ok(sorted)
}

fn number(timeout: &Bound<'_, PyAny>) -> PyResult<f64> {
    let seconds: f64 = timeout.extract()?;
    if seconds.is_nan() {
        return Err(PyValueError::new_err("Invalid value NaN (not a number)"));
    }
    if seconds > TIMEOUT_MAX_S {
        return Err(PyOverflowError::new_err("timeout value is too large"));
    }
    Ok(seconds)
}

/// `acquire(blocking=True, timeout=-1)` of Lock and RLock.
pub(crate) fn lock_timeout(
    blocking: Option<&Bound<'_, PyAny>>,
    timeout: Option<&Bound<'_, PyAny>>,
) -> PyResult<Timeout> {
    let blocking = blocking.map_or(Ok(true), Bound::is_truthy)?;
    let seconds = match timeout {
        Some(timeout) => number(timeout)?,
        None => -1.0,
    };
    if !blocking && seconds != -1.0 {
        return Err(PyValueError::new_err("can't specify a timeout for a non-blocking call"));
    }
    if seconds < 0.0 && seconds != -1.0 {
        return Err(PyValueError::new_err("timeout value must be a non-negative number"));
    }
    Ok(if !blocking {
        Timeout::None
    } else if seconds == -1.0 {
        Timeout::Endless
    } else {
        Timeout::seconds(seconds)
    })
}

/// `wait(timeout=None)`: zero or a negative time does not wait.
pub(crate) fn wait_timeout(timeout: Option<&Bound<'_, PyAny>>) -> PyResult<Timeout> {
    match timeout {
        Some(timeout) if !timeout.is_none() => Ok(Timeout::seconds(number(timeout)?)),
        _ => Ok(Timeout::Endless),
    }
}

/// `acquire(blocking=True, timeout=None)` of CapacityLimiter: -1 is no timeout, as for a Lock.
pub(crate) fn limiter_timeout(blocking: bool, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<Timeout> {
    if blocking {
        lock_timeout(None, timeout.filter(|timeout| !timeout.is_none()))
    } else {
        Ok(Timeout::None)
    }
}

/// `put(block=True, timeout=None)` of queues.
pub(crate) fn queue_timeout(block: bool, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<Timeout> {
    if !block {
        return Ok(Timeout::None);
    }
    match timeout {
        Some(timeout) if !timeout.is_none() => {
            let seconds = number(timeout)?;
            if seconds < 0.0 {
                return Err(PyValueError::new_err("'timeout' must be a non-negative number"));
            }
            Ok(Timeout::seconds(seconds))
        }
        _ => Ok(Timeout::Endless),
    }
}

/// Whether a timeout was refused only for its length. The standard library checks the length only when it
/// waits.
pub(crate) fn is_too_long(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyOverflowError>(py)
}

/// `maxsize` of queues as a capacity, 0 for none. Any number is accepted, as in the standard library, which
/// only compares it.
pub(crate) fn capacity(maxsize: &Bound<'_, PyAny>) -> PyResult<usize> {
    if let Ok(count) = maxsize.extract::<i64>() {
        return Ok(usize::try_from(count).unwrap_or(0));
    }
    let count: f64 = maxsize.extract()?;
    // The number of integers below it; a float beyond usize is cut to that.
    Ok(if count.is_finite() {
        count.max(0.0).ceil() as usize
    } else {
        0
    })
}

/// A number of permits, parties or waiters. Any number is accepted, as in the standard library, which only
/// compares and adds it. A fraction is rounded away from zero: there a semaphore with a fraction never
/// reaches zero, and so bounds nothing. A number beyond i64 is cut to that; NaN is less than any number.
pub(crate) fn count(number: &Bound<'_, PyAny>) -> PyResult<i64> {
    if let Ok(count) = number.extract::<i64>() {
        return Ok(count);
    }
    match number.extract::<f64>() {
        Ok(count) if count.is_nan() => Ok(i64::MIN),
        // A float beyond i64 is cut to that.
        Ok(count) => Ok((if count < 0.0 { count.floor() } else { count.ceil() }) as i64),
        Err(error) if error.is_instance_of::<PyOverflowError>(number.py()) => {
            Ok(if number.gt(0)? { i64::MAX } else { i64::MIN })
        }
        Err(error) => Err(error),
    }
}

/// As `count`, or None.
pub(crate) fn perhaps_count(number: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if number.is_none() {
        Ok(None)
    } else {
        count(number).map(Some)
    }
}

/// `timeout=None` of the asynchronous methods, in seconds; negative is an error.
pub(crate) fn task_timeout(timeout: Option<&Bound<'_, PyAny>>) -> PyResult<Option<f64>> {
    match timeout {
        Some(timeout) if !timeout.is_none() => {
            let seconds = number(timeout)?;
            if seconds < 0.0 {
                return Err(PyValueError::new_err("'timeout' must be a non-negative number"));
            }
            Ok(Some(seconds))
        }
        _ => Ok(None),
    }
}

/// As `task_timeout`, with aiologic's `blocking=True`; without blocking the timeout is zero.
pub(crate) fn task_timeout_if_blocking(
    blocking: Option<&Bound<'_, PyAny>>,
    timeout: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<f64>> {
    let timeout = task_timeout(timeout)?;
    let is_blocking = blocking.map_or(Ok(true), Bound::is_truthy)?;
    Ok(if is_blocking { timeout } else { Some(0.0) })
}

/// The error for an argument that was not given.
pub(crate) fn missing(function: &str, name: &str) -> PyErr {
    PyTypeError::new_err(format!("{function}() missing required argument: '{name}'"))
}

/// Warn as the standard library does.
pub(crate) fn deprecated(py: Python<'_>, message: &std::ffi::CStr) -> PyResult<()> {
    PyErr::warn(py, &py.get_type::<pyo3::exceptions::PyDeprecationWarning>(), message, 1)
}
