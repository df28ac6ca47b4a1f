//! The only file that knows about loom: the cores import their atomics, their
//! mutex and their lazily made slow half from here.
//!
//! Invariant: outside of loom a [`Slow`] costs one pointer and one word until
//! the first waiter arrives, so that an idle primitive stays small.

#[cfg(not(loom))]
mod imp {
    pub use std::sync::Arc;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
    pub use std::sync::atomic::{AtomicU32, Ordering};
    pub(crate) use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

    /// State that exists from the first time somebody has to wait.
    #[derive(Debug)]
    pub(crate) struct Slow<T>(OnceLock<Box<Mutex<T>>>);

    impl<T: Default> Slow<T> {
        pub(crate) const fn new() -> Self {
            Self(OnceLock::new())
        }
        /// Lock it, making it first if need be.
        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            lock(self.0.get_or_init(Box::default))
        }
        /// Lock it if it exists.
        pub(crate) fn peek(&self) -> Option<MutexGuard<'_, T>> {
            self.0.get().map(|mutex| lock(mutex))
        }
    }

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(loom)]
mod imp {
    pub use loom::sync::Arc;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
    pub use loom::sync::atomic::{AtomicU32, Ordering};
    pub(crate) use loom::sync::{Mutex, MutexGuard};

    /// Under loom the slow half exists from the start: `OnceLock` is std's business.
    #[derive(Debug)]
    pub(crate) struct Slow<T>(Mutex<T>);

    impl<T: Default> Slow<T> {
        pub(crate) fn new() -> Self {
            Self(Mutex::new(T::default()))
        }
        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            lock(&self.0)
        }
        pub(crate) fn peek(&self) -> Option<MutexGuard<'_, T>> {
            Some(self.lock())
        }
    }

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().expect("a core does not panic under its mutex")
    }
}

pub(crate) use imp::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Slow, lock};
pub use imp::{Arc, AtomicU32, Ordering};
