//! Whether this process may use more than one processor.
//!
//! On a single processor a spinning thread only keeps the thread that it waits for from running.
//! Invariant: the answer of `is_alone` is that of the last `refresh`.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use unsnarl_policy::Nanos;

static IS_ALONE: AtomicBool = AtomicBool::new(true);

/// Reads the affinity mask and the control group's quota again.
pub(crate) fn refresh() {
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    IS_ALONE.store(count < 2, Relaxed);
}

/// Whether all threads run on one processor, in turns: the affinity mask has no other. A quota of one processor is another
/// matter: with it they may run at the same time on several.
pub(crate) fn is_bound_to_one() -> bool {
    // SAFETY: a mask is plain bits; the call writes no more than its size.
    unsafe {
        let mut mask: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut mask) == 0 && libc::CPU_COUNT(&mask) == 1
    }
}

/// Whether the time of only one may be used.
pub(crate) fn is_alone() -> bool {
    IS_ALONE.load(Relaxed)
}

/// How long to spin: `wish_ns`, or 0 on a single processor.
pub(crate) fn spin(wish_ns: Nanos) -> Nanos {
    if is_alone() { 0 } else { wish_ns }
}

#[cfg(test)]
mod tests {
    use super::is_bound_to_one;

    #[test]
    fn a_thread_that_may_run_on_one_processor_alone_is_bound_to_it() {
        // SAFETY: masks of the right size, of this thread alone.
        unsafe {
            let mut before: libc::cpu_set_t = std::mem::zeroed();
            let size = size_of::<libc::cpu_set_t>();
            assert_eq!(libc::sched_getaffinity(0, size, &raw mut before), 0);
            assert_eq!(is_bound_to_one(), libc::CPU_COUNT(&before) == 1);
            let first = (0..libc::CPU_SETSIZE as usize).find(|&cpu| libc::CPU_ISSET(cpu, &before));
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(first.expect("a thread may run somewhere"), &mut one);
            assert_eq!(libc::sched_setaffinity(0, size, &raw const one), 0);
            assert!(is_bound_to_one());
            assert_eq!(libc::sched_setaffinity(0, size, &raw const before), 0);
            assert_eq!(is_bound_to_one(), libc::CPU_COUNT(&before) == 1);
        }
    }
}
