//! The calling thread's robust list, in which the kernel finds the locks of a thread that dies.
//!
//! glibc registers one list head per thread (set_robust_list(2)) for its own robust mutexes. Our entries go into the
//! same list, in glibc's layout. This layout is ABI: the kernel walks the list, and glibc and this crate both unlink
//! neighbouring entries.
//!
//! | address | content |
//! |---|---|
//! | word | the robust word, in shared memory, in the last 24 bytes before a page's end |
//! | word + 24 | address of the previous entry (glibc's `__list.__prev`) |
//! | word + 32 | address of the next entry (`__list.__next`); entries point here |
//!
//! The page after the shared page is private memory (mapping.rs), so the pointers are never shared. No other process
//! can make this one or the kernel follow a bad pointer, and two processes can have the same word in their lists at
//! once.
//!
//! A thread may release a lock that another thread holds. The entry then stays in the holder's list. It is harmless,
//! since the kernel marks only words that name the dying thread. Until it is unlinked, no other thread of the process
//! can use the entry; another thread maps the segment a second time (`NodeState::Busy`).
//!
//! So a thread takes the word first, and then claims the entry behind it, if the entry is free. Holding the word does
//! not imply a free entry, since any thread may have released the word meanwhile. Only the thread that owns an entry
//! links or unlinks it, and it gives the entry up before it releases the word. Without a GIL two threads may want the
//! same entry at the same instant, and one exchange decides (`Threads::Concurrent`).
//!
//! For a few instructions, or a sleep, no entry is needed: `list_op_pending` of the head names one word that the
//! thread is working on.
//!
//! Invariant: between two calls into this file the list is well-formed, and every entry of ours in it lies in an
//! existing mapping and in the list of the thread that it names.

use crate::host::Host;
use crate::process;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, compiler_fence};
use unsnarl_ipc::{Attempt, Threads};

/// Bytes from a robust word to its list entry: glibc's pthread_mutex_t on every 64-bit architecture.
const ENTRY: usize = 32;

/// The kernel's struct robust_list_head.
#[repr(C)]
struct Head {
    list: Cell<usize>,
    futex_offset: isize,
    pending: Cell<usize>,
}

/// The entry behind a robust word, in private memory, from word + 24 on.
#[repr(C)]
struct Node {
    previous: Cell<usize>,
    next: Cell<usize>,
    /// The thread in whose list the entry is, as [`PerThread::name`]; 0 for none.
    owner: AtomicU64,
}

/// The kernel's thread ids are smaller than 2^22.
const TID_BITS: u32 = 22;

/// A list head for threads that have none, preceded by `previous`, as in glibc.
#[repr(C)]
struct OwnHead {
    previous: Cell<usize>,
    head: Head,
}

struct PerThread {
    head: Cell<*const Head>,
    tid: Cell<u32>,
    epoch: Cell<u32>,
    /// A number that is never reused, unlike a tid, together with the tid. From it another thread or a forked child
    /// finds out whether this thread is still running.
    name: Cell<u64>,
}

thread_local! {
    static ME: PerThread = const {
        PerThread { head: Cell::new(std::ptr::null()), tid: Cell::new(0), epoch: Cell::new(0), name: Cell::new(0) }
    };
}

#[inline]
fn with<T>(body: impl FnOnce(&PerThread, &Head) -> T) -> T {
    ME.with(|me| {
        if me.epoch.get() != process::epoch() {
            register(me);
        }
        // SAFETY: `register` left a head that lives as long as the thread; only this thread writes it.
        body(me, unsafe { &*me.head.get() })
    })
}

#[cold]
fn register(me: &PerThread) {
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    let mut head: *const Head = std::ptr::null();
    let mut length = 0_usize;
    // SAFETY: get_robust_list(2) of the calling thread writes a pointer and a length.
    unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut length) };
    // SAFETY: not null: the head that libc registered for this thread.
    if head.is_null() || unsafe { (*head).futex_offset } != -(ENTRY as isize) {
        head = register_head();
    }
    me.head.set(head);
    me.tid.set(rustix::thread::gettid().as_raw_nonzero().get() as u32);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    me.name.set(number << TID_BITS | u64::from(me.tid.get()));
    me.epoch.set(process::epoch());
}

/// Whether the system took no robust list: qemu-user, or a filter of system calls that refuses it.
static IS_UNMARKED: AtomicBool = AtomicBool::new(false);

/// Whether no kernel marks the words of this process's threads when they die, so that the others have to find out.
#[inline]
#[must_use]
pub fn is_unmarked() -> bool {
    IS_UNMARKED.load(Ordering::Relaxed)
}

/// Whether the thread has died without a mark in its words. The caller's own id is asked for first, since that is when
/// the list is offered to the system.
#[inline]
pub(crate) fn died_unmarked(tid: u32) -> bool {
    tid != self::tid() && is_unmarked() && process::has_ended(tid)
}

/// Registers a list head, for a libc without one. It is never freed: the kernel reads it as the thread dies.
fn register_head() -> *const Head {
    let own: &'static OwnHead = Box::leak(Box::new(OwnHead {
        previous: Cell::new(0),
        head: Head {
            list: Cell::new(0),
            futex_offset: -(ENTRY as isize),
            pending: Cell::new(0),
        },
    }));
    own.head.list.set(&raw const own.head as usize);
    // SAFETY: set_robust_list(2): the head lives for ever, and its list is empty.
    let status = unsafe { libc::syscall(libc::SYS_set_robust_list, &raw const own.head, size_of::<Head>()) };
    if status != 0 {
        IS_UNMARKED.store(true, Ordering::Relaxed);
    }
    &raw const own.head
}

/// The calling thread's id.
#[inline]
#[must_use]
pub fn tid() -> u32 {
    with(|me, _| me.tid.get())
}

/// Whether a robust word names the calling thread.
#[inline]
#[must_use]
pub fn is_mine(word: u32) -> bool {
    word & unsnarl_ipc::TID_MASK == tid()
}

fn entry(word: &AtomicU32) -> usize {
    word.as_ptr() as usize + ENTRY
}

/// Registers the word as the one that this thread is working on.
#[inline]
pub(crate) fn begin(word: &AtomicU32) {
    with(|_, head| head.pending.set(entry(word)));
    // ORDERING: a compiler fence suffices: the kernel reads these words as a signal handler of this thread would, in
    // program order.
    compiler_fence(Ordering::SeqCst);
}

/// Ends the registration.
#[inline]
pub(crate) fn end() {
    // ORDERING: as in `begin`.
    compiler_fence(Ordering::SeqCst);
    with(|_, head| head.pending.set(0));
}

/// In whose list a word's entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    /// In none.
    Free,
    /// In the calling thread's.
    Mine,
    /// In the list of another thread of this process.
    Busy,
}

fn node(word: &AtomicU32) -> &Node {
    // SAFETY: robust words end 24 bytes before a private page of the same mapping (mapping.rs),
    // which starts as zeros, a valid `Node`.
    unsafe { &*word.as_ptr().byte_add(24).cast::<Node>() }
}

/// Returns in whose list the entry of a mapping's robust word is.
#[inline]
#[must_use]
pub fn node_state(word: &AtomicU32) -> NodeState {
    let owner = node(word).owner.load(Ordering::Relaxed);
    if owner == 0 {
        return NodeState::Free;
    }
    if owner == with(|me, _| me.name.get()) {
        return NodeState::Mine;
    }
    if is_running(owner) {
        NodeState::Busy
    } else {
        NodeState::Free
    }
}

/// Whether the thread belongs to this process and still runs. A thread that ended has no list any more, and a forked
/// child has none of its parent's threads.
#[cold]
fn is_running(owner: u64) -> bool {
    let tid = (owner & ((1 << TID_BITS) - 1)) as libc::pid_t;
    // SAFETY: tgkill(2) with signal 0 only checks.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, 0) == 0 }
}

/// Claims the entry for the calling thread, if it is free.
#[inline]
fn claim(me: &PerThread, node: &Node, threads: Threads) -> bool {
    if threads == Threads::Serialised && node.owner.load(Ordering::Relaxed) == 0 {
        node.owner.store(me.name.get(), Ordering::Relaxed);
        return true;
    }
    // ORDERING: acquire pairs with the release in `unlink`: the links are the claimant's alone.
    node.owner
        .compare_exchange(0, me.name.get(), Ordering::Acquire, Ordering::Relaxed)
        .map_or_else(|owner| claim_from_dead(me, node, owner), |_| true)
}

#[cold]
fn claim_from_dead(me: &PerThread, node: &Node, owner: u64) -> bool {
    // ORDERING: acquire, as in `claim`; the dead owner's writes came before its death, which the kernel reported.
    !is_running(owner)
        && node
            .owner
            .compare_exchange(owner, me.name.get(), Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
}

/// Links the word into the calling thread's list; false if its entry is in the list of another thread.
#[inline]
fn link(me: &PerThread, head: &Head, word: &AtomicU32, threads: Threads) -> bool {
    let node = node(word);
    if node.owner.load(Ordering::Relaxed) == me.name.get() {
        return true;
    }
    if !claim(me, node, threads) {
        return false;
    }
    let first = head.list.get();
    node.next.set(first);
    node.previous.set(&raw const *head as usize);
    // ORDERING: as in `begin`: the entry is complete before the list leads to it.
    compiler_fence(Ordering::SeqCst);
    // SAFETY: the first entry of the calling thread's own list, or its head: before either
    // lies the address of the previous entry. Bit 0 marks glibc's PI mutexes.
    unsafe { *(((first & !1) - 8) as *mut usize) = entry(word) };
    head.list.set(entry(word));
    // ORDERING: as in `begin`.
    compiler_fence(Ordering::SeqCst);
    true
}

#[inline]
fn unlink(me: &PerThread, word: &AtomicU32) {
    let node = node(word);
    if node.owner.load(Ordering::Relaxed) != me.name.get() {
        return;
    }
    let (previous, next) = (node.previous.get(), node.next.get());
    // SAFETY: both are entries of this thread's own list, or its head, in private memory that
    // this thread alone writes.
    unsafe {
        *(((next & !1) - 8) as *mut usize) = previous;
        *((previous & !1) as *mut usize) = next;
    }
    // ORDERING: as in `begin`: the list is whole before another thread may claim the entry.
    compiler_fence(Ordering::SeqCst);
    // ORDERING: pairs with the acquire in `claim`.
    node.owner.store(0, Ordering::Release);
}

/// Links the word into the thread's list. The caller has called `begin` on it, and the word names this thread. False
/// if the entry is in use: the caller must link the word through another mapping before `end`.
#[must_use]
pub fn hold(word: &AtomicU32) -> bool {
    with(|me, head| link(me, head, word, Threads::Concurrent))
}

/// Unlinks the word from the thread's list, if it is there.
pub(crate) fn let_go(word: &AtomicU32) {
    with(|me, _| unlink(me, word));
}

/// How an attempt to take a robust word and to link its entry ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entered {
    /// The attempt ended so; if the word was taken, it is in the thread's list.
    Listed(Attempt),
    /// The word was taken, but its entry is in use. The registration protects the word until `end` is called; before
    /// that the caller must link it through another mapping ([`hold`]).
    Unlisted(Attempt),
}

/// Takes the robust word of a mapping if it is free, and links it into the list.
///
/// `threads` says how the threads of this process access the entry.
#[inline]
pub fn try_acquire(word: &AtomicU32, threads: Threads) -> Entered {
    with(|me, head| {
        head.pending.set(entry(word));
        // ORDERING: as in `begin`.
        compiler_fence(Ordering::SeqCst);
        let attempt = unsnarl_ipc::try_lock(word, me.tid.get(), false);
        if attempt.is_taken() && !link(me, head, word, threads) {
            return Entered::Unlisted(attempt);
        }
        // ORDERING: as in `begin`: the entry is linked before the registration ends.
        compiler_fence(Ordering::SeqCst);
        head.pending.set(0);
        Entered::Listed(attempt)
    })
}

/// Whether the entry of this robust word of a mapping is in the calling thread's list.
#[inline]
#[must_use]
pub fn is_listed(word: &AtomicU32) -> bool {
    with(|me, _| node(word).owner.load(Ordering::Relaxed) == me.name.get())
}

/// Releases the robust word of a mapping, and wakes up to `count` of its sleepers.
#[inline]
pub fn release(word: &AtomicU32, count: u32) {
    with(|me, head| {
        head.pending.set(entry(word));
        // ORDERING: as in `begin`, before and after the release.
        compiler_fence(Ordering::SeqCst);
        unlink(me, word);
        unsnarl_ipc::unlock(word, count, &Host);
        compiler_fence(Ordering::SeqCst);
        head.pending.set(0);
    });
}
