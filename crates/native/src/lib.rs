//! `unsnarl._native`
#![allow(missing_docs)]
use pyo3::prelude::*;

#[pymodule]
mod _native {}
