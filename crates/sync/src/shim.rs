//! Atomics, mutex and lazily made slow state: std's, or those of loom or shuttle. The cores import them only
//! from here.
//!
//! Unsafe code stands in this file alone: the mutex that is elided where the GIL already serialises all
//! calls.
//!
//! Invariant: outside of loom and shuttle a [`Slow`] costs one pointer until the first waiter arrives, so an
//! idle primitive stays small.

#[cfg(not(any(loom, shuttle)))]
mod imp {
    use std::cell::UnsafeCell;
    use std::marker::PhantomData;
    use std::ops::{Deref, DerefMut};
    pub use std::sync::Arc;
    use std::sync::PoisonError;
    use std::sync::atomic::AtomicPtr;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
    pub use std::sync::atomic::{AtomicU32, Ordering};

    static IS_ELIDED: AtomicBool = AtomicBool::new(false);

    /// Stop locking: from now on the caller guarantees that one thread at a time calls into this crate. Saves
    /// the mutexes and the locked instructions.
    ///
    /// # Safety
    /// No call into this crate is under way. Each later call is made with the same
    /// lock held (the GIL of a CPython that has one), and the lock is not released
    /// before the call returns. [`crate::Waiter::fall_asleep`], [`crate::Waiter::state`],
    /// [`crate::Waiter::is_signalled`] and [`crate::Waiter::relay`] are exempt: they use
    /// only atomics and real mutexes.
    #[allow(unsafe_code)]
    pub unsafe fn elide_mutexes() {
        // ORDERING: needs no partner: no call is under way, by contract; later ones are ordered by the same lock.
        IS_ELIDED.store(true, Ordering::SeqCst);
    }

    /// Whether the caller guarantees that one thread at a time calls into this crate.
    #[inline]
    pub(crate) fn is_serialised() -> bool {
        IS_ELIDED.load(Ordering::Relaxed)
    }

    /// A mutex that costs nothing where the GIL already serialises all calls.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T> {
        raw: std::sync::Mutex<()>,
        value: UnsafeCell<T>,
    }

    // SAFETY: `lock` gives out one guard at a time, by the raw mutex or by the
    // contract of `elide_mutexes`; that is all that std's own mutex requires.
    #[allow(unsafe_code)]
    unsafe impl<T: Send> Sync for Mutex<T> {}

    /// Exclusive access to the value of a [`Mutex`].
    #[derive(Debug)]
    pub(crate) struct MutexGuard<'a, T> {
        _held: Option<std::sync::MutexGuard<'a, ()>>,
        value: *mut T,
        _borrow: PhantomData<&'a mut T>,
    }

    impl<T> Mutex<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self {
                raw: std::sync::Mutex::new(()),
                value: UnsafeCell::new(value),
            }
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;
        #[inline]
        #[allow(unsafe_code)]
        fn deref(&self) -> &T {
            // SAFETY: the guard is the only one (see `Sync` above).
            unsafe { &*self.value }
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        #[inline]
        #[allow(unsafe_code)]
        fn deref_mut(&mut self) -> &mut T {
            // SAFETY: as above, and `self` is borrowed mutably.
            unsafe { &mut *self.value }
        }
    }

    /// State that is made when the first waiter arrives; a null pointer until then.
    #[derive(Debug)]
    pub(crate) struct Slow<T>(AtomicPtr<Mutex<T>>, PhantomData<Mutex<T>>);

    impl<T: Default> Slow<T> {
        pub(crate) const fn new() -> Self {
            Self(AtomicPtr::new(std::ptr::null_mut()), PhantomData)
        }

        /// Make the state if there is none, and lock it.
        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            lock(self.get().unwrap_or_else(|| self.make()))
        }

        /// Lock the state if it was made.
        #[inline]
        pub(crate) fn peek(&self) -> Option<MutexGuard<'_, T>> {
            self.get().map(lock)
        }

        #[inline]
        #[allow(unsafe_code)]
        fn get(&self) -> Option<&Mutex<T>> {
            // ORDERING: pairs with the release in `make`.
            // SAFETY: null, or out of `Box::into_raw` and alive until `self` is dropped.
            unsafe { self.0.load(Ordering::Acquire).as_ref() }
        }

        #[cold]
        #[allow(unsafe_code)]
        fn make(&self) -> &Mutex<T> {
            let fresh = Box::into_raw(Box::<Mutex<T>>::default());
            // ORDERING: pairs with the acquire in `get`: releases the new state, or acquires another
            // thread's.
            match self
                .0
                .compare_exchange(std::ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire)
            {
                // SAFETY: as in `get`.
                Ok(_) => unsafe { &*fresh },
                Err(existing) => {
                    // SAFETY: made above, and no other thread has seen it.
                    drop(unsafe { Box::from_raw(fresh) });
                    // SAFETY: as in `get`; it is not null, or the exchange had succeeded.
                    unsafe { &*existing }
                }
            }
        }
    }

    impl<T> Drop for Slow<T> {
        #[allow(unsafe_code)]
        fn drop(&mut self) {
            let slow = *self.0.get_mut();
            if !slow.is_null() {
                // SAFETY: out of `Box::into_raw` in `make`; no reference to it is left.
                drop(unsafe { Box::from_raw(slow) });
            }
        }
    }

    /// A mutex that is never elided: for what is used without the GIL.
    pub(crate) use std::sync::Mutex as SharedMutex;

    pub(crate) fn lock_shared<T>(mutex: &SharedMutex<T>) -> std::sync::MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often a thread yields its processor to the holder of a mutex before it sleeps: as often as CPython 3.14's
    /// own mutex (`MAX_SPIN_COUNT` in Python/lock.c).
    const YIELDS: usize = 40;

    /// Acquire a mutex of a core, which is held for some ten nanoseconds.
    ///
    /// std's mutex alone does not do: as soon as one thread sleeps for it, every contender sleeps, and every release
    /// is a system call. Nor do pauses instead of yields, of any length: two processors then hand the mutex's cache line
    /// to and fro for each item. A yield lets the other thread do many items in a row.
    #[inline]
    fn acquire(raw: &std::sync::Mutex<()>) -> std::sync::MutexGuard<'_, ()> {
        raw.try_lock().unwrap_or_else(|_| acquire_contended(raw))
    }

    #[cold]
    fn acquire_contended(raw: &std::sync::Mutex<()>) -> std::sync::MutexGuard<'_, ()> {
        for _ in 0..YIELDS {
            std::thread::yield_now();
            if let Ok(held) = raw.try_lock() {
                return held;
            }
        }
        raw.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        let held = if is_serialised() {
            None
        } else {
            Some(acquire(&mutex.raw))
        };
        MutexGuard {
            _held: held,
            value: mutex.value.get(),
            _borrow: PhantomData,
        }
    }
}

#[cfg(any(loom, shuttle))]
mod imp {
    #[cfg(loom)]
    use loom as model;
    #[cfg(shuttle)]
    use shuttle as model;

    pub use model::sync::Arc;
    pub(crate) use model::sync::Mutex as SharedMutex;
    pub(crate) use model::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
    pub use model::sync::atomic::{AtomicU32, Ordering};
    pub(crate) use model::sync::{Mutex, MutexGuard};

    /// Under loom and shuttle every mutex is real.
    pub(crate) fn is_serialised() -> bool {
        false
    }

    /// Under loom and shuttle the slow state exists from the start: they have no `OnceLock`.
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

    pub(crate) fn lock_shared<T>(mutex: &SharedMutex<T>) -> MutexGuard<'_, T> {
        lock(mutex)
    }

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().expect("a core does not panic under its mutex")
    }
}

#[cfg(not(any(loom, shuttle)))]
pub use imp::elide_mutexes;
pub use imp::{Arc, AtomicU32, Ordering};
pub(crate) use imp::{AtomicBool, AtomicU64, Mutex, SharedMutex, Slow, is_serialised, lock, lock_shared};

/// An atomic word of a core. Where calls are serialised anyway, its read-modify-write operations use a plain
/// load and store: a locked instruction costs as much as the rest of a Python method call.
///
/// The orderings are the caller's, and so are the notes on their partners.
#[derive(Debug)]
pub(crate) struct Word(imp::AtomicUsize);

impl Word {
    pub(crate) fn new(value: usize) -> Self {
        Self(imp::AtomicUsize::new(value))
    }

    #[inline]
    pub(crate) fn load(&self, ordering: Ordering) -> usize {
        self.0.load(ordering)
    }

    #[inline]
    pub(crate) fn store(&self, value: usize, ordering: Ordering) {
        self.0.store(value, ordering);
    }

    /// Replace `old` by `new`, with `ordering`. False: the word is not `old`.
    #[inline]
    pub(crate) fn replace(&self, old: usize, new: usize, ordering: Ordering) -> bool {
        if !is_serialised() {
            return self.0.compare_exchange(old, new, ordering, Ordering::Relaxed).is_ok();
        }
        let is_old = self.0.load(Ordering::Relaxed) == old;
        if is_old {
            self.0.store(new, Ordering::Relaxed);
        }
        is_old
    }

    /// Replace the word by `change(word)`, with `ordering`. Returns the old word, or None if `change` returns
    /// None.
    #[inline]
    pub(crate) fn update(&self, ordering: Ordering, change: impl Fn(usize) -> Option<usize>) -> Option<usize> {
        let mut old = self.0.load(Ordering::Relaxed);
        while !self.replace(old, change(old)?, ordering) {
            old = self.0.load(Ordering::Relaxed);
        }
        Some(old)
    }

    /// Set these bits, with `ordering`. Returns the old word.
    #[inline]
    pub(crate) fn set(&self, bits: usize, ordering: Ordering) -> usize {
        if !is_serialised() {
            return self.0.fetch_or(bits, ordering);
        }
        let old = self.0.load(Ordering::Relaxed);
        self.0.store(old | bits, Ordering::Relaxed);
        old
    }

    /// Clear these bits, with `ordering`. Returns the old word.
    #[inline]
    pub(crate) fn clear(&self, bits: usize, ordering: Ordering) -> usize {
        if !is_serialised() {
            return self.0.fetch_and(!bits, ordering);
        }
        let old = self.0.load(Ordering::Relaxed);
        self.0.store(old & !bits, Ordering::Relaxed);
        old
    }
}
