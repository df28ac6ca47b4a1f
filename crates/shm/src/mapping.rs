//! A mapping of a segment's shared pages, followed by a private page.
//!
//! ```text
//! | shared: tables or ring … | shared: head page … robust word | private: list entry … |
//! ```
//!
//! The head page is the segment's last page. The robust word lies 24 bytes before its end, so that the list entry of
//! the word (robust.rs) falls into private memory.
//!
//! Invariant: a mapping whose entry is in some thread's list is never unmapped.

use crate::robust::{self, NodeState};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, AtomicU64};
use unsnarl_ipc::HEADER_WORDS;

/// Bytes from the robust word to the end of its page.
const ROBUST_BEFORE_END: usize = 24;
/// Offset of a primitive's state from the start of the head page, in bytes.
const STATE: usize = HEADER_WORDS * 8;

/// Shared pages and the private page behind them.
#[derive(Debug)]
pub struct Mapping {
    base: *mut u8,
    page_size: usize,
    pages: usize,
}

// SAFETY: the shared part is reached through atomics alone, the private part through
// robust.rs, by one thread at a time.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `pages` pages of the file, starting at the byte `offset`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(file: BorrowedFd<'_>, offset: u64, pages: usize) -> rustix::io::Result<Self> {
        let page_size = crate::process::page_size();
        let shared = pages * page_size;
        // SAFETY: a fresh region, of unused addresses.
        let base = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                shared + page_size,
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?
        };
        let mapping = Self {
            base: base.cast(),
            page_size,
            pages,
        };
        // SAFETY: MAP_FIXED over the first part of the region just made, which is ours.
        unsafe {
            rustix::mm::mmap(
                base,
                shared,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::FIXED,
                file,
                offset,
            )?;
            rustix::mm::mprotect(
                base.byte_add(shared),
                page_size,
                MprotectFlags::READ | MprotectFlags::WRITE,
            )?;
        }
        Ok(mapping)
    }

    fn head(&self) -> *mut u8 {
        // SAFETY: the last shared page; a mapping has at least one.
        unsafe { self.base.add((self.pages - 1) * self.page_size) }
    }

    /// The header's words.
    #[must_use]
    pub fn header(&self) -> &[AtomicU64; HEADER_WORDS] {
        // SAFETY: the start of a mapped page, which is longer than a header, and aligned.
        unsafe { &*self.head().cast() }
    }

    /// The primitive's state, behind the header.
    ///
    /// # Safety
    /// `T` consists of atomics alone, so that every bit pattern is valid, and is smaller than
    /// a page without header and robust word.
    #[inline]
    #[must_use]
    pub unsafe fn state<T>(&self) -> &T {
        const {
            assert!(
                align_of::<T>() <= 64 && STATE.is_multiple_of(64) && STATE + size_of::<T>() + ROBUST_BEFORE_END <= 4096
            )
        };
        // SAFETY: inside of the head page, by the assertion; aligned, since STATE is a multiple of 64.
        unsafe { &*self.head().add(STATE).cast() }
    }

    /// The table before the head page, as a slice that fills it.
    ///
    /// # Safety
    /// `T` consists of atomics alone, and 4096 is a multiple of its size.
    #[inline]
    #[must_use]
    pub unsafe fn table<T>(&self) -> &[T] {
        const { assert!(align_of::<T>() <= 8 && 4096 % size_of::<T>() == 0) };
        let bytes = (self.pages - 1) * self.page_size;
        // SAFETY: the pages before the head page.
        unsafe { std::slice::from_raw_parts(self.base.cast(), bytes / size_of::<T>()) }
    }

    /// The robust word.
    #[inline]
    #[must_use]
    pub fn robust_word(&self) -> &AtomicU32 {
        // SAFETY: inside of the head page; aligned, since pages are.
        unsafe { &*self.head().add(self.page_size - ROBUST_BEFORE_END).cast() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let word = self.robust_word();
        match robust::node_state(word) {
            NodeState::Free => {}
            NodeState::Mine if !robust::is_mine(word.load(std::sync::atomic::Ordering::Relaxed)) => {
                robust::let_go(word);
            }
            // The thread holds the lock until it ends, and the kernel must find the entry then: keep the mapping.
            NodeState::Mine | NodeState::Busy => return,
        }
        // SAFETY: the region made in `new`; no reference to it is left, nor an entry in a robust list.
        unsafe {
            let _ = rustix::mm::munmap(self.base.cast(), (self.pages + 1) * self.page_size);
        }
    }
}
