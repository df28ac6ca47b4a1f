//! Gives the GIL up and takes it back, in code of ours that the interpreter's end may catch
//! without the GIL.
//!
//! Then `take_gil` never returns: before CPython 3.14 it ends the thread by `pthread_exit`,
//! which unwinds the stack by force, from 3.14 on it hangs it. Rust's frames must not be
//! unwound by force up to a `catch_unwind` (every thread of `std` has one, and every
//! function of PyO3): the process would be aborted. So the thread hangs here, too.
//!
//! Must never: be used with anything on the stack whose drop another thread waits for.

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

/// Runs `work` without the GIL, which the calling thread holds before and after; never
/// returns if the interpreter ends meanwhile.
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

/// Takes the GIL from a thread that the interpreter does not know, and gives it up; never
/// returns if the interpreter ends meanwhile.
pub(crate) fn visit(api: &PythonApi) {
    let guard = HangWhenUnwound;
    // SAFETY: the interpreter is initialised, and the thread that asks for the visit waits for its end.
    unsafe { (api.release)((api.ensure)()) };
    std::mem::forget(guard);
}
