//! Reads the stacks of the processes that record into a directory, from outside, some hundred times a second.
//!
//! A thread that computes alone is never interrupted, so its recorder takes no stack. The sampler reads the frames of
//! the thread that took the GIL last through `/proc/PID/mem`: the process is not stopped, and runs nothing for it. Its
//! frames may change meanwhile, so each value is checked: a code object by its type, a stack by its innermost frame,
//! which must be the same before and after. A wrong sample is improbable, and does not harm the program.
//!
//! What threads wait for in system calls is read more rarely ([`blocked`]).
//!
//! Must never: write to another process, or read one of another interpreter, whose offsets are unknown. Invariant: what
//! is kept of a process is bounded ([`unsnarl_trace::collected`]): whenever every other sample is dropped, the rate is halved.

mod blocked;
mod delays;
mod modes;
mod sockets;
mod stuck;

use crate::trace::LAYOUT;
use delays::Delays;
pub(crate) use delays::own_wait_ns;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use stuck::Stuck;
use unsnarl_trace::collected::Collected;
use unsnarl_trace::layout::{self, header, thread};
use unsnarl_trace::line_table::line_at;
use unsnarl_trace::samples::Samples;

/// Suffix of the recordings, and of the samples next to each.
const RECORDING: &str = "trace";
const SAMPLES: &str = "samples";
/// Microseconds between two rounds: the least, and how much chance adds, so that no period of a program, and no switch
/// interval, keeps pace with the rounds.
const LEAST_PAUSE_US: u64 = 3000;
const MORE_PAUSE_US: u64 = 4000;
/// After so long a round also reads what blocked threads wait for, of at most so many threads: every fifth round, or each
/// one where the sampler itself seldom gets a processor.
const BLOCKED_PAUSE: Duration = Duration::from_millis(25);
const MOST_BLOCKED: usize = 32;
/// How often the directory is searched for new processes.
const SEARCH: Duration = Duration::from_millis(20);
/// Frames of one stack, the innermost ones, as the recorder takes.
const DEPTH: usize = 32;
/// Frames that are visited: some are the interpreter's own.
const LOOKS: usize = 96;
/// Attempts at one stack whose frames change meanwhile.
const TRIES: usize = 3;
/// No code object is this long.
const CODE_MAX: u64 = 1 << 26;
/// The longest line table that is read.
const TABLE_MAX: usize = 1 << 20;
/// Code objects that are remembered.
const MOST_CODES: usize = 1 << 14;
/// `PyObject.ob_type`, `PyVarObject.ob_size`, `PyBytesObject.ob_sval`.
const OB_TYPE: usize = 8;
const OB_SIZE: u64 = 16;
const BYTES_AT: u64 = 32;
/// `PyCodeObject.co_linetable` follows `co_qualname`.
const LINE_TABLE: usize = LAYOUT.qualname + 8;
/// Bytes of a code object that are read.
const CODE_HEAD: usize = LINE_TABLE + 8;
/// Bytes of a frame that are read.
const FRAME_HEAD: usize = 64;
/// `PyASCIIObject.state`, and the bits in it: kind (three), compact, ascii.
const TEXT_STATE: usize = 32;
const KIND_SHIFT: u32 = 2;
const COMPACT: u32 = 1 << 5;
const ASCII: u32 = 1 << 6;
/// Where the characters of a `str` begin: CPython 3.11 still has `wstr`.
const ASCII_AT: u64 = if cfg!(Py_3_12) { 40 } else { 48 };
const COMPACT_AT: u64 = if cfg!(Py_3_12) { 56 } else { 72 };
/// Characters of a text that are read; the recorder's tables hold fewer.
const TEXT_MAX: u64 = 4096;
/// Low bits of a `_PyStackRef` (3.14).
const TAG_BITS: u64 = 7;
/// `co_filename` of the interpreter's own frames (3.12).
const SHIM: &str = "<shim>";

/// Read stacks of all processes that record into a directory, until `stop`.
#[pyclass(frozen, module = "unsnarl._native")]
pub(crate) struct TraceSampler {
    directory: PathBuf,
    is_stopped: AtomicBool,
}

#[pymethods]
impl TraceSampler {
    #[new]
    fn new(directory: OsString) -> Self {
        Self {
            directory: directory.into(),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// Read stacks until another thread calls `stop`, and write them next to the recordings.
    fn run(&self, py: Python<'_>) {
        py.detach(|| self.sample());
    }

    /// End `run` within some milliseconds.
    fn stop(&self) {
        self.is_stopped.store(true, Relaxed);
    }
}

impl TraceSampler {
    fn sample(&self) {
        let Ok(interpreter) = identity("/proc/self/exe") else {
            return;
        };
        let mut targets: Vec<Target> = Vec::new();
        let mut searched: Option<Instant> = None;
        let mut random = Random(u64::from(std::process::id()) | 1);
        let mut round = 0_u64;
        while !self.is_stopped.load(Relaxed) {
            if searched.is_none_or(|at| at.elapsed() >= SEARCH) {
                self.search(interpreter, &mut targets);
                searched = Some(Instant::now());
            }
            for target in &mut targets {
                target.sample(round);
                target.sample_blocked_in_time();
            }
            round += 1;
            std::thread::sleep(Duration::from_micros(LEAST_PAUSE_US + random.below(MORE_PAUSE_US)));
        }
        for target in &targets {
            target.write();
        }
    }

    /// Adds the processes whose recordings are new. One that began another recording has executed another program.
    fn search(&self, interpreter: (u64, u64), targets: &mut Vec<Target>) {
        let Ok(entries) = std::fs::read_dir(&self.directory) else {
            return;
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.extension().is_none_or(|suffix| suffix != RECORDING) || targets.iter().any(|one| one.path == path) {
                continue;
            }
            if let Some(target) = Target::open(&path, interpreter) {
                for earlier in targets.iter_mut().filter(|one| one.pid == target.pid) {
                    earlier.memory = None;
                }
                targets.push(target);
            }
        }
    }
}

/// Device and inode of a file.
fn identity(path: &str) -> std::io::Result<(u64, u64)> {
    std::fs::metadata(path).map(|data| (data.dev(), data.ino()))
}

/// Numbers without a pattern (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// The parts of a code object that give a line.
struct Code {
    file: String,
    function: String,
    table: Vec<u8>,
    first_line: u32,
}

/// One process: its recording, its memory, and what was read of it.
struct Target {
    path: PathBuf,
    recording: File,
    pid: u32,
    /// `None` once the process has ended, or where its memory cannot be read.
    memory: Option<File>,
    started: u64,
    /// One round in so many is sampled.
    every: u64,
    /// When it was last read what blocked threads wait for, and their names.
    blocked: Option<Instant>,
    names: blocked::Names,
    /// By the words that identify a code object, since an address may be used again. `None` for a frame without a line.
    codes: HashMap<[u64; 5], Option<Code>>,
    collected: Collected,
    delays: Delays,
}

impl Target {
    /// Opens a recording whose process runs this interpreter; `None` if it does not, or has not begun.
    fn open(path: &Path, interpreter: (u64, u64)) -> Option<Self> {
        let recording = File::open(path).ok()?;
        let mut magic = [0; layout::MAGIC.len()];
        recording.read_exact_at(&mut magic, 0).ok()?;
        let pid = word(&recording, header::PID as u64)? as u32;
        if magic != layout::MAGIC || identity(&format!("/proc/{pid}/exe")).ok()? != interpreter {
            return None;
        }
        Some(Self {
            path: path.to_path_buf(),
            pid,
            memory: File::open(format!("/proc/{pid}/mem")).ok(),
            started: word(&recording, header::STARTED as u64)?,
            recording,
            every: 1,
            blocked: None,
            names: blocked::Names::default(),
            codes: HashMap::new(),
            collected: Collected::default(),
            delays: Delays::default(),
        })
    }

    /// Reads one stack, of the thread that took the GIL last.
    fn sample(&mut self, round: u64) {
        if self.memory.is_none() || !round.is_multiple_of(self.every) {
            return;
        }
        let Some((entry, state, code_type)) = self.holder() else {
            return;
        };
        let Some(memory) = self.memory.take() else { return };
        for _ in 0..TRIES {
            let time = monotonic_ns().saturating_sub(self.started);
            let Some(frames) = stack(&memory, state, code_type) else {
                break;
            };
            if frames.is_empty() {
                continue; // they have changed meanwhile
            }
            if let Some(node) = self.place(&memory, &frames) {
                self.collected.take(time, entry, node);
            }
            break;
        }
        self.memory = Some(memory);
        if self.collected.thin_out() {
            self.every *= 2;
        }
    }

    fn sample_blocked_in_time(&mut self) {
        let pause = BLOCKED_PAUSE * u32::try_from(self.every).unwrap_or(u32::MAX);
        if self.blocked.is_none_or(|at| at.elapsed() >= pause) {
            self.blocked = Some(Instant::now());
            self.sample_blocked();
        }
    }

    /// Reads what the threads wait for that are blocked in a system call.
    fn sample_blocked(&mut self) {
        let Some(memory) = &self.memory else { return };
        let count = word(&self.recording, header::THREADS as u64).unwrap_or(0);
        let count = (count as usize).min(layout::THREADS);
        let mut table = vec![0; count * layout::THREAD_SIZE];
        if self
            .recording
            .read_exact_at(&mut table, layout::THREADS_AT as u64)
            .is_err()
        {
            return;
        }
        let alive = (1..)
            .zip(table.chunks_exact(layout::THREAD_SIZE))
            .filter(|(_, thread)| word_in(thread, thread::IDENT) != 0 && half_in(thread, thread::HAS_ENDED) == 0);
        let mut stuck = Vec::new();
        for (entry, own) in alive.take(MOST_BLOCKED) {
            let (state, last) = (word_in(own, thread::STATE), word_in(own, thread::LAST));
            stuck.push((entry, Stuck { state, last }));
            let time = monotonic_ns().saturating_sub(self.started);
            let tid = half_in(own, thread::TID);
            let has_lacked = self.delays.has_lacked(self.pid, tid);
            if let Some(name) = self.names.of_thread(memory, self.pid, tid, has_lacked) {
                self.collected.wait(time, entry, name);
            }
        }
        self.sample_stuck(&stuck);
    }

    /// The entry and the thread state of the thread that took the GIL last, and the address of `PyCode_Type`.
    fn holder(&self) -> Option<(u32, u64, u64)> {
        let code_type = word(&self.recording, header::CODE_TYPE as u64)?;
        let entry = word(&self.recording, header::HOLDER as u64)?;
        if code_type == 0 || entry == 0 || entry > layout::THREADS as u64 {
            return None;
        }
        let at = layout::THREADS_AT as u64 + (entry - 1) * layout::THREAD_SIZE as u64;
        let has_ended = word(&self.recording, at + thread::TID as u64)? >> 32 != 0;
        let state = word(&self.recording, at + thread::STATE as u64)?;
        (state != 0 && !has_ended).then_some((entry as u32, state, code_type))
    }

    /// The node of a stack, the innermost frame first.
    fn place(&mut self, memory: &File, frames: &[(u64, u64)]) -> Option<u32> {
        let mut locations = Vec::with_capacity(frames.len());
        for &(code, instruction) in frames {
            if let Some(location) = self.locate(memory, code, instruction)? {
                locations.push(location);
            }
        }
        self.collected.node(&locations)
    }

    /// The number of a frame's line; `Some(None)` for a frame of the interpreter's own; `None` if it cannot be read.
    #[allow(clippy::option_option, reason = "the two are different answers")]
    fn locate(&mut self, memory: &File, address: u64, instruction: u64) -> Option<Option<u32>> {
        let mut head = [0; CODE_HEAD];
        memory.read_exact_at(&mut head, address).ok()?;
        let [file, function, table] = [LAYOUT.filename, LAYOUT.qualname, LINE_TABLE].map(|at| word_in(&head, at));
        let first_line = half_in(&head, LAYOUT.first_line);
        let key = [address, file, function, table, u64::from(first_line)];
        if self.codes.len() >= MOST_CODES {
            self.codes.clear();
        }
        if let Entry::Vacant(place) = self.codes.entry(key) {
            let code = Code {
                file: tail(&text(memory, file)?, layout::FILE_SIZE - 1),
                function: start(&text(memory, function)?, layout::FUNCTION_SIZE - 1),
                table: bytes(memory, table)?,
                first_line,
            };
            place.insert((code.file != SHIM).then_some(code));
        }
        let Some(Some(code)) = self.codes.get(&key) else {
            return Some(None);
        };
        let offset = instruction.wrapping_sub(address + LAYOUT.bytecode as u64);
        let offset = if offset < CODE_MAX { offset as usize } else { 0 };
        let line = line_at(&code.table, code.first_line, offset).unwrap_or(0);
        let location = (code.file.clone(), code.function.clone(), line);
        self.collected.location(location).map(Some)
    }

    /// Writes the samples next to the recording. If that fails, lines are missing from the report.
    fn write(&self) {
        if let Ok(text) = serde_json::to_vec(self.collected.samples())
            && let Ok(mut file) = File::create_new(self.path.with_extension(SAMPLES))
        {
            let _ = file.write_all(&text);
        }
    }
}

/// The samples next to a recording; none if there are none, or unreadable ones.
pub(crate) fn of_recording(path: &Path) -> Samples {
    std::fs::read(path.with_extension(SAMPLES))
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

/// Code object and instruction of each frame, the innermost first. Empty if the innermost frame was another one
/// afterwards; `None` if memory cannot be read.
fn stack(memory: &File, state: u64, code_type: u64) -> Option<Vec<(u64, u64)>> {
    let innermost = || match LAYOUT.cframe {
        Some(cframe) => word(
            memory,
            word(memory, state + cframe as u64)? + LAYOUT.current_frame as u64,
        ),
        None => word(memory, state + LAYOUT.current_frame as u64),
    };
    let first = innermost()?;
    let mut frames = Vec::with_capacity(DEPTH);
    let mut frame = first;
    for _ in 0..LOOKS {
        if frame == 0 || frames.len() == DEPTH {
            break;
        }
        let mut head = [0; FRAME_HEAD];
        memory.read_exact_at(&mut head, frame).ok()?;
        let code = word_in(&head, LAYOUT.code) & !TAG_BITS;
        if code != 0 && word(memory, code + OB_TYPE as u64)? == code_type {
            frames.push((code, word_in(&head, LAYOUT.instruction)));
        }
        frame = word_in(&head, LAYOUT.previous);
    }
    Some(if innermost()? == first { frames } else { Vec::new() })
}

fn word(file: &File, at: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, at).ok()?;
    Some(u64::from_ne_bytes(bytes))
}

fn word_in(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..at + 8)
        .and_then(|slice| slice.try_into().ok())
        .map_or(0, u64::from_ne_bytes)
}

fn half_in(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 4)
        .and_then(|slice| slice.try_into().ok())
        .map_or(0, u32::from_ne_bytes)
}

/// The content of a `bytes`.
fn bytes(memory: &File, address: u64) -> Option<Vec<u8>> {
    let size = usize::try_from(word(memory, address + OB_SIZE)?).ok()?;
    let mut content = vec![0; (size <= TABLE_MAX).then_some(size)?];
    memory.read_exact_at(&mut content, address + BYTES_AT).ok()?;
    Some(content)
}

/// The characters of a `str`.
fn text(memory: &File, address: u64) -> Option<String> {
    let mut head = [0; TEXT_STATE + 4];
    memory.read_exact_at(&mut head, address).ok()?;
    let length = word_in(&head, OB_SIZE as usize).min(TEXT_MAX) as usize;
    let state = half_in(&head, TEXT_STATE);
    let at = address + if state & ASCII == 0 { COMPACT_AT } else { ASCII_AT };
    let width = state >> KIND_SHIFT & 7;
    if state & COMPACT == 0 || ![1, 2, 4].contains(&width) {
        return None;
    }
    let mut content = vec![0; length * width as usize];
    memory.read_exact_at(&mut content, at).ok()?;
    let character = |bytes: &[u8]| {
        let code = bytes.iter().rev().fold(0, |code, &byte| code << 8 | u32::from(byte));
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    Some(content.chunks_exact(width as usize).map(character).collect())
}

/// The first bytes of a text, as the recorder's tables keep them.
fn start(text: &str, size: usize) -> String {
    String::from_utf8_lossy(&text.as_bytes()[..text.len().min(size)]).into_owned()
}

/// The last bytes of a text, likewise.
fn tail(text: &str, size: usize) -> String {
    String::from_utf8_lossy(&text.as_bytes()[text.len().saturating_sub(size)..]).into_owned()
}

/// The moment on CLOCK_MONOTONIC, in nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// The processor time of this thread, in nanoseconds; reading it costs a system call.
pub(crate) fn processor_ns() -> u64 {
    read_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}
