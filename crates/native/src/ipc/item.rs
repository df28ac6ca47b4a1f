//! The encoding of an object in a queue: a tag and its bytes.
//!
//! | tag | bytes |
//! |---|---|
//! | PICKLE | what `put_bytes` was given, or a pickle |
//! | NONE, FALSE, TRUE | none |
//! | INT | eight, little-endian, signed |
//! | FLOAT | eight, little-endian |
//! | STR | UTF-8 |
//! | BYTES | themselves |
//!
//! Objects of exactly these types travel without pickle, which takes longer than all other steps together.
//!
//! Invariant: with any contents of shared memory, decoding yields an object or an exception.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString};

/// Bytes as they are, or a pickle.
pub(super) const PICKLE: u8 = 0;
const NONE: u8 = 1;
const FALSE: u8 = 2;
const TRUE: u8 = 3;
const INT: u8 = 4;
const FLOAT: u8 = 5;
const STR: u8 = 6;
const BYTES: u8 = 7;

/// The encoding of an object that needs no pickle.
pub(super) enum Plain<'a> {
    /// A number.
    Word(u8, [u8; 8]),
    /// Text, bytes, or nothing.
    Slice(u8, &'a [u8]),
}

impl<'a> Plain<'a> {
    /// Encodes the object, if it needs no pickle.
    pub(super) fn of(item: &'a Bound<'_, PyAny>) -> Option<Self> {
        if item.is_exact_instance_of::<PyInt>() {
            let value: i64 = item.extract().ok()?;
            return Some(Self::Word(INT, value.to_le_bytes()));
        }
        if item.is_exact_instance_of::<PyString>() {
            let text = item.cast::<PyString>().ok()?.to_str().ok()?;
            return Some(Self::Slice(STR, text.as_bytes()));
        }
        if item.is_exact_instance_of::<PyBytes>() {
            return Some(Self::Slice(BYTES, item.cast::<PyBytes>().ok()?.as_bytes()));
        }
        if item.is_none() {
            return Some(Self::Slice(NONE, &[]));
        }
        if let Ok(value) = item.cast::<PyBool>() {
            return Some(Self::Slice(if value.is_true() { TRUE } else { FALSE }, &[]));
        }
        if item.is_exact_instance_of::<PyFloat>() {
            let value = item.cast::<PyFloat>().ok()?.value();
            return Some(Self::Word(FLOAT, value.to_le_bytes()));
        }
        None
    }

    /// Tag and bytes.
    pub(super) fn record(&self) -> (u8, &[u8]) {
        match self {
            Self::Word(tag, bytes) => (*tag, bytes),
            Self::Slice(tag, bytes) => (*tag, bytes),
        }
    }
}

/// Decodes an object.
pub(super) fn object<'py>(py: Python<'py>, tag: u8, record: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match tag {
        INT => Ok(i64::from_le_bytes(word(record)?).into_pyobject(py)?.into_any()),
        PICKLE => {
            static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            LOADS.import(py, "pickle", "loads")?.call1((PyBytes::new(py, record),))
        }
        STR => Ok(PyString::from_bytes(py, record)?.into_any()),
        BYTES => Ok(PyBytes::new(py, record).into_any()),
        FLOAT => Ok(PyFloat::new(py, f64::from_le_bytes(word(record)?)).into_any()),
        NONE => Ok(py.None().into_bound(py)),
        FALSE | TRUE => Ok(PyBool::new(py, tag == TRUE).to_owned().into_any()),
        _ => Err(PyRuntimeError::new_err(
            "the queue was overwritten: an item of no known kind",
        )),
    }
}

fn word(record: &[u8]) -> PyResult<[u8; 8]> {
    record
        .try_into()
        .map_err(|_| PyRuntimeError::new_err("the queue was overwritten: a number of a wrong length"))
}
