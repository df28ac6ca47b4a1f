//! The GIL in waiting and waking: whether there is one, and how many threads are woken together.
//!
//! Must never: depend on whether the GIL is on at the moment. A build that can run without a
//! GIL counts as running without: an import of a module that declares nothing switches the GIL on, and the GIL may
//! go off again.

/// Whether this interpreter always has a GIL.
#[inline]
pub(in crate::sync) const fn has_gil() -> bool {
    !cfg!(Py_GIL_DISABLED)
}

/// The number of wake-up chains into which threads that are released together are divided: [`CHAINS`] with a GIL, and
/// one chain a thread without, where the threads need not take turns. One chain is too few: the kernel now and then
/// leaves a woken thread in a processor's queue for milliseconds, and all threads behind it in the chain wait.
pub(in crate::sync) fn fan_out() -> usize {
    if has_gil() { CHAINS } else { usize::MAX }
}

/// With this many chains, one chain moves on while another stands still. With more chains, the thread that sets an
/// event would pay for more wake-ups, and woken threads would not find the GIL free: with eight chains, each of the
/// eight parties of a barrier slept once more, for the GIL.
const CHAINS: usize = 4;

/// Replace the cores' mutexes by the GIL, if there always is one.
pub(in crate::sync) fn rely_on_gil() {
    if has_gil() {
        // SAFETY: no primitive exists yet (the module is being made); from now on the cores
        // are only called by attached threads, and never detach under way (see `sync`).
        unsafe { unsnarl_sync::elide_mutexes() };
    }
}
