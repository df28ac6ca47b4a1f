//! The thread that runs the engine: the native one, or for a moment the one that waits for an answer.
//!
//! A thread that sends its request to the native thread and sleeps until the answer has come pays for three wake-ups,
//! one after the other: of the native thread, of it again by the store, and its own. While calls of threads follow each
//! other closely and nothing else is under way, the native thread therefore steps aside, and a caller runs the engine
//! itself until its answer is there: the store wakes it directly.
//!
//! | `aside` | means |
//! |---|---|
//! | 0 | the native thread runs the engine, or is about to |
//! | 1 | the native thread sleeps on this word, for `ASIDE` at a time |
//!
//! Invariants: the engine's tasks run, and are dropped, only on the thread that has the mutex of the runtime. Nothing
//! but a delay of up to `ASIDE` depends on a wake-up of the native thread: it comes back by itself.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::thread::{Timespec, futex};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::boottime::now_ns;
use crate::counts::{Counts, count};
use crate::signals::block_signals;

/// How long the native thread stays aside after the latest call of a thread, and how long a call runs the engine at
/// most: so long may a renewal, or a signal to the caller, be late.
const ASIDE: Duration = Duration::from_millis(2);

/// The runtime of one connection, and who runs it.
pub(crate) struct Runner {
    /// None once the engine has ended.
    runtime: Mutex<Option<Runtime>>,
    aside: AtomicU32,
    /// Asks the native thread to step aside, or to look whether the engine has ended.
    called: Notify,
    has_ended: AtomicBool,
    /// Operations of the program without an outcome.
    pending: AtomicUsize,
    /// When the latest call of a thread ended that was short; 0 after one that was not.
    last_ns: AtomicU64,
    counts: Arc<Counts>,
    process: u32,
}

impl Runner {
    pub(crate) fn new(counts: Arc<Counts>) -> std::io::Result<Arc<Self>> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            // Look-ups of names have threads of their own, started by whoever runs the engine.
            .on_thread_start(|| {
                block_signals();
            })
            .build()?;
        Ok(Arc::new(Self {
            runtime: Mutex::new(Some(runtime)),
            aside: AtomicU32::new(0),
            called: Notify::new(),
            has_ended: AtomicBool::new(false),
            pending: AtomicUsize::new(0),
            last_ns: AtomicU64::new(0),
            counts,
            process: std::process::id(),
        }))
    }

    pub(crate) fn is_forked(&self) -> bool {
        std::process::id() != self.process
    }

    /// Counts an operation that begins.
    pub(crate) fn begin(&self) {
        // ORDERING: one order of all: the native thread, on its way aside, sees this, or `recall` sees it aside.
        self.pending.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts an operation that has its outcome.
    pub(crate) fn end(&self) {
        // ORDERING: as `begin`.
        self.pending.fetch_sub(1, Ordering::SeqCst);
    }

    fn is_quiet(&self) -> bool {
        // ORDERING: as `begin`.
        self.pending.load(Ordering::SeqCst) == 0
    }

    fn is_aside(&self) -> bool {
        // ORDERING: as `begin`.
        self.aside.load(Ordering::SeqCst) == 1
    }

    /// Returns whether it was aside.
    fn set_aside(&self, is_aside: bool) -> bool {
        // ORDERING: as `begin`.
        self.aside.swap(u32::from(is_aside), Ordering::SeqCst) == 1
    }

    fn last_ns(&self) -> u64 {
        // ORDERING: a time alone, that publishes nothing.
        self.last_ns.load(Ordering::Relaxed)
    }

    /// Notes when the latest call ended; returns the one before.
    fn note_end(&self, now_ns: u64) -> u64 {
        // ORDERING: as `last_ns`.
        self.last_ns.swap(now_ns, Ordering::Relaxed)
    }

    /// The native thread's whole life: `engine` makes the task that is the engine.
    pub(crate) fn serve<F: Future<Output = ()> + 'static>(self: &Arc<Self>, engine: impl FnOnce() -> F) {
        let runner = Arc::clone(self);
        let engine = engine();
        {
            let runtime = self.runtime();
            let Some(runtime) = &*runtime else { return };
            let _inside = runtime.enter();
            spawn(async move {
                engine.await;
                // ORDERING: the native thread reads it after it was called.
                runner.has_ended.store(true, Ordering::Release);
                runner.called.notify_one();
                runner.recall();
            });
        }
        loop {
            let mut guard = self.runtime();
            if let Some(runtime) = &*guard {
                runtime.block_on(self.called.notified());
            }
            // ORDERING: pairs with the release in the engine's task.
            if self.has_ended.load(Ordering::Acquire) {
                // Drops what is left of the tasks here, where they may be dropped.
                *guard = None;
                return;
            }
            self.step_aside(guard);
        }
    }

    /// Lets callers run the engine, until none has for a while or somebody calls.
    fn step_aside(&self, guard: MutexGuard<'_, Option<Runtime>>) {
        self.set_aside(true);
        drop(guard);
        let pause = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(ASIDE.subsec_nanos()),
        };
        while self.is_aside() && (self.is_quiet() || self.is_run_by_another()) {
            let _ = futex::wait(&self.aside, futex::Flags::PRIVATE, 1, Some(&pause));
            if now_ns().saturating_sub(self.last_ns()) > nanoseconds(ASIDE) {
                break;
            }
        }
        self.set_aside(false);
    }

    fn is_run_by_another(&self) -> bool {
        matches!(self.runtime.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Has the native thread run the engine again, if it is aside.
    pub(crate) fn recall(&self) {
        if self.is_aside() && self.set_aside(false) {
            let _ = futex::wake(&self.aside, futex::Flags::PRIVATE, 1);
        }
    }

    /// Runs the engine in this thread until `done`, if the native thread is aside; returns whether it is done, or None
    /// where another runs it.
    ///
    /// Not with the GIL: another thread that has the engine may need it.
    pub(crate) fn run_until(&self, done: impl Future<Output = ()>) -> Option<bool> {
        if !self.is_aside() || self.is_forked() {
            return None;
        }
        let is_done = {
            let guard = self.runtime.try_lock().ok()?;
            guard.as_ref()?.block_on(async { timeout(ASIDE, done).await.is_ok() })
        };
        self.last_ns
            .store(if is_done { now_ns() } else { 0 }, Ordering::Relaxed);
        if is_done {
            count(&self.counts.direct);
        }
        if !is_done || !self.is_quiet() {
            self.recall();
        }
        Some(is_done)
    }

    /// Takes note of a call of a thread that the native thread answered; has that step aside for the next ones, if this
    /// one and the one before were short and close to each other.
    pub(crate) fn called_from(&self, begin_ns: u64) {
        let now = now_ns();
        let is_short = now.saturating_sub(begin_ns) < nanoseconds(ASIDE);
        let before = self.note_end(if is_short { now } else { 0 });
        let is_close = begin_ns.saturating_sub(before) < nanoseconds(ASIDE);
        if is_short && is_close && self.is_quiet() && !self.is_aside() {
            self.called.notify_one();
        }
    }

    fn runtime(&self) -> MutexGuard<'_, Option<Runtime>> {
        self.runtime.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A task of the engine.
struct Confined<F>(F);

// SAFETY: tokio runs and drops the tasks of a runtime of one thread only on the thread that is inside of its
// `block_on`, or that drops it. Both happen with the mutex of `Runner` locked, so no two threads are in such tasks, or
// in what they share by `Rc`, at one time, and each sees what the one before has done. Nothing outside of the tasks has
// a part of them.
unsafe impl<F> Send for Confined<F> {}

impl<F: Future> Future for Confined<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the field is pinned whenever the whole is: it is never moved out.
        unsafe { self.map_unchecked_mut(|confined| &mut confined.0) }.poll(context)
    }
}

/// Starts a task of the engine, from one of them.
pub(crate) fn spawn(task: impl Future<Output = ()> + 'static) {
    drop(tokio::spawn(Confined(task)));
}
