//! A line of waiters that are told to try, one at a time.
//!
//! The one that was told is the *heir*. While a queue's heir is on its way nobody
//! else is woken: it wakes the next when it has looked, if there is reason to. That
//! makes a hundred `put`s cost one wake-up instead of a hundred. An heir that is slow to come
//! (a task: its loop may be busy, or stopped; the calling thread's own) is relied on for one item only. Permits have an
//! heir for each free permit: there every one of them is for somebody; and more where
//! that pays (see [`crate::eagerness`]).
//!
//! Invariant: if what the line waits for is available and the line is not empty,
//! then a live heir is on its way, or the mutex is held by whoever will name one. If none of
//! the heirs comes soon, there are as many as there is available, or all wait for it.

use crate::eagerness::Eagerness;
use crate::shim::Arc;
use crate::waiter::{GRANTED, Port, WOKEN, WaitQueue, Waiter, Wakes};

#[derive(Debug)]
pub(crate) struct Line<P> {
    pub(crate) queue: WaitQueue<P>,
    heirs: Vec<Arc<Waiter<P>>>,
    /// The task that was granted last, until it comes for it; 0 for none.
    pub(crate) grantee: usize,
    /// Whether a task ever stood in it.
    pub(crate) has_seen_tasks: bool,
    pub(crate) eagerness: Eagerness,
}

impl<P> Default for Line<P> {
    fn default() -> Self {
        Self {
            queue: WaitQueue::default(),
            heirs: Vec::new(),
            grantee: 0,
            has_seen_tasks: false,
            eagerness: Eagerness::default(),
        }
    }
}

impl<P: Port> Line<P> {
    /// How many who were told to try are still on their way.
    pub(crate) fn heirs(&mut self) -> usize {
        self.heirs.retain(|heir| heir.port.is_alive());
        self.heirs.len()
    }

    /// Tell the first waiter to try, unless somebody is on its way already. A thread that is
    /// takes whatever there is; a task or a greenlet, whose loop may be busy or have stopped, and a thread that
    /// first has to end the signal handler which calls this, count for one of those `available` only.
    pub(crate) fn call_next(&mut self, available: usize, wakes: &mut Wakes<P>) {
        if self.heirs() == 0
            && let Some(first) = self.queue.first().cloned()
        {
            self.call(first, wakes);
        }
        while self.heirs.len() < available
            && !self.heirs.iter().any(|heir| heir.port.comes_soon())
            && let Some(next) = self.queue.first_idle().cloned()
        {
            self.call(next, wakes);
        }
    }

    /// Put this waiter at the end.
    pub(crate) fn append(&mut self, waiter: &Arc<Waiter<P>>) {
        self.has_seen_tasks |= waiter.port.task() != 0;
        self.queue.push(waiter);
    }

    /// Hand it to this waiter, which has left the queue.
    pub(crate) fn grant(&mut self, waiter: Arc<Waiter<P>>, wakes: &mut Wakes<P>) {
        self.grantee = waiter.port.task();
        wakes.signal(waiter, GRANTED);
    }

    /// Tell this waiter to try.
    pub(crate) fn call(&mut self, waiter: Arc<Waiter<P>>, wakes: &mut Wakes<P>) {
        self.heirs.push(Arc::clone(&waiter));
        wakes.signal(waiter, WOKEN);
    }

    /// Tell waiters to try that have not been told yet, until `heirs` are on their way or
    /// one must be granted; each wakes the next on its way.
    pub(crate) fn call_up_to(&mut self, heirs: usize, wakes: &mut Wakes<P>) {
        let wanted = heirs.saturating_sub(self.heirs());
        if wanted == 0 {
            return;
        }
        let called: Vec<_> = self
            .queue
            .idle()
            .take_while(|waiter| !waiter.must_grant())
            .take(wanted)
            .cloned()
            .collect();
        self.heirs.extend(called.iter().cloned());
        wakes.signal_all(called.into_iter(), WOKEN, 1);
    }

    /// Tell everybody to try.
    pub(crate) fn call_all(&mut self, wakes: &mut Wakes<P>) {
        let everybody: Vec<_> = self.queue.drain().collect();
        for waiter in everybody {
            self.queue.push(&waiter);
            wakes.signal(waiter, WOKEN);
        }
        self.heirs.clear();
    }

    /// The waiter has looked, or gives up: it is no longer on its way.
    pub(crate) fn arrive(&mut self, waiter: &Arc<Waiter<P>>) {
        self.heirs.retain(|heir| !Arc::ptr_eq(heir, waiter));
    }

    pub(crate) fn leave(&mut self, waiter: &Arc<Waiter<P>>) -> bool {
        self.arrive(waiter);
        self.queue.remove(waiter)
    }
}
