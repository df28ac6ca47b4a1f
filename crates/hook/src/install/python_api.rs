//! The functions of the interpreter's C API that an installation calls.
//!
//! Must never: be called from a hook.

use crate::error::Unsupported;
use libc::{c_int, c_void};

/// The functions of the interpreter that the installation needs.
#[derive(Debug, Clone, Copy)]
pub struct PythonApi {
    /// `PyGILState_Ensure`
    pub ensure: unsafe extern "C-unwind" fn() -> c_int,
    /// `PyGILState_Release`
    pub release: unsafe extern "C-unwind" fn(c_int),
    /// `PyEval_SaveThread`
    pub save_thread: unsafe extern "C-unwind" fn() -> *mut c_void,
    /// `PyEval_RestoreThread`
    pub restore_thread: unsafe extern "C-unwind" fn(*mut c_void),
    /// The function behind `_posixsubprocess.fork_exec`, which may be in an object
    /// of its own; null if it is unknown.
    pub fork_exec: *const c_void,
    /// Whether the interpreter is ending: no other thread gets the GIL then.
    pub is_ending: bool,
}

// SAFETY: the pointer is the address of a function, and only compared with others.
unsafe impl Send for PythonApi {}

/// Refuses an interpreter that is ending: a probe would never get its GIL.
pub(super) fn refuse_at_the_end(api: &PythonApi) -> Result<(), Unsupported> {
    if !api.is_ending {
        return Ok(());
    }
    Err(Unsupported::new(
        "the interpreter is ending: no thread gets its GIL any more",
        "begin before the program's last line",
    ))
}
