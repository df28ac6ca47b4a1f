//! The mapped trace file: created, handed out in chunks, finished.
//!
//! If the process is killed at any moment, what it wrote is kept: the pages are the kernel's.
//!
//! Must never: be unmapped in the process that created it, since a thread may be about to write.
//!
//! Invariants:
//! - the file's blocks are allocated before it is mapped: a full disk is an error at the start,
//!   and not a SIGBUS later;
//! - a chunk is reused only when no thread writes into it;
//! - the first chunks, which hold the program's start, are never reused.

use super::counter;
use crate::clock;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Relaxed, Ordering::Release,
};
use unsnarl_trace::layout::{self, chunk, header, thread};

static BASE: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static SIZE: AtomicUsize = AtomicUsize::new(0);
static CHUNKS: AtomicU64 = AtomicU64::new(0);
static STARTED: AtomicU64 = AtomicU64::new(0);
/// Number of the recording, 0 while there is none.
static EPOCH: AtomicU32 = AtomicU32::new(0);
static LAST_EPOCH: AtomicU32 = AtomicU32::new(0);
/// Path of the file, to truncate it to what was used; locked by Python threads only.
static PATH: Mutex<Option<CString>> = Mutex::new(None);

/// Chunks that are tried to find a free one.
const CHUNK_TRIES: u32 = 64;
/// Added to the count of chunks at the end, so that no more are handed out.
const CLOSED: u64 = 1 << 40;

/// The file to record to, and what to write about the program.
#[derive(Debug)]
pub struct Destination {
    /// Path of the file, which must not exist.
    pub path: CString,
    /// Chunks of 4 KiB for records.
    pub chunks: usize,
    /// About the program, at most [`layout::TEXT_SIZE`] bytes of UTF-8.
    pub text: String,
    /// CLOCK_MONOTONIC at which the program was started, or 0.
    pub executed_ns: u64,
    /// The switch interval.
    pub interval_ns: u64,
    /// Whether to read the processor's counter for the time, where the kernel does.
    pub has_counter: bool,
    /// Whether the interpreter's locks wait in its parking lot (from CPython 3.14 on).
    pub has_parked_locks: bool,
}

/// Number of the recording that is on, or 0.
pub(super) fn epoch() -> u32 {
    EPOCH.load(Relaxed)
}

/// Nanoseconds since the start of the recording.
pub(super) fn since_start(now: u64) -> u64 {
    now.saturating_sub(STARTED.load(Relaxed))
}

/// Creates the file and maps it; records may be written from now on.
///
/// # Errors
/// The operating system's.
pub(crate) fn create(destination: &Destination, is_scheduled: bool) -> io::Result<()> {
    super::writer::prepare()?;
    let size = layout::file_size(destination.chunks);
    let base = map(&destination.path, size)?;
    BASE.store(base, Relaxed);
    SIZE.store(size, Relaxed);
    CHUNKS.store(destination.chunks as u64, Relaxed);
    let is_counted = counter::begin(destination.has_counter);
    super::lock_address::set_parked(destination.has_parked_locks);
    STARTED.store(counter::now(), Relaxed);
    write_header(destination, is_scheduled);
    set32(header::IS_COUNTED, u32::from(is_counted));
    if let Ok(mut path) = PATH.lock() {
        *path = Some(destination.path.clone());
    }
    // ORDERING: Release pairs with the Acquire fence in `Writer::register`: the mapping is there.
    EPOCH.store(LAST_EPOCH.fetch_add(1, Relaxed).wrapping_add(1).max(1), Release);
    Ok(())
}

fn map(path: &CString, size: usize) -> io::Result<*mut u8> {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: `path` is a C string.
    let file = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened, and not owned elsewhere.
    let file = unsafe { OwnedFd::from_raw_fd(file) };
    let length = libc::off_t::try_from(size).map_err(|_| io::ErrorKind::FileTooLarge)?;
    // SAFETY: the descriptor is open.
    let error = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) };
    if error != 0 {
        remove(path);
        return Err(io::Error::from_raw_os_error(error));
    }
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, of a file of this size.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size,
            access,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if base == libc::MAP_FAILED {
        let error = io::Error::last_os_error();
        remove(path);
        return Err(error);
    }
    Ok(base.cast())
}

fn remove(path: &CString) {
    // SAFETY: a C string.
    unsafe { libc::unlink(path.as_ptr()) };
}

fn write_header(destination: &Destination, is_scheduled: bool) {
    let mut real = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `real` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut real) };
    set32(header::VERSION, layout::VERSION);
    set32(header::ENDIAN, layout::ENDIAN_MARK);
    set32(header::PID, std::process::id());
    set32(header::PARENT, std::os::unix::process::parent_id());
    set64(header::STARTED, STARTED.load(Relaxed));
    set64(header::STARTED_REAL, clock::nanos(&real));
    set32(header::CHUNKS, destination.chunks as u32);
    set32(header::IS_SCHEDULED, u32::from(is_scheduled));
    set64(header::EXECUTED, destination.executed_ns);
    set64(header::INTERVAL, destination.interval_ns);
    write_text(header::TEXT, layout::TEXT_SIZE, destination.text.bytes());
    write_text(0, layout::MAGIC.len() + 1, layout::MAGIC.into_iter());
}

/// A word of the file, if there is one.
pub(super) fn word(at: usize) -> Option<&'static AtomicU64> {
    let base = BASE.load(Relaxed);
    if base.is_null() || at + 8 > SIZE.load(Relaxed) {
        return None;
    }
    // SAFETY: within the mapping, which stays; `at` is a multiple of eight by the layout.
    Some(unsafe { AtomicU64::from_ptr(base.add(at).cast()) })
}

fn half(at: usize) -> Option<&'static AtomicU32> {
    let base = BASE.load(Relaxed);
    if base.is_null() || at + 4 > SIZE.load(Relaxed) {
        return None;
    }
    // SAFETY: within the mapping, which stays; `at` is a multiple of four by the layout.
    Some(unsafe { AtomicU32::from_ptr(base.add(at).cast()) })
}

pub(super) fn set64(at: usize, value: u64) {
    if let Some(word) = word(at) {
        // ORDERING: Release has no partner in this process. Everything written before is in the file
        // once this word is, whenever the process is killed: the reader of the file is the partner.
        word.store(value, Release);
    }
}

pub(super) fn set32(at: usize, value: u32) {
    if let Some(half) = half(at) {
        // ORDERING: Release, as in `set64`.
        half.store(value, Release);
    }
}

/// Writes a text of less than `size` bytes and a zero byte.
pub(super) fn write_text(at: usize, size: usize, text: impl Iterator<Item = u8>) {
    let base = BASE.load(Relaxed);
    if base.is_null() || at + size > SIZE.load(Relaxed) {
        return;
    }
    let mut end = 0;
    for (index, byte) in text.take(size - 1).enumerate() {
        // SAFETY: within the mapping, as tested above.
        unsafe { base.add(at + index).write(byte) };
        end = index + 1;
    }
    if end < size - 1 {
        // SAFETY: as above.
        unsafe { base.add(at + end).write(0) };
    }
}

/// Adds to a counter of the header; returns its former value.
pub(super) fn count(at: usize, by: u64) -> u64 {
    word(at).map_or(0, |word| word.fetch_add(by, Relaxed))
}

/// Records that the program's first line runs next.
pub fn mark_first_line() {
    if epoch() != 0 {
        set64(header::FIRST_LINE, since_start(counter::now()));
    }
}

/// A chunk of this process's file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk(Option<&'static [AtomicU64; layout::CHUNK_SIZE / 8]>);

impl Chunk {
    /// No chunk: what is written to it is lost, and counted.
    pub(super) const NONE: Self = Self(None);

    fn at(at: usize) -> Self {
        let base = BASE.load(Relaxed);
        if base.is_null() || at + layout::CHUNK_SIZE > SIZE.load(Relaxed) {
            return Self::NONE;
        }
        // SAFETY: within the mapping, which stays as long as there is a recording; chunks
        // begin at a page, and are only used as atomics.
        Self(Some(unsafe { &*base.add(at).cast() }))
    }

    /// Writes a record; returns whether it could.
    pub(super) fn write(self, place: usize, first: u64, payload: u64) -> bool {
        let Some(words) = self.0 else { return lose() };
        let Some([head, tail]) = words.get(place / 8..place / 8 + 2) else {
            return false;
        };
        tail.store(payload, Relaxed);
        // ORDERING: Release, as in `set64`: the first word makes the record valid.
        head.store(first, Release);
        true
    }

    /// Marks the chunk as done: no thread writes into it any more.
    pub(super) fn leave(self) {
        let Some(words) = self.0 else { return };
        let state = words[chunk::STATE / 8].as_ptr().cast::<u32>();
        // SAFETY: the first half of one of the chunk's words, used as an atomic everywhere.
        // ORDERING: Release pairs with the AcqRel exchange in `new_chunk`: the records are there.
        unsafe { AtomicU32::from_ptr(state) }.store(chunk::DONE, Release);
    }
}

/// Counts a record for which there is no chunk.
#[cold]
#[inline(never)]
fn lose() -> bool {
    count(header::LOST, 1);
    false
}

const _: () = assert!(chunk::STATE.is_multiple_of(8));

/// Hands out a chunk: a new one, or else the oldest that is done and not kept.
pub(super) fn new_chunk(entry: u32, tid: u32, ident: u64) -> Chunk {
    let chunks = CHUNKS.load(Relaxed);
    for _ in 0..CHUNK_TRIES {
        let number = count(header::NEXT_CHUNK, 1);
        if number >= CLOSED || chunks == 0 {
            break;
        }
        let at = layout::CHUNKS_AT + layout::chunk_place(number, chunks) as usize * layout::CHUNK_SIZE;
        let from = if number < chunks { chunk::FREE } else { chunk::DONE };
        // ORDERING: AcqRel: the Acquire pairs with the Release in `Chunk::leave`; the Release is not needed.
        let is_mine = half(at + chunk::STATE)
            .is_some_and(|state| state.compare_exchange(from, chunk::ACTIVE, AcqRel, Relaxed).is_ok());
        if is_mine {
            open_chunk(at, from == chunk::DONE, entry, tid, ident);
            set64(at + chunk::SEQUENCE, number + 1);
            return Chunk::at(at);
        }
    }
    Chunk::NONE
}

fn open_chunk(at: usize, is_used: bool, entry: u32, tid: u32, ident: u64) {
    if is_used {
        set64(at + chunk::SEQUENCE, 0);
        let mut overwritten = 0;
        for place in 0..layout::RECORDS {
            let record = at + chunk::HEAD + place * layout::RECORD_SIZE;
            overwritten += u64::from(word(record).is_some_and(|word| word.swap(0, Relaxed) != 0));
        }
        count(header::OVERWRITTEN, overwritten);
    }
    set32(at + chunk::THREAD, entry);
    set32(at + chunk::TID, tid);
    set64(at + chunk::IDENT, ident);
}

fn entry_at(entry: u32) -> usize {
    layout::THREADS_AT + (entry as usize - 1) * layout::THREAD_SIZE
}

/// Gives a thread an entry among the totals; 0 if all are in use.
pub(super) fn new_thread(tid: u32, ident: u64, now: u64) -> u32 {
    let number = count(header::THREADS, 1);
    let entry = (number % layout::THREADS as u64) as u32 + 1;
    let at = entry_at(entry);
    // ORDERING: AcqRel: the Acquire pairs with the Release of `set32` in `end_thread`.
    let is_free = number < layout::THREADS as u64
        || half(at + thread::HAS_ENDED).is_some_and(|ended| ended.compare_exchange(1, 0, AcqRel, Relaxed).is_ok());
    if !is_free {
        return 0;
    }
    for field in (thread::BEGAN..layout::THREAD_SIZE).step_by(8) {
        set64(at + field, 0);
    }
    set32(at + thread::TID, tid);
    set64(at + thread::BEGAN, since_start(now));
    set64(at + thread::LAST, since_start(now));
    set64(at + thread::IDENT, ident);
    entry
}

/// Notes that this thread has taken the GIL, and where its state is, for the sampler in another process.
pub(super) fn note_holder(entry: u32, thread_state: impl FnOnce() -> usize) {
    set64(header::HOLDER, u64::from(entry));
    if entry != 0 && word(entry_at(entry) + thread::STATE).is_some_and(|word| word.load(Relaxed) == 0) {
        set64(entry_at(entry) + thread::STATE, thread_state() as u64);
    }
}

/// Marks the thread of this entry as ended.
pub(super) fn end_thread(entry: u32) {
    if entry != 0 {
        set32(entry_at(entry) + thread::HAS_ENDED, 1);
    }
}

/// The totals of one thread, which that thread alone changes.
#[derive(Clone, Copy)]
pub(super) struct Totals(Option<&'static [AtomicU64; layout::THREAD_SIZE / 8]>);

impl Totals {
    /// Totals that are not kept.
    pub(super) const NONE: Self = Self(None);

    /// Those of this entry; for use in this recording only.
    pub(super) fn of(entry: u32) -> Self {
        let base = BASE.load(Relaxed);
        if entry == 0 || base.is_null() || entry_at(entry) + layout::THREAD_SIZE > SIZE.load(Relaxed) {
            return Self::NONE;
        }
        // SAFETY: within the mapping, which stays as long as there is a recording; entries
        // begin at a multiple of eight by the layout, and are only used as atomics.
        Self(Some(unsafe { &*base.add(entry_at(entry)).cast() }))
    }

    fn field(self, field: usize) -> Option<&'static AtomicU64> {
        self.0?.get(field / 8)
    }

    /// Sets one of them.
    pub(super) fn set(self, field: usize, value: u64) {
        if let Some(total) = self.field(field) {
            total.store(value, Relaxed);
        }
    }

    /// Adds to one of them.
    pub(super) fn add(self, field: usize, value: u64) {
        if let Some(total) = self.field(field) {
            total.store(total.load(Relaxed).wrapping_add(value), Relaxed);
        }
    }

    /// Raises one of them.
    pub(super) fn raise(self, field: usize, value: u64) {
        if let Some(total) = self.field(field)
            && total.load(Relaxed) < value
        {
            total.store(value, Relaxed);
        }
    }
}

/// Ends the recording in order: writes the time, and truncates the file to what was used.
pub(crate) fn finish() {
    super::end();
    // ORDERING: AcqRel: the Acquire pairs with the Release of the epoch in `create`; the Release is not
    // needed, since threads may write until they see it.
    if EPOCH.swap(0, AcqRel) == 0 {
        return;
    }
    set64(header::ENDED, since_start(counter::now()).max(1));
    let used = count(header::NEXT_CHUNK, CLOSED).min(CHUNKS.load(Relaxed));
    let path = PATH.lock().ok().and_then(|mut path| path.take());
    if let (Some(path), Ok(length)) = (path, libc::off_t::try_from(layout::file_size(used as usize))) {
        // No chunk beyond the length is in use, and none is handed out any more.
        // SAFETY: a C string.
        unsafe { libc::truncate(path.as_ptr(), length) };
    }
}

/// Unmaps the parent's file in the child of a fork.
pub(super) fn forget() {
    EPOCH.store(0, Relaxed);
    let base = BASE.swap(std::ptr::null_mut(), Relaxed);
    if !base.is_null() {
        // SAFETY: the child has one thread, and it is not writing.
        unsafe { libc::munmap(base.cast(), SIZE.swap(0, Relaxed)) };
    }
}
