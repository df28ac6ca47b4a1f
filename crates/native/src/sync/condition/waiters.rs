//! `_waiters`, which is private in `threading.Condition`, and which programs read to count those that wait.
//!
//! Invariant: the attribute can be read and not changed, but an object may have one of its own instead: a subclass may
//! keep its own waiters under that name.

use super::state::Condition;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The attribute: it has `__get__` and no `__set__`.
#[pyclass(frozen, module = "unsnarl._native")]
struct Waiters;

#[pymethods]
impl Waiters {
    /// One item for each party that waits; nothing of use is in it.
    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        condition: Option<Bound<'py, PyAny>>,
        _class: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(condition) = condition else {
            return Ok(slf.clone().into_any());
        };
        let waiting = condition.cast::<Condition>()?.get().notifier.waiting();
        let nothing = (0..waiting).map(|_| slf.py().None()).collect::<Vec<_>>();
        PyTuple::new(slf.py(), nothing).map(Bound::into_any)
    }
}

/// Give the class the attribute.
pub(super) fn install(class: &Bound<'_, pyo3::types::PyType>) -> PyResult<()> {
    class.setattr("_waiters", Py::new(class.py(), Waiters)?)
}
