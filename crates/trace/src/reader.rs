//! Parses a trace file into each thread's records, in order of time.
//!
//! Must never: panic, or refuse a damaged trace. Invariant: invalid data (a number past its table, a
//! text that is not UTF-8, a time that goes backwards) is left out or made harmless; only a file
//! that is not a trace is refused.

use crate::Nanos;
use crate::layout::{self, chunk, header, thread};
use crate::record::Record;
use std::collections::HashMap;
use std::fmt;

/// Why a file is not a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than its tables.
    Truncated,
    /// Does not begin as a trace does.
    Foreign,
    /// Written by another version.
    Version(u32),
    /// Written on a machine of the other byte order.
    ByteOrder,
}

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => formatter.write_str("it ends within its tables"),
            Self::Foreign => formatter.write_str("it is no trace of unsnarl"),
            Self::Version(version) => write!(
                formatter,
                "it has version {version}, and this unsnarl reads {}",
                layout::VERSION
            ),
            Self::ByteOrder => formatter.write_str("it was written on a machine of another byte order"),
        }
    }
}

/// A line of Python, or a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// Path of the file (the end of a long one), or the module's name.
    pub file: String,
    /// Qualified name of the function.
    pub function: String,
    /// Counted from one.
    pub line: u32,
}

/// A thread: its identity, its totals, its records.
#[derive(Debug, Clone, Default)]
pub struct Thread {
    /// `threading.get_ident()`.
    pub ident: u64,
    /// `threading.get_native_id()`.
    pub tid: u32,
    /// Number of its entry among the threads, from one; 0 if it has none.
    pub entry: u32,
    /// Its name, if a name for it was recorded.
    pub name: Option<String>,
    /// Totals over the whole recording, as in [`layout::thread`]; `None` for a thread without an entry.
    pub totals: Option<[u64; 13]>,
    /// First and last event.
    pub span: (Nanos, Nanos),
    /// Whether it ended before the recording did.
    pub has_ended: bool,
    /// Its records that were not overwritten, in order of time.
    pub records: Vec<Record>,
    /// Its records of the start; some between them and the others were overwritten.
    pub start: Vec<Record>,
}

/// A parsed trace file.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// Fields of the header by their names in [`header`].
    pub header: Header,
    /// By number, without gaps where nothing was written.
    pub locations: HashMap<u32, Location>,
    /// Parent and location of each node.
    pub nodes: HashMap<u32, (u32, u32)>,
    /// In order of their first events.
    pub threads: Vec<Thread>,
    /// The times of which records are left.
    pub extent: Extent,
}

/// The times of which records are left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// Start of the records of all active threads; 0 if none were overwritten. A thread that has been idle
    /// since may have older ones, without those of other threads for the same time.
    pub from: Nanos,
    /// End of the records of the start; [`Nanos::MAX`] if none were overwritten.
    pub start_until: Nanos,
}

/// The header's numbers and text.
#[derive(Debug, Clone, Default)]
#[allow(
    missing_docs,
    reason = "the names are those of `layout::header`, which documents them"
)]
pub struct Header {
    pub pid: u32,
    pub parent: u32,
    pub started: Nanos,
    pub started_real: Nanos,
    pub ended: Nanos,
    pub is_scheduled: bool,
    pub is_counted: bool,
    pub overwritten: u64,
    pub stacks_left_out: u64,
    pub lost: u64,
    pub executed: Nanos,
    pub first_line: Nanos,
    pub interval: Nanos,
    pub thread_count: u64,
    pub text: String,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 4)
        .and_then(|slice| slice.try_into().ok())
        .map_or(0, u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..at + 8)
        .and_then(|slice| slice.try_into().ok())
        .map_or(0, u64::from_ne_bytes)
}

fn text_at(bytes: &[u8], at: usize, size: usize) -> String {
    let field = bytes.get(at..at + size).unwrap_or_default();
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

/// Reads a trace.
///
/// # Errors
/// [`Malformed`] if it is not a trace, or is truncated within its tables.
pub fn read(bytes: &[u8]) -> Result<Trace, Malformed> {
    if bytes.len() < layout::MAGIC.len() || bytes[..layout::MAGIC.len()] != layout::MAGIC {
        return Err(if bytes.is_empty() {
            Malformed::Truncated
        } else {
            Malformed::Foreign
        });
    }
    if u32_at(bytes, header::ENDIAN) != layout::ENDIAN_MARK {
        return Err(if bytes.len() < layout::PAGE {
            Malformed::Truncated
        } else {
            Malformed::ByteOrder
        });
    }
    if u32_at(bytes, header::VERSION) != layout::VERSION {
        return Err(Malformed::Version(u32_at(bytes, header::VERSION)));
    }
    if bytes.len() < layout::CHUNKS_AT {
        return Err(Malformed::Truncated);
    }
    let (mut threads, extent) = read_threads(bytes);
    give_names(bytes, &mut threads);
    Ok(Trace {
        header: read_header(bytes),
        locations: read_locations(bytes),
        nodes: read_nodes(bytes),
        threads,
        extent,
    })
}

fn read_header(bytes: &[u8]) -> Header {
    Header {
        pid: u32_at(bytes, header::PID),
        parent: u32_at(bytes, header::PARENT),
        started: u64_at(bytes, header::STARTED),
        started_real: u64_at(bytes, header::STARTED_REAL),
        ended: u64_at(bytes, header::ENDED),
        is_scheduled: u32_at(bytes, header::IS_SCHEDULED) != 0,
        is_counted: u32_at(bytes, header::IS_COUNTED) != 0,
        overwritten: u64_at(bytes, header::OVERWRITTEN),
        stacks_left_out: u64_at(bytes, header::STACKS_LEFT_OUT),
        lost: u64_at(bytes, header::LOST),
        executed: u64_at(bytes, header::EXECUTED),
        first_line: u64_at(bytes, header::FIRST_LINE),
        interval: u64_at(bytes, header::INTERVAL),
        thread_count: u64_at(bytes, header::THREADS),
        text: text_at(bytes, header::TEXT, layout::TEXT_SIZE),
    }
}

fn read_locations(bytes: &[u8]) -> HashMap<u32, Location> {
    let mut locations = HashMap::new();
    for index in 0..layout::LOCATIONS {
        let at = layout::LOCATIONS_AT + index * layout::LOCATION_SIZE;
        if u64_at(bytes, at) != 0 {
            let location = Location {
                file: text_at(bytes, at + layout::LOCATION_FILE, layout::FILE_SIZE),
                function: text_at(bytes, at + layout::LOCATION_FUNCTION, layout::FUNCTION_SIZE),
                line: u32_at(bytes, at + layout::LOCATION_LINE),
            };
            locations.insert(index as u32 + 1, location);
        }
    }
    locations
}

/// All nodes of the trie. A chain of parents is not checked to reach the root.
fn read_nodes(bytes: &[u8]) -> HashMap<u32, (u32, u32)> {
    let mut nodes = HashMap::new();
    for index in 0..layout::NODES {
        let word = u64_at(bytes, layout::NODES_AT + index * layout::NODE_SIZE);
        if word != 0 {
            nodes.insert(index as u32 + 1, ((word >> 32) as u32, word as u32));
        }
    }
    nodes
}

fn read_threads(bytes: &[u8]) -> (Vec<Thread>, Extent) {
    let mut chunks: Vec<(u64, usize)> = (layout::CHUNKS_AT..)
        .step_by(layout::CHUNK_SIZE)
        .take_while(|at| at + chunk::HEAD <= bytes.len())
        .map(|at| (u64_at(bytes, at + chunk::SEQUENCE), at))
        .filter(|&(sequence, _)| sequence != 0)
        .collect();
    chunks.sort_unstable();
    let count = u64::from(u32_at(bytes, header::CHUNKS));
    let is_overwritten = chunks.last().is_some_and(|&(sequence, _)| sequence > count);
    let kept = if is_overwritten { layout::kept_chunks(count) } else { 0 };
    let (start, rest) = chunks.split_at(chunks.partition_point(|&(sequence, _)| sequence <= kept));
    let mut threads: Vec<Thread> = Vec::new();
    let mut places: HashMap<(u32, u32), usize> = HashMap::new();
    read_chunks(bytes, start, &mut threads, &mut places);
    threads.iter_mut().for_each(set_start_apart);
    read_chunks(bytes, rest, &mut threads, &mut places);
    for (entry, tid) in silent_threads(bytes, &places) {
        threads.push(new_thread(bytes, (entry, tid), 0));
    }
    let start_until = threads
        .iter()
        .filter_map(|thread| thread.start.last())
        .map(|record| record.time)
        .min();
    let extent = Extent {
        from: if is_overwritten {
            first_time(bytes, latest_lap(rest, count - kept))
        } else {
            0
        },
        start_until: match start_until {
            _ if !is_overwritten => Nanos::MAX,
            None if kept == 0 => 0,
            until => until.unwrap_or(Nanos::MAX),
        },
    };
    threads.retain(|thread| thread.totals.is_some() || !thread.records.is_empty() || !thread.start.is_empty());
    threads.sort_by_key(|thread| thread.span.0);
    (threads, extent)
}

fn read_chunks(
    bytes: &[u8],
    chunks: &[(u64, usize)],
    threads: &mut Vec<Thread>,
    places: &mut HashMap<(u32, u32), usize>,
) {
    for &(_, at) in chunks {
        let key = (u32_at(bytes, at + chunk::THREAD), u32_at(bytes, at + chunk::TID));
        let place = *places.entry(key).or_insert_with(|| {
            threads.push(new_thread(bytes, key, u64_at(bytes, at + chunk::IDENT)));
            threads.len() - 1
        });
        append_records(&mut threads[place], bytes, at);
    }
}

/// Separates the records of the start. A thread that has filled its chunks of the start has continued in others,
/// which may be overwritten.
fn set_start_apart(thread: &mut Thread) {
    if thread.records.len().is_multiple_of(layout::RECORDS) {
        thread.start = std::mem::take(&mut thread.records);
    }
}

/// The chunks that were handed out in the lap of `lap` chunks that ends with the last one. An older chunk is left
/// only because its thread has been idle since: it does not show what the others did.
fn latest_lap(chunks: &[(u64, usize)], lap: u64) -> &[(u64, usize)] {
    let last = chunks.last().map_or(0, |&(sequence, _)| sequence);
    &chunks[chunks.partition_point(|&(sequence, _)| sequence.saturating_add(lap) <= last)..]
}

/// The time of the first record of all these chunks.
fn first_time(bytes: &[u8], chunks: &[(u64, usize)]) -> Nanos {
    let first = |at: usize| Record::unpack(u64_at(bytes, at + chunk::HEAD), 0);
    chunks
        .iter()
        .filter_map(|&(_, at)| first(at))
        .map(|record| record.time)
        .min()
        .unwrap_or(0)
}

/// Threads whose records are all overwritten, but whose totals are there.
fn silent_threads(bytes: &[u8], places: &HashMap<(u32, u32), usize>) -> Vec<(u32, u32)> {
    (1..=layout::THREADS as u32)
        .map(|entry| (entry, u32_at(bytes, entry_at(entry) + thread::TID)))
        .filter(|key| u64_at(bytes, entry_at(key.0)) != 0 && !places.contains_key(key))
        .collect()
}

fn entry_at(entry: u32) -> usize {
    layout::THREADS_AT + (entry as usize - 1) * layout::THREAD_SIZE
}

fn new_thread(bytes: &[u8], (entry, tid): (u32, u32), ident: u64) -> Thread {
    let mut result = Thread {
        ident,
        tid,
        entry,
        span: (Nanos::MAX, 0),
        ..Thread::default()
    };
    if entry == 0 || entry as usize > layout::THREADS {
        return result;
    }
    let at = entry_at(entry);
    if u64_at(bytes, at) == 0 || u32_at(bytes, at + thread::TID) != tid {
        return result; // the entry was reused by a later thread
    }
    result.ident = u64_at(bytes, at);
    result.has_ended = u32_at(bytes, at + thread::HAS_ENDED) != 0;
    result.span = (u64_at(bytes, at + thread::BEGAN), u64_at(bytes, at + thread::LAST));
    let mut totals = [0; 13];
    for (index, total) in totals.iter_mut().enumerate() {
        *total = u64_at(bytes, at + thread::HELD + index * 8);
    }
    result.totals = Some(totals);
    result
}

fn append_records(thread: &mut Thread, bytes: &[u8], at: usize) {
    for index in 0..layout::RECORDS {
        let record = at + chunk::HEAD + index * layout::RECORD_SIZE;
        if record + layout::RECORD_SIZE > bytes.len() {
            return;
        }
        let Some(record) = Record::unpack(u64_at(bytes, record), u64_at(bytes, record + 8)) else {
            return;
        };
        if thread.records.last().is_some_and(|last| last.time > record.time) {
            return;
        }
        thread.span = (thread.span.0.min(record.time), thread.span.1.max(record.time));
        thread.records.push(record);
    }
}

/// Gives each thread the latest name that was recorded for its identifier before it
/// ended: identifiers are used again.
fn give_names(bytes: &[u8], threads: &mut [Thread]) {
    let mut names: HashMap<u64, Vec<(Nanos, String)>> = HashMap::new();
    for index in 0..layout::NAMES {
        let at = layout::NAMES_AT + index * layout::NAME_SIZE;
        let ident = u64_at(bytes, at);
        if ident != 0 {
            let name = text_at(bytes, at + layout::NAME_TEXT, layout::NAME_TEXT_SIZE);
            names.entry(ident).or_default().push((u64_at(bytes, at + 8), name));
        }
    }
    for list in names.values_mut() {
        list.sort();
    }
    // A thread may run before the thread that started it has recorded its name. So threads of one
    // identifier are matched in their order if there are as many names.
    let mut by_ident: HashMap<u64, Vec<usize>> = HashMap::new();
    for (index, thread) in threads.iter().enumerate() {
        by_ident.entry(thread.ident).or_default().push(index);
    }
    for (ident, indices) in by_ident {
        let Some(list) = names.get(&ident) else { continue };
        for (order, index) in indices.iter().enumerate() {
            let from_end = indices.len() - order;
            let name = if list.len() == indices.len() {
                list.get(order)
            } else if indices.len() == 1 || from_end == 1 {
                list.last()
            } else {
                let until = threads[*index].span.1;
                list.iter().rev().find(|(time, _)| *time <= until)
            };
            threads[*index].name = name.map(|(_, name)| name.clone());
        }
    }
}
