//! One request of the program to the native thread, and how its caller waits for the outcome.
//!
//! A thread runs the engine itself if it may (`crate::runner`), else it sleeps on a futex, and a signal interrupts it; a task has a number rung at its loop's doorbell. The native
//! thread completes an operation without the GIL.
//!
//! | word | means |
//! |---|---|
//! | 0 | pending |
//! | 1 | the outcome is there; for good |
//! | 2 | pending, and a thread sleeps on the word |
//!
//! Invariant: every operation is completed once, at the latest when its `Completer` is dropped, so no caller waits
//! for a thread that has ended.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use rustix::io::Errno;
use rustix::thread::futex;
use tokio::sync::Notify;

use crate::boottime::now_ns;
use crate::doorbell::Doorbell;
use crate::failure::{Failure, Kind, Outcome};
use crate::hold::Hold;
use crate::port::Row;
use crate::runner::Runner;

/// What an operation brings.
#[derive(Clone)]
pub(crate) enum Answer {
    Nothing,
    Flag(bool),
    Number(u64),
    Hold(Arc<Hold>),
    Rows(Vec<Row>),
}

struct Inside {
    outcome: Option<Outcome<Answer>>,
    bell: Option<(Arc<Doorbell>, u64)>,
    /// Of the caller that runs the engine itself.
    waker: Option<Waker>,
    is_abandoned: bool,
}

struct Shared {
    word: AtomicU32,
    inside: Mutex<Inside>,
    cancellation: Notify,
    runner: Arc<Runner>,
}

impl Shared {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether somebody is there to take the outcome.
    fn complete(&self, outcome: Outcome<Answer>) -> bool {
        let (bell, waker, is_slept) = {
            let mut inside = self.inside();
            if inside.outcome.is_some() || inside.is_abandoned {
                return false;
            }
            inside.outcome = Some(outcome);
            // ORDERING: pairs with the acquire in `Operation::is_done`.
            let is_slept = self.word.swap(1, Ordering::Release) == 2;
            (inside.bell.take(), inside.waker.take(), is_slept)
        };
        if is_slept {
            // Fails only for an address that is none.
            let _ = futex::wake(&self.word, futex::Flags::PRIVATE, u32::MAX >> 1);
        }
        if let Some(waker) = waker {
            waker.wake();
        }
        if let Some((bell, number)) = bell {
            bell.ring(number);
        }
        true
    }
}

/// The caller's side.
#[derive(Clone)]
pub(crate) struct Operation(Arc<Shared>);

/// The native thread's side.
pub(crate) struct Completer(Arc<Shared>);

/// Returns the two sides of a new operation.
pub(crate) fn pair(runner: Arc<Runner>) -> (Operation, Completer) {
    let inside = Mutex::new(Inside {
        outcome: None,
        bell: None,
        waker: None,
        is_abandoned: false,
    });
    runner.begin();
    let shared = Arc::new(Shared {
        word: AtomicU32::new(0),
        inside,
        cancellation: Notify::new(),
        runner,
    });
    (Operation(Arc::clone(&shared)), Completer(shared))
}

impl Operation {
    pub(crate) fn is_done(&self) -> bool {
        // ORDERING: pairs with the release in `Shared::complete`.
        self.0.word.load(Ordering::Acquire) == 1
    }

    /// Waits until the outcome is there or a signal may have arrived; returns whether it is there.
    pub(crate) fn wait(&self) -> bool {
        if self.is_done() {
            return true;
        }
        // A signal that arrived meanwhile has interrupted nothing.
        if let Some(is_done) = self.0.runner.run_until(self.done()) {
            return is_done;
        }
        self.0.runner.recall();
        let begin = now_ns();
        let is_done = self.sleep();
        if is_done {
            self.0.runner.called_from(begin);
        }
        is_done
    }

    /// Sleeps until the outcome is there or a signal arrives; returns whether it is there.
    fn sleep(&self) -> bool {
        let word = &self.0.word;
        while !self.is_done() {
            // ORDERING: the outcome is read behind the mutex.
            if word.compare_exchange(0, 2, Ordering::Relaxed, Ordering::Relaxed) == Err(1) {
                return true;
            }
            if futex::wait(word, futex::Flags::PRIVATE, 2, None) == Err(Errno::INTR) {
                return self.is_done();
            }
        }
        true
    }

    /// Resolves once the outcome is there.
    async fn done(&self) {
        std::future::poll_fn(|context| {
            let mut inside = self.0.inside();
            if inside.outcome.is_some() {
                return Poll::Ready(());
            }
            inside.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Returns the outcome, once it is there.
    pub(crate) fn outcome(&self) -> Option<Outcome<Answer>> {
        self.0.inside().outcome.clone()
    }

    /// Gives the operation up: what it brings from now on is taken back by the native thread.
    ///
    /// Returns what it has brought already, which is then the caller's to take back.
    pub(crate) fn abandon(&self) -> Option<Outcome<Answer>> {
        let outcome = {
            let mut inside = self.0.inside();
            inside.is_abandoned = true;
            inside.outcome.clone()
        };
        self.0.cancellation.notify_one();
        self.0.runner.recall();
        outcome
    }

    /// Has `number` rung when the outcome is there; returns false if it is there already.
    pub(crate) fn subscribe(&self, bell: Arc<Doorbell>, number: u64) -> bool {
        let mut inside = self.0.inside();
        if inside.outcome.is_some() {
            return false;
        }
        inside.bell = Some((bell, number));
        drop(inside);
        self.0.runner.recall();
        true
    }
}

impl Completer {
    /// Completes the operation; returns whether somebody is there to take the outcome.
    pub(crate) fn complete(&self, outcome: Outcome<Answer>) -> bool {
        self.0.complete(outcome)
    }

    /// Resolves once the caller has given the operation up.
    pub(crate) async fn cancelled(&self) {
        self.0.cancellation.notified().await;
    }
}

impl Drop for Completer {
    fn drop(&mut self) {
        self.0.complete(Err(Failure::new(
            Kind::Closed,
            "the connection to the store was closed",
        )));
        self.0.runner.end();
    }
}
