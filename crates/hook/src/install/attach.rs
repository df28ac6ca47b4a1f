//! Releases the GIL and takes it again, in Rust code that may be without the GIL when the
//! interpreter ends.
//!
//! `take_gil` never returns then. Before CPython 3.14 it ends the thread by `pthread_exit`,
//! which unwinds the stack by force; from 3.14 on it hangs the thread. A forced unwinding of
//! Rust frames up to a `catch_unwind` (every thread of `std` has one, and every function of
//! PyO3) would abort the process. So the thread hangs here, too.
//!
//! Must never: be used with a value on the stack whose drop another thread waits for.

use super::python_api::PythonApi;

/// Hangs the thread that is unwound through it.
struct HangWhenUnwound;

impl Drop for HangWhenUnwound {
    fn drop(&mut self) {
        loop {
            // SAFETY: pause has no preconditions.
            unsafe { libc::pause() };
        }
    }
}

/// Runs `work` without the GIL, which the calling thread holds before and after. Never returns
/// if the interpreter ends meanwhile.
pub(crate) fn without_gil<R>(api: &PythonApi, work: impl FnOnce() -> R) -> R {
    // SAFETY: the caller holds the GIL.
    let thread_state = unsafe { (api.save_thread)() };
    let result = work();
    let guard = HangWhenUnwound;
    // SAFETY: the state that save_thread returned.
    unsafe { (api.restore_thread)(thread_state) };
    std::mem::forget(guard);
    result
}

/// Takes and releases the GIL in a thread that the interpreter does not know. Never returns if
/// the interpreter ends meanwhile.
pub(crate) fn visit(api: &PythonApi) {
    let guard = HangWhenUnwound;
    // SAFETY: the interpreter is initialised, and the thread that started this one waits for its end.
    unsafe { (api.release)((api.ensure)()) };
    std::mem::forget(guard);
}
