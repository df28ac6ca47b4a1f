//! Reads the Python stack of the calling thread without running any Python.
//!
//! While a thread is in `take_gil` or `drop_gil`, its frames do not change: only the thread
//! itself changes them, they are chained from its thread state, and each keeps its code object
//! alive. Reading them takes only loads; `PyCode_Addr2Line` gives the line, which
//! allocates nothing.
//!
//! The offsets of the fields depend on CPython's version ([`FrameLayout`], by the headers of
//! each). They are checked first: [`calibrate`] reads the frame of its caller with checked reads
//! and compares it with the result of CPython's API. If they differ, no stacks are taken, and
//! everything else works.
//!
//! Must never: load from an address before `calibrate` has succeeded.

use super::buffer;
use super::tables::{self, Describe, mix};
use super::writer::{Writer, with_writer};
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use unsnarl_trace::layout;

/// Frames of one stack, the innermost ones.
const DEPTH: usize = 32;
/// Frames that are visited: some are the interpreter's own.
const LOOKS: usize = 96;
/// No code object is this long; an instruction pointer beyond it is invalid.
const CODE_MAX: usize = 1 << 26;
/// `PyObject.ob_type`, in builds with a GIL.
const OB_TYPE: usize = 8;
/// `co_filename` of the interpreter's own frames (3.12).
const SHIM: &[u8] = b"<shim>";
/// Low bits of a `_PyStackRef` (3.14).
const TAG_BITS: usize = 7;

/// Offsets of fields, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLayout {
    /// `PyThreadState.cframe` up to 3.12, where the current frame is found through it.
    pub cframe: Option<usize>,
    /// `current_frame`, of the thread state or of `_PyCFrame`.
    pub current_frame: usize,
    /// `_PyInterpreterFrame.f_code` or `.f_executable`.
    pub code: usize,
    /// `_PyInterpreterFrame.previous`.
    pub previous: usize,
    /// `_PyInterpreterFrame.prev_instr` or `.instr_ptr`.
    pub instruction: usize,
    /// `PyCodeObject.co_filename`.
    pub filename: usize,
    /// `PyCodeObject.co_qualname`.
    pub qualname: usize,
    /// `PyCodeObject.co_firstlineno`.
    pub first_line: usize,
    /// `PyCodeObject.co_code_adaptive`.
    pub bytecode: usize,
}

/// The functions of the interpreter that reading a stack needs; none allocates.
#[derive(Debug, Clone, Copy)]
pub struct FrameApi {
    /// `PyGILState_GetThisThreadState`
    pub thread_state: unsafe extern "C" fn() -> *mut libc::c_void,
    /// `PyCode_Addr2Line`
    pub line: unsafe extern "C" fn(*mut libc::c_void, libc::c_int) -> libc::c_int,
    /// `PyUnicode_GetLength`
    pub length: unsafe extern "C" fn(*mut libc::c_void) -> isize,
    /// `PyUnicode_ReadChar`
    pub character: unsafe extern "C" fn(*mut libc::c_void, isize) -> u32,
    /// Address of `PyCode_Type`.
    pub code_type: usize,
    /// Offsets of the fields.
    pub layout: FrameLayout,
}

static API: OnceLock<FrameApi> = OnceLock::new();

/// A way to read memory: directly, or checked.
trait Memory {
    fn read(&self, address: usize) -> Option<usize>;
}

/// Plain loads.
struct Direct;

impl Memory for Direct {
    fn read(&self, address: usize) -> Option<usize> {
        if address < 4096 || !address.is_multiple_of(8) {
            return None;
        }
        // SAFETY: `calibrate` has shown that the chain of pointers from the thread
        // state is as expected; this file's header says why it does not change.
        Some(unsafe { (address as *const usize).read() })
    }
}

/// Reads that fail where there is no memory.
struct Checked(std::fs::File);

impl Memory for Checked {
    fn read(&self, address: usize) -> Option<usize> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, address as u64).ok()?;
        Some(usize::from_ne_bytes(bytes))
    }
}

#[derive(Clone, Copy)]
struct Frame {
    code: usize,
    /// Offset in the bytecode, in bytes.
    instruction: usize,
}

/// Walks the frames of a thread, innermost first, until `visit` returns false.
fn walk(memory: &impl Memory, api: &FrameApi, thread_state: usize, mut visit: impl FnMut(Frame) -> bool) -> Option<()> {
    let at = &api.layout;
    let holder = match at.cframe {
        Some(cframe) => memory.read(thread_state + cframe)?,
        None => thread_state,
    };
    let mut frame = memory.read(holder + at.current_frame)?;
    for _ in 0..LOOKS {
        if frame == 0 {
            return Some(());
        }
        let code = memory.read(frame + at.code)? & !TAG_BITS;
        if code != 0 && memory.read(code + OB_TYPE)? == api.code_type {
            let instruction = memory.read(frame + at.instruction)?.wrapping_sub(code + at.bytecode);
            let instruction = if instruction < CODE_MAX { instruction } else { 0 };
            if !visit(Frame { code, instruction }) {
                return Some(());
            }
        }
        frame = memory.read(frame + at.previous)?;
    }
    Some(())
}

/// Tells the sampler, through the file, that frames can be read; while they cannot, does nothing.
pub(super) fn announce() {
    if let Some(api) = API.get() {
        buffer::set64(layout::header::CODE_TYPE, api.code_type as u64);
    }
}

/// The address of the calling thread's state, or 0 while frames cannot be read.
pub(super) fn own_state() -> usize {
    let Some(api) = API.get() else { return 0 };
    // SAFETY: callable by any thread; null for one that has no thread state.
    unsafe { (api.thread_state)() as usize }
}

/// The node of the calling thread's stack; 0 if it has none, or if the tables have no room for all of it:
/// without its inner frames it would name a caller's line.
///
/// The thread holds the GIL, or is dropping or taking it.
pub(super) fn own_stack() -> u32 {
    let Some(api) = API.get() else { return 0 };
    // SAFETY: callable by any thread; null for one that has no thread state.
    let thread_state = unsafe { (api.thread_state)() };
    if thread_state.is_null() {
        return 0;
    }
    let mut locations = [0; DEPTH];
    let mut depth = 0;
    let mut has_room = true;
    let _ = walk(&Direct, api, thread_state as usize, |frame| {
        if let Some(location) = locate(api, frame) {
            has_room = location != 0;
            locations[depth] = location;
            depth += 1;
        }
        has_room && depth < DEPTH
    });
    if has_room {
        tables::stack(&locations[..depth])
    } else {
        0
    }
}

/// The number of a frame's line, 0 if the table has no room for it; `None` for a frame without a file and
/// a function name, and for one of the interpreter's own.
fn locate(api: &FrameApi, frame: Frame) -> Option<u32> {
    let field = |offset| Direct.read(frame.code + offset).unwrap_or(0);
    let (file, function) = (field(api.layout.filename), field(api.layout.qualname));
    if file == 0 || function == 0 || is_shim(api, file) {
        return None;
    }
    // The texts are part of the fingerprint, since the address of a code object may be used again.
    let fingerprint = [
        frame.code,
        frame.instruction,
        file,
        function,
        field(api.layout.first_line & !7),
    ]
    .iter()
    .fold(2, |mixed, &part| mix(mixed, part as u64));
    let described = Described {
        api,
        frame,
        file,
        function,
    };
    Some(tables::location(fingerprint, 0, &described))
}

/// Whether a file name is that of the frame that CPython 3.12 puts below each call from C
/// (`_PyCode_New` of `interpreter_trampoline`, in `init_interp_main`): no line of the program.
fn is_shim(api: &FrameApi, file: usize) -> bool {
    // SAFETY: a `str` that the code object keeps alive.
    let length = unsafe { (api.length)(file as *mut _) };
    length == SHIM.len().cast_signed() && Text::new(api, file).eq(SHIM.iter().copied())
}

struct Described<'a> {
    api: &'a FrameApi,
    frame: Frame,
    file: usize,
    function: usize,
}

impl Describe for Described<'_> {
    fn line(&self) -> u32 {
        // SAFETY: a code object that its frame keeps alive.
        let line = unsafe { (self.api.line)(self.frame.code as *mut _, self.frame.instruction as libc::c_int) };
        u32::try_from(line).unwrap_or(0)
    }
    fn file(&self) -> impl Iterator<Item = u8> {
        Text::new(self.api, self.file)
    }
    fn function(&self) -> impl Iterator<Item = u8> {
        Text::new(self.api, self.function)
    }
    fn skip(&self) -> usize {
        self.file().count().saturating_sub(layout::FILE_SIZE - 1)
    }
}

/// The UTF-8 of a `str`.
struct Text<'a> {
    api: &'a FrameApi,
    text: usize,
    at: isize,
    length: isize,
    pending: [u8; 4],
    left: usize,
}

impl<'a> Text<'a> {
    fn new(api: &'a FrameApi, text: usize) -> Self {
        // SAFETY: a `str` that the code object keeps alive.
        let length = unsafe { (api.length)(text as *mut _) };
        Self {
            api,
            text,
            at: 0,
            length: length.min(4096),
            pending: [0; 4],
            left: 0,
        }
    }
}

impl Iterator for Text<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if self.left == 0 {
            if self.at >= self.length {
                return None;
            }
            // SAFETY: as above, and the index is within the text.
            let code = unsafe { (self.api.character)(self.text as *mut _, self.at) };
            self.at += 1;
            let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
            self.left = character.encode_utf8(&mut self.pending).len();
            self.pending[..self.left].reverse();
        }
        self.left -= 1;
        Some(self.pending[self.left])
    }
}

/// Checks the offsets in `api`: `code` and `line` are those of the calling thread's innermost
/// Python frame. Returns whether stacks will be taken.
#[must_use]
pub fn calibrate(api: FrameApi, code: usize, line: i32) -> bool {
    let Ok(file) = std::fs::File::open("/proc/self/mem") else {
        return false;
    };
    // SAFETY: callable by any thread.
    let thread_state = unsafe { (api.thread_state)() } as usize;
    let mut innermost = None;
    let walked = walk(&Checked(file), &api, thread_state, |frame| {
        innermost = Some(frame);
        false
    });
    let Some((frame, ())) = innermost.zip(walked) else {
        return false;
    };
    if frame.code != code {
        return false;
    }
    // SAFETY: the code object is the caller's own.
    let found = unsafe { (api.line)(frame.code as *mut _, frame.instruction as libc::c_int) };
    let is_right = found == line && API.get_or_init(|| api).code_type == api.code_type;
    if is_right {
        with_writer(Writer::note_holder);
        announce();
    }
    is_right
}
