//! The layout of a trace file: offsets and sizes, all fixed, so a file is bounded.
//!
//! | at | what |
//! |---|---|
//! | 0 | header, one page: magic, process, clocks, counters, a text about the program |
//! | [`LOCATIONS_AT`] | [`LOCATIONS`] lines of Python (or imported modules) |
//! | [`NODES_AT`] | [`NODES`] nodes of a trie of stacks: parent and location |
//! | [`NAMES_AT`] | the [`NAMES`] latest names of threads |
//! | [`THREADS_AT`] | [`THREADS`] threads with totals over the whole recording |
//! | [`CHUNKS_AT`] | chunks of records, each filled by one thread |
//!
//! All integers have the machine's byte order; [`ENDIAN_MARK`] identifies a foreign file.
//! Invariant: a record, an entry or a chunk counts once its first word is not zero,
//! and that word is written last. So a process can be killed at any instruction.

/// The first eight bytes.
pub const MAGIC: [u8; 8] = *b"unsnarlT";
/// Changes with the layout.
pub const VERSION: u32 = 4;
/// Reads differently on a machine of the other byte order.
pub const ENDIAN_MARK: u32 = 0x0102_0304;

/// Fields of the header.
pub mod header {
    /// `u32`: [`super::VERSION`].
    pub const VERSION: usize = 8;
    /// `u32`: [`super::ENDIAN_MARK`].
    pub const ENDIAN: usize = 12;
    /// `u32`: process.
    pub const PID: usize = 16;
    /// `u32`: its parent.
    pub const PARENT: usize = 20;
    /// `u64`: CLOCK_MONOTONIC of time zero.
    pub const STARTED: usize = 24;
    /// `u64`: CLOCK_REALTIME of time zero.
    pub const STARTED_REAL: usize = 32;
    /// `u64`: time of the end; zero while the recording continues, or if it was cut short.
    pub const ENDED: usize = 40;
    /// `u32`: number of chunks.
    pub const CHUNKS: usize = 48;
    /// `u32`: whether the scheduler was at work (1).
    pub const IS_SCHEDULED: usize = 52;
    /// `u64`: chunks handed out so far.
    pub const NEXT_CHUNK: usize = 56;
    /// `u64`: records that were overwritten by newer ones.
    pub const OVERWRITTEN: usize = 64;
    /// `u64`: stacks that were not taken, to bound the cost or because a table was full.
    pub const STACKS_LEFT_OUT: usize = 72;
    /// `u64`: records for which no chunk was free.
    pub const LOST: usize = 80;
    /// `u64`: names written so far.
    pub const NAMES: usize = 88;
    /// `u64`: threads seen so far.
    pub const THREADS: usize = 96;
    /// `u64`: CLOCK_MONOTONIC when the launcher started the program; zero if unknown.
    pub const EXECUTED: usize = 104;
    /// `u64`: time of the program's first line; zero if it never ran.
    pub const FIRST_LINE: usize = 112;
    /// `u64`: the switch interval, nanoseconds.
    pub const INTERVAL: usize = 120;
    /// `u32`: whether times were read from the processor's counter (1) or from libc's clock; both are CLOCK_MONOTONIC.
    pub const IS_COUNTED: usize = 128;
    /// `u64`: number of the thread that took the GIL last, from one; zero if it has no entry.
    pub const HOLDER: usize = 136;
    /// `u64`: address of `PyCode_Type` in the process once its frames can be read; else zero.
    pub const CODE_TYPE: usize = 144;
    /// UTF-8 about the program, ended by a zero byte.
    pub const TEXT: usize = 256;
}

/// A page; chunks are as large.
pub const PAGE: usize = 4096;
/// Bytes for the text of the header.
pub const TEXT_SIZE: usize = PAGE - header::TEXT;

/// Lines and modules that can be distinguished.
pub const LOCATIONS: usize = 2048;
/// Bytes of one location: `u64` fingerprint, `u32` line, `u32` kind, file, function.
pub const LOCATION_SIZE: usize = 160;
/// Offset of the line number.
pub const LOCATION_LINE: usize = 8;
/// Offset of the kind: 0 a line of Python, 1 an imported module.
pub const LOCATION_KIND: usize = 12;
/// Offset of the file's path; of a long path the end is kept.
pub const LOCATION_FILE: usize = 16;
/// Bytes for the path.
pub const FILE_SIZE: usize = 96;
/// Offset of the function's name.
pub const LOCATION_FUNCTION: usize = LOCATION_FILE + FILE_SIZE;
/// Bytes for the name.
pub const FUNCTION_SIZE: usize = 48;

/// Nodes of the trie of stacks.
pub const NODES: usize = 16_384;
/// Bytes of one node: `u64`, parent's number in the high half, location's in the low half,
/// both counted from one; parent zero is the root.
pub const NODE_SIZE: usize = 8;

/// Names of threads kept.
pub const NAMES: usize = 2048;
/// Bytes of one name: `u64` identifier of the thread, `u64` time plus one, the name.
pub const NAME_SIZE: usize = 64;
/// Offset of the name.
pub const NAME_TEXT: usize = 16;
/// Bytes for it.
pub const NAME_TEXT_SIZE: usize = NAME_SIZE - NAME_TEXT;

/// Threads whose totals are kept.
pub const THREADS: usize = 4096;
/// Bytes of one thread.
pub const THREAD_SIZE: usize = 192;

/// Fields of a thread.
pub mod thread {
    /// `u64`: `threading.get_ident()`; written last.
    pub const IDENT: usize = 0;
    /// `u32`: `threading.get_native_id()`.
    pub const TID: usize = 8;
    /// `u32`: 1 once the thread has ended.
    pub const HAS_ENDED: usize = 12;
    /// `u64`: time of its first event.
    pub const BEGAN: usize = 16;
    /// `u64`: time of its last event.
    pub const LAST: usize = 24;
    /// `u64`: nanoseconds with the GIL.
    pub const HELD: usize = 32;
    /// `u64`: nanoseconds waiting for it.
    pub const WAITED: usize = 40;
    /// `u64`: nanoseconds blocked on locks.
    pub const ON_LOCK: usize = 48;
    /// `u64`: nanoseconds in `time.sleep`.
    pub const ASLEEP: usize = 56;
    /// `u64`: nanoseconds off the GIL otherwise: I/O, and short calls of any kind.
    pub const IN_IO: usize = 64;
    /// `u64`: times it took the GIL.
    pub const TAKES: usize = 72;
    /// `u64`: times it had to wait for it.
    pub const WAITS: usize = 80;
    /// `u64`: times it blocked on a lock.
    pub const LOCK_WAITS: usize = 88;
    /// `u64`: times it woke up while waiting for the GIL.
    pub const WAKEUPS: usize = 96;
    /// `u64`: longest time with the GIL while another thread waited.
    pub const LONGEST_HOLD: usize = 104;
    /// `u64`: longest wait for it.
    pub const LONGEST_WAIT: usize = 112;
    /// `u64`: times it dropped the GIL on request.
    pub const FORCED: usize = 120;
    /// `u64`: nanoseconds in C code that released the GIL and computed.
    pub const COMPUTED: usize = 128;
    /// `u64`: address of its `PyThreadState` in the process; zero if unknown.
    pub const STATE: usize = 136;
}

/// Head of a chunk.
pub mod chunk {
    /// `u64`: 1 + the number of chunks handed out before; zero if never used.
    pub const SEQUENCE: usize = 0;
    /// `u32`: number of the thread in the table, plus one; zero if it has no entry.
    pub const THREAD: usize = 8;
    /// `u32`: the thread's native identifier.
    pub const TID: usize = 12;
    /// `u64`: the thread's identifier.
    pub const IDENT: usize = 16;
    /// `u32`: one of the states below.
    pub const STATE: usize = 24;
    /// Bytes of the head.
    pub const HEAD: usize = 32;
    /// Unused.
    pub const FREE: u32 = 0;
    /// A thread writes into the chunk.
    pub const ACTIVE: u32 = 1;
    /// No thread writes into the chunk any more.
    pub const DONE: u32 = 2;
}

/// Bytes of a chunk.
pub const CHUNK_SIZE: usize = PAGE;
/// Bytes of a record: two `u64`.
pub const RECORD_SIZE: usize = 16;
/// Records of a chunk.
pub const RECORDS: usize = (CHUNK_SIZE - chunk::HEAD) / RECORD_SIZE;

/// After the header.
pub const LOCATIONS_AT: usize = PAGE;
/// After the locations.
pub const NODES_AT: usize = LOCATIONS_AT + LOCATIONS * LOCATION_SIZE;
/// After the nodes.
pub const NAMES_AT: usize = NODES_AT + NODES * NODE_SIZE;
/// After the names.
pub const THREADS_AT: usize = NAMES_AT + NAMES * NAME_SIZE;
/// After the threads.
pub const CHUNKS_AT: usize = THREADS_AT + THREADS * THREAD_SIZE;

const _: () = assert!(CHUNKS_AT.is_multiple_of(PAGE) && LOCATION_FUNCTION + FUNCTION_SIZE == LOCATION_SIZE);

/// How many of the chunks are never used again: the first ones, which hold the start of the program.
#[must_use]
pub const fn kept_chunks(chunks: u64) -> u64 {
    let share = chunks / 8;
    if share < 128 { share } else { 128 }
}

/// The index of the chunk that is handed out after `number` others.
#[must_use]
pub const fn chunk_place(number: u64, chunks: u64) -> u64 {
    if number < chunks {
        return number;
    }
    let kept = kept_chunks(chunks);
    kept + (number - kept) % (chunks - kept)
}

/// Bytes of a file with this number of chunks.
#[must_use]
pub const fn file_size(chunks: usize) -> usize {
    CHUNKS_AT + chunks * CHUNK_SIZE
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_chunks_are_kept_and_the_others_take_turns(chunks in 1_u64..5000, number in 0_u64..100_000) {
            let place = chunk_place(number, chunks);
            prop_assert!(place < chunks);
            prop_assert!(number < chunks || place >= kept_chunks(chunks));
            let next = chunk_place(number + 1, chunks);
            let after = if place + 1 == chunks { kept_chunks(chunks) } else { place + 1 };
            prop_assert_eq!(next, after);
        }
    }
}
