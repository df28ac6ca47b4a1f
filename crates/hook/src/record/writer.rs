//! The calling thread's writer: its chunk of the file, its totals, and what it did last.
//!
//! Must never: have a Rust destructor, as in `thread`; a pthread key's destructor releases the
//! chunk. Invariant: a writer of an earlier recording (with another epoch) registers again
//! before it writes.

use super::buffer::{self, Chunk, Totals};
use super::counter;
use super::processor::ProcessorTime;
use crate::thread::with_current;
use std::cell::Cell;
use std::io;
use std::sync::OnceLock;
use unsnarl_trace::layout::{self, chunk, thread};
use unsnarl_trace::record::{Kind, first_word};

/// State of the calling thread; times are of CLOCK_MONOTONIC, 0 for none.
pub(crate) struct Writer {
    epoch: Cell<u32>,
    chunk: Cell<Chunk>,
    /// Records in the chunk.
    filled: Cell<usize>,
    /// The kind of the last record.
    last: Cell<u8>,
    /// Its time; later records are not before it.
    last_time: Cell<u64>,
    /// Number of its entry among the threads, from one; 0 for none.
    entry: Cell<u32>,
    totals: Cell<Totals>,
    pub(super) is_held: Cell<bool>,
    /// Whether a thread waited for the GIL at the last drop.
    pub(super) was_wanted: Cell<bool>,
    pub(super) taken_at: Cell<u64>,
    pub(super) dropped_at: Cell<u64>,
    /// The same, while the thread has done nothing since; else 0.
    pub(super) just_dropped_at: Cell<u64>,
    pub(super) wait_began: Cell<u64>,
    pub(super) wakeups: Cell<u64>,
    pub(super) lock_began: Cell<u64>,
    /// Payload of a `LockEnd` that is yet to be written; else 0.
    pub(super) lock_end: Cell<u64>,
    /// The kernel's tick before that end.
    pub(super) lock_end_tick: Cell<u64>,
    /// Blocked on locks since the drop.
    pub(super) lock_ns: Cell<u64>,
    pub(super) is_asleep: Cell<bool>,
    pub(super) is_forced: Cell<bool>,
    /// `record::blocks` at a drop that may have been requested; 0 at any other.
    pub(super) blocks_at_drop: Cell<u64>,
    pub(super) short_ns: Cell<u64>,
    pub(super) short_calls: Cell<u64>,
    pub(super) processor: ProcessorTime,
}

thread_local! {
    static WRITER: Writer = const {
        Writer {
            epoch: Cell::new(0),
            chunk: Cell::new(Chunk::NONE),
            filled: Cell::new(0),
            last: Cell::new(0),
            last_time: Cell::new(0),
            entry: Cell::new(0),
            totals: Cell::new(Totals::NONE),
            is_held: Cell::new(false),
            was_wanted: Cell::new(false),
            taken_at: Cell::new(0),
            dropped_at: Cell::new(0),
            just_dropped_at: Cell::new(0),
            wait_began: Cell::new(0),
            wakeups: Cell::new(0),
            lock_began: Cell::new(0),
            lock_end: Cell::new(0),
            lock_end_tick: Cell::new(0),
            lock_ns: Cell::new(0),
            is_asleep: Cell::new(false),
            is_forced: Cell::new(false),
            blocks_at_drop: Cell::new(0),
            short_ns: Cell::new(0),
            short_calls: Cell::new(0),
            processor: ProcessorTime::new(),
        }
    };
}

static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();

/// Makes the key whose destructor notices the end of threads.
///
/// # Errors
/// The process has used up its keys.
pub(super) fn prepare() -> io::Result<()> {
    if KEY.get().is_some() {
        return Ok(());
    }
    let mut key = 0;
    // SAFETY: `key` is writable; the destructor has the C ABI and stays loaded.
    let error = unsafe { libc::pthread_key_create(&raw mut key, Some(leave)) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    // No other thread creates it: the caller holds the installation guard.
    KEY.get_or_init(|| key);
    Ok(())
}

/// Runs `f` with the calling thread's writer, if a recording is on.
pub(super) fn with_writer(f: impl FnOnce(&Writer)) {
    WRITER.with(|own| {
        let epoch = buffer::epoch();
        if epoch == 0 {
            return;
        }
        if own.epoch.get() != epoch {
            if with_current(|current| current.is_probe.get()) {
                return;
            }
            own.register(epoch);
        }
        f(own);
    });
}

impl Writer {
    #[cold]
    #[inline(never)]
    fn register(&self, epoch: u32) {
        // ORDERING: the Acquire fence pairs with the Release store of the epoch in `create`; the epoch
        // was read relaxed. The pointers kept from here on point into the mapping of that epoch.
        std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
        self.epoch.set(epoch);
        self.chunk.set(Chunk::NONE);
        self.filled.set(layout::RECORDS);
        self.last.set(0);
        self.last_time.set(0);
        self.entry.set(buffer::new_thread(tid(), ident(), counter::now()));
        self.totals.set(Totals::of(self.entry.get()));
        self.is_held.set(false);
        self.was_wanted.set(false);
        for cell in [
            &self.taken_at,
            &self.dropped_at,
            &self.just_dropped_at,
            &self.wait_began,
            &self.lock_end,
            &self.lock_ns,
            &self.short_ns,
        ] {
            cell.set(0);
        }
        self.short_calls.set(0);
        self.is_asleep.set(false);
        self.is_forced.set(false);
        self.blocks_at_drop.set(0);
        self.processor.restart();
        if let Some(&key) = KEY.get() {
            // SAFETY: the key was created and is never deleted; any value but null.
            unsafe { libc::pthread_setspecific(key, std::ptr::without_provenance(1)) };
        }
    }

    /// Writes a record.
    #[inline(never)]
    pub(super) fn push(&self, kind: Kind, payload: u64, now: u64) {
        self.write(kind, payload, now);
    }

    /// The same, inlined for the records that are written most.
    #[inline]
    pub(super) fn write(&self, kind: Kind, payload: u64, now: u64) {
        if self.filled.get() >= layout::RECORDS {
            self.open_chunk();
        }
        let place = chunk::HEAD + self.filled.get() * layout::RECORD_SIZE;
        let time = buffer::since_start(now).max(self.last_time.get());
        if self.chunk.get().write(place, first_word(time, kind), payload) {
            self.filled.set(self.filled.get() + 1);
        } else {
            self.filled.set(layout::RECORDS); // the next record tries for a chunk again
        }
        self.last.set(kind as u8);
        self.last_time.set(time);
        self.totals.get().set(thread::LAST, time);
    }

    #[cold]
    #[inline(never)]
    fn open_chunk(&self) {
        self.chunk.get().leave();
        self.chunk.set(buffer::new_chunk(self.entry.get(), tid(), ident()));
        self.filled.set(0);
    }

    /// Withdraws the last record if it is a drop; returns whether it was.
    pub(super) fn unwrite_drop(&self) -> bool {
        let filled = self.filled.get();
        if self.last.get() != Kind::Drop as u8 || filled == 0 || filled > layout::RECORDS {
            return false;
        }
        let place = chunk::HEAD + (filled - 1) * layout::RECORD_SIZE;
        if !self.chunk.get().write(place, 0, 0) {
            return false;
        }
        self.filled.set(filled - 1);
        self.last.set(0);
        true
    }

    /// Notes for the sampler that this thread has the GIL.
    pub(super) fn note_holder(&self) {
        buffer::note_holder(self.entry.get(), super::frames::own_state);
    }

    /// Adds to one of the thread's totals.
    pub(super) fn add(&self, field: usize, value: u64) {
        self.totals.get().add(field, value);
    }

    /// Raises one of the thread's totals to `value` if it is less.
    pub(super) fn raise(&self, field: usize, value: u64) {
        self.totals.get().raise(field, value);
    }
}

fn tid() -> u32 {
    // SAFETY: gettid has no preconditions.
    let id = unsafe { libc::syscall(libc::SYS_gettid) };
    id as u32
}

fn ident() -> u64 {
    // SAFETY: pthread_self has no preconditions.
    unsafe { libc::pthread_self() as u64 }
}

/// Destructor of the key: the thread ends.
extern "C" fn leave(_value: *mut libc::c_void) {
    with_writer(|own| {
        let now = counter::now();
        super::write_lock_end(own, now);
        own.push(Kind::End, 0, now);
        own.chunk.get().leave();
        buffer::end_thread(own.entry.get());
        own.epoch.set(0);
    });
}
