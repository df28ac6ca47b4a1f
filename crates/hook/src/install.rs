//! Installs and uninstalls the scheduler in a running interpreter.
//!
//! The GIL's condvars and mutex are learned by provoking a wait: while this thread
//! holds the GIL, a probe thread asks for it; what it waits on is `gil.cond`, and
//! what it signals once it has the GIL is `gil.switch_cond`. No offset into a
//! structure of CPython is known here.
//!
//! Invariants: whatever fails, the slots are as they were; what is installed is
//! only looked at and changed with the GIL held; an installation, which gives the
//! GIL up on its way, has the `Turn`, and nobody waits for a turn with the GIL.

pub(crate) mod attach;

use crate::cond::{notify_all, with_mutex};
use crate::error::Unsupported;
use crate::gil::{self, COND, MUTEX, SWITCH_COND};
use crate::hooked::{self, Purpose};
use crate::object::LoadedObject;
use crate::slots::Slots;
use crate::thread::{self, CAPACITY, with_own};
use crate::{fork, kernel, processors, record};
use libc::{c_int, c_void, pthread_cond_t, pthread_mutex_t};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::time::Duration;
use unsnarl_policy::{Config, Nanos, Policy};

pub(crate) use crate::slice::observe as observe_slice;

/// How long a provoked wait may take: microseconds, and seconds on a machine that lets
/// the probe's thread wait for a processor. It is generous because who gives up too early
/// calls a fit interpreter unsupported; an unfit one mostly lacks the slots already.
const PROBE_PATIENCE: Duration = Duration::from_secs(30);
/// Pause between two looks at what the probe has provoked.
const PROBE_PAUSE: Duration = Duration::from_micros(20);
/// Rounds of writing the slots against late fix-ups of the dynamic linker.
const WRITE_ROUNDS: u32 = 8;

/// The functions of the interpreter that the installation needs.
#[derive(Debug, Clone, Copy)]
pub struct PythonApi {
    /// `PyGILState_Ensure`
    pub ensure: unsafe extern "C-unwind" fn() -> c_int,
    /// `PyGILState_Release`
    pub release: unsafe extern "C-unwind" fn(c_int),
    /// `PyEval_SaveThread`
    pub save_thread: unsafe extern "C-unwind" fn() -> *mut c_void,
    /// `PyEval_RestoreThread`
    pub restore_thread: unsafe extern "C-unwind" fn(*mut c_void),
    /// The function behind `_posixsubprocess.fork_exec`, which may be in an object
    /// of its own; null if it cannot be had.
    pub fork_exec: *const c_void,
    /// Whether the interpreter is ending: no other thread gets the GIL any more.
    pub is_ending: bool,
}

// SAFETY: the pointer is the address of a function, and only compared with others.
unsafe impl Send for PythonApi {}

/// What the user can choose.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Initial slice of CPU-bound threads (`sys.getswitchinterval()`).
    pub slice_ns: Nanos,
    /// Whether the kernel is told which threads are CPU-bound.
    pub kernel_hints: bool,
}

struct Installed(UnsafeCell<Option<Slots>>);
// SAFETY: only `installed` and `recorded` reach a cell, and their callers hold the GIL.
unsafe impl Sync for Installed {}
static INSTALLED: Installed = Installed(UnsafeCell::new(None));
static RECORDED: Installed = Installed(UnsafeCell::new(None));

/// The slots that are replaced, while the scheduler or the recorder is at work.
///
/// # Safety
/// The caller holds the GIL of the main interpreter, and drops the reference
/// before it gives the GIL up.
#[allow(clippy::mut_from_ref)]
unsafe fn installed() -> &'static mut Option<Slots> {
    // SAFETY: exclusive by the caller's promise.
    unsafe { &mut *INSTALLED.0.get() }
}

/// The slots that are replaced for the recorder alone, while it is at work.
///
/// # Safety
/// As for [`installed`].
#[allow(clippy::mut_from_ref)]
unsafe fn recorded() -> &'static mut Option<Slots> {
    // SAFETY: exclusive by the caller's promise.
    unsafe { &mut *RECORDED.0.get() }
}

static IS_CHANGING: AtomicBool = AtomicBool::new(false);

/// The right to install or uninstall; one thread has it at a time.
struct Turn;

impl Turn {
    /// Waits for it without the GIL: the thread that has it may want the GIL.
    fn wait(api: &PythonApi) -> Self {
        // ORDERING: Acquire pairs with the Release in `drop`.
        while IS_CHANGING.swap(true, Acquire) {
            if api.is_ending {
                // Whoever had it hangs without the GIL, for ever.
                break;
            }
            attach::without_gil(api, || std::thread::sleep(PROBE_PAUSE));
        }
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        IS_CHANGING.store(false, Release);
    }
}

/// Ends an installation that a fork has cut short: the thread that was at it does
/// not exist in the child. The hooks that it left in place pass through.
pub(crate) fn restart_in_child() {
    if IS_CHANGING.swap(false, Relaxed) {
        IS_LEARNING.store(false, Relaxed);
        COND.store(std::ptr::null_mut(), Relaxed);
    }
}

static IS_LEARNING: AtomicBool = AtomicBool::new(false);
static SEEN_COND: AtomicPtr<pthread_cond_t> = AtomicPtr::new(std::ptr::null_mut());
static SEEN_MUTEX: AtomicPtr<pthread_mutex_t> = AtomicPtr::new(std::ptr::null_mut());
static SEEN_SWITCH: AtomicPtr<pthread_cond_t> = AtomicPtr::new(std::ptr::null_mut());

/// Installs the scheduler; does nothing if it is installed.
///
/// The calling thread holds the GIL of the main interpreter; it gives it up and
/// takes it again meanwhile.
///
/// # Errors
/// [`Unsupported`], with the interpreter as it was before.
pub fn install(api: &PythonApi, options: &Options) -> Result<(), Unsupported> {
    let _turn = Turn::wait(api);
    if gil::is_active() {
        return Ok(());
    }
    refuse_at_the_end(api)?;
    prepare(options)?;
    redirect(api, || activate(api, options))
}

/// Has the slots replaced, and the GIL's condvars known, for `begin`; whatever fails,
/// the slots are as they were.
fn redirect(api: &PythonApi, begin: impl FnOnce() -> Result<(), Unsupported>) -> Result<(), Unsupported> {
    // SAFETY: the caller holds the GIL.
    if unsafe { installed() }.is_some() {
        return begin().inspect_err(|_| deactivate());
    }
    let slots = find_slots(api)?;
    let learned = slots
        .replace()
        .and_then(|()| learn(api))
        .and_then(|()| begin())
        .and_then(|()| settle(&slots));
    if let Err(error) = learned {
        deactivate();
        slots.restore()?;
        return Err(error);
    }
    // SAFETY: the caller holds the GIL, and this thread has taken it again.
    *unsafe { installed() } = Some(slots);
    Ok(())
}

/// A probe would never get the GIL.
fn refuse_at_the_end(api: &PythonApi) -> Result<(), Unsupported> {
    if !api.is_ending {
        return Ok(());
    }
    Err(Unsupported::new(
        "the interpreter is ending: no thread gets its GIL any more",
        "begin before the program's last line",
    ))
}

fn interpreter(api: &PythonApi) -> Result<LoadedObject, Unsupported> {
    LoadedObject::containing(api.restore_thread as *const () as usize).ok_or_else(|| {
        Unsupported::new(
            "the object that contains the interpreter was not found",
            "report it with the output of `ldd $(which python)`",
        )
    })
}

/// Uninstalls the scheduler; says whether it was installed. The calling thread
/// holds the GIL of the main interpreter.
///
/// # Errors
/// [`Unsupported`] if the slots cannot be written; the hooks pass through then.
pub fn uninstall(api: &PythonApi) -> Result<bool, Unsupported> {
    let _turn = Turn::wait(api);
    let was_active = gil::is_active();
    deactivate();
    release()?;
    Ok(was_active)
}

/// Restores the slots once neither the scheduler nor the recorder is at work.
fn release() -> Result<(), Unsupported> {
    if gil::is_active() || record::is_recording() {
        return Ok(());
    }
    // SAFETY: the caller holds the GIL.
    match unsafe { installed() }.take() {
        Some(slots) => slots.restore(),
        None => Ok(()),
    }
}

/// Starts to record into a new file, with the scheduler or without. The calling thread
/// holds the GIL of the main interpreter; it gives it up and takes it again meanwhile.
///
/// # Errors
/// [`Unsupported`] if the slots cannot be replaced or the file cannot be made; the
/// interpreter is as it was before.
pub fn start_recording(api: &PythonApi, destination: &record::Destination) -> Result<(), Unsupported> {
    let _turn = Turn::wait(api);
    if record::is_recording() {
        return Err(Unsupported::new("a recording is on already", "stop it first"));
    }
    refuse_at_the_end(api)?;
    thread::prepare()?;
    fork::register()?;
    redirect(api, || {
        let own = Slots::find(&interpreter(api)?, &hooked::replacements(&[Purpose::Recording]))?;
        own.replace()
            .and_then(|()| settle(&own))
            .or_else(|error| own.restore().and(Err(error)))?;
        if let Err(error) = record::create(destination, gil::is_active()) {
            own.restore()?;
            return Err(Unsupported::new(
                format!("the trace file cannot be made: {error}"),
                "name a directory with room that can be written to",
            ));
        }
        // SAFETY: the caller holds the GIL.
        *unsafe { recorded() } = Some(own);
        record::begin(SEEN_COND.load(Relaxed), SEEN_SWITCH.load(Relaxed));
        Ok(())
    })
}

/// Ends the recording; says whether there was one. The calling thread holds the GIL of
/// the main interpreter.
///
/// # Errors
/// [`Unsupported`] if the slots cannot be written; the hooks pass through then.
pub fn stop_recording(api: &PythonApi) -> Result<bool, Unsupported> {
    let _turn = Turn::wait(api);
    let was_recording = record::is_recording();
    record::finish();
    // SAFETY: the caller holds the GIL.
    if let Some(slots) = (unsafe { recorded() }).take() {
        slots.restore()?;
    }
    release()?;
    Ok(was_recording)
}

/// Whether the scheduler is installed and all its slots are in place. The calling
/// thread holds the GIL of the main interpreter.
#[must_use]
pub fn is_installed() -> bool {
    // SAFETY: the caller holds the GIL.
    gil::is_active() && unsafe { installed() }.as_ref().is_some_and(Slots::is_intact)
}

/// The slots of the interpreter, and those through which it starts programs.
fn find_slots(api: &PythonApi) -> Result<Slots, Unsupported> {
    let object = interpreter(api)?;
    let mut slots = Slots::find(
        &object,
        &hooked::replacements(&[Purpose::Gil, Purpose::Locks, Purpose::Starts]),
    )?;
    let subprocess = LoadedObject::containing(api.fork_exec.addr());
    if let Some(subprocess) = subprocess.filter(|subprocess| *subprocess != object) {
        slots.append(Slots::find(&subprocess, &hooked::replacements(&[Purpose::Starts]))?);
    }
    Ok(slots)
}

fn prepare(options: &Options) -> Result<(), Unsupported> {
    // SAFETY: no hook is active, so nobody else uses the policy.
    if unsafe { gil::policy() }.is_none() {
        let config = Config {
            slice_ns: options.slice_ns,
            ..Config::default()
        };
        // SAFETY: as above.
        unsafe { gil::set_policy(Policy::new(config, CAPACITY)) };
    }
    thread::prepare()?;
    fork::register()?;
    processors::refresh();
    kernel::enable(options.kernel_hints);
    Ok(())
}

/// Called from the hooks for every timed wait that is not the scheduled GIL's.
pub(crate) fn notice_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) {
    if IS_LEARNING.load(Relaxed) && with_own(|own| own.is_probe.get()) {
        SEEN_MUTEX.store(mutex, Relaxed);
        // ORDERING: Release publishes the mutex to `learn`.
        SEEN_COND.store(cond, Release);
    }
}

/// Called from the hooks for every signal that is not the scheduled GIL's.
pub(crate) fn notice_signal(cond: *mut pthread_cond_t) {
    if IS_LEARNING.load(Relaxed) && with_own(|own| own.is_probe.get()) && SEEN_SWITCH.load(Relaxed).is_null() {
        SEEN_SWITCH.store(cond, Release);
    }
}

/// Finds out which condvars and mutex are the GIL's.
fn learn(api: &PythonApi) -> Result<(), Unsupported> {
    SEEN_COND.store(std::ptr::null_mut(), Relaxed);
    SEEN_SWITCH.store(std::ptr::null_mut(), Relaxed);
    IS_LEARNING.store(true, Release);
    let has_waited = provoke_wait(api, || !SEEN_COND.load(Acquire).is_null());
    IS_LEARNING.store(false, Release);
    if !has_waited || SEEN_SWITCH.load(Acquire).is_null() {
        return Err(Unsupported::new(
            "a thread that wanted the GIL did not wait on a condition variable",
            "install from the main interpreter of a stock CPython 3.11 to 3.15",
        ));
    }
    Ok(())
}

/// Lets a probe thread want the GIL until `has_come` sees its effect, then lets
/// it have the GIL; false if the effect does not come.
fn provoke_wait(api: &PythonApi, has_come: impl Fn() -> bool) -> bool {
    let own_api = *api;
    let probe = std::thread::Builder::new().name("unsnarl-probe".into()).spawn(move || {
        with_own(|own| own.is_probe.set(true));
        kernel::learn_default();
        attach::visit(&own_api);
    });
    let Ok(probe) = probe else { return false };
    let start = std::time::Instant::now();
    while !has_come() && start.elapsed() < PROBE_PATIENCE {
        std::thread::sleep(PROBE_PAUSE);
    }
    // Should the interpreter end, the probe hangs, and so does this thread: it has no GIL either.
    let has_ended = attach::without_gil(api, || probe.join().is_ok());
    has_ended && has_come()
}

/// Puts the policy in charge, and tests that it is.
fn activate(api: &PythonApi, options: &Options) -> Result<(), Unsupported> {
    MUTEX.store(SEEN_MUTEX.load(Relaxed), Relaxed);
    SWITCH_COND.store(SEEN_SWITCH.load(Relaxed), Relaxed);
    with_mutex(|policy| {
        policy.set_slice(options.slice_ns);
        let thread = with_own(|own| own.register(policy));
        policy.resume(thread);
        COND.store(SEEN_COND.load(Relaxed), Release);
    });
    let waits_before = with_mutex(|policy| total_waits(policy));
    if provoke_wait(api, || with_mutex(|policy| total_waits(policy)) > waits_before) {
        return Ok(());
    }
    Err(Unsupported::new(
        "the self-test failed: a thread that wanted the GIL did not reach the scheduler",
        "report it with the output of `python -VV`",
    ))
}

fn total_waits(policy: &Policy) -> u64 {
    policy.stats().classes.iter().map(|class| class.waits).sum()
}

/// Makes sure that no late fix-up of the dynamic linker has undone a slot.
fn settle(slots: &Slots) -> Result<(), Unsupported> {
    for _ in 0..WRITE_ROUNDS {
        if slots.is_intact() {
            return Ok(());
        }
        slots.replace()?;
        std::thread::sleep(PROBE_PAUSE);
    }
    Err(Unsupported::new(
        "another library keeps overwriting the interpreter's relocation slots",
        "install unsnarl after that library",
    ))
}

/// Takes the policy out of charge; those who wait go back to the interpreter.
fn deactivate() {
    kernel::enable(false);
    if MUTEX.load(Relaxed).is_null() {
        return;
    }
    with_mutex(|policy| {
        COND.store(std::ptr::null_mut(), Release);
        notify_all(policy);
    });
}
