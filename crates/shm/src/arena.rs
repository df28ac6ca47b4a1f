//! Segments without names: allocations in an anonymous file (memfd_create(2)).
//!
//! Many segments share one file, so that a thousand locks do not need a thousand descriptors. A child gets them by
//! fork, or by inheriting the descriptor. When the last process that has one of the segments ends, the kernel frees
//! the memory: nothing can leak, and neither /dev/shm's absence nor its size matters.
//!
//! Invariant: no page is allocated twice. A dropped allocation is not reused, since another process may still use it.

use crate::segment::{Problem, SegmentError};
use rustix::fs::{MemfdFlags, SealFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

/// Pages of an arena. A page takes no memory until it is used.
const PAGES: usize = 1024;

/// An anonymous file.
#[derive(Debug)]
pub struct Arena {
    file: OwnedFd,
}

/// Pages of an arena that belong to one segment.
#[derive(Debug, Clone)]
pub struct Allocation {
    /// The file.
    pub arena: Arc<Arena>,
    /// The first page.
    pub page: usize,
}

struct Current {
    arena: Arc<Arena>,
    used: usize,
    epoch: u32,
}

static CURRENT: Mutex<Option<Current>> = Mutex::new(None);

impl Arena {
    /// Takes over a descriptor, as a spawned child receives it.
    #[must_use]
    pub fn adopt(file: OwnedFd) -> Arc<Self> {
        Arc::new(Self { file })
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn make(pages: usize) -> Result<Arc<Self>, SegmentError> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let failed = |errno| {
            let mut error = SegmentError::system("cannot make anonymous shared memory", errno);
            if errno == rustix::io::Errno::FBIG {
                error.hint = "the limit for files (ulimit -f) holds for shared memory, too".into();
            }
            error
        };
        let file = rustix::fs::memfd_create("unsnarl-ipc", flags).map_err(failed)?;
        rustix::fs::ftruncate(&file, (pages * crate::process::page_size()) as u64).map_err(failed)?;
        // With these seals no process can cut off a mapped page.
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&file, seals).map_err(failed)?;
        Ok(Self::adopt(file))
    }
}

impl Allocation {
    /// Allocates pages.
    pub(crate) fn new(pages: usize) -> Result<Self, SegmentError> {
        if pages > PAGES / 4 {
            return Ok(Self {
                arena: Arena::make(pages)?,
                page: 0,
            });
        }
        let _alone = crate::process::alone();
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        let epoch = crate::process::epoch();
        // A forked child starts a new arena: the parent continues with the old one.
        let has_room = current
            .as_ref()
            .is_some_and(|current| current.epoch == epoch && current.used + pages <= PAGES);
        if !has_room {
            let Ok(arena) = Arena::make(PAGES) else {
                // A limit on file sizes leaves room for less: a file for this allocation alone.
                let arena = Arena::make(pages)?;
                return Ok(Self { arena, page: 0 });
            };
            *current = Some(Current { arena, used: 0, epoch });
        }
        match current.as_mut() {
            Some(current) => {
                let page = current.used;
                current.used += pages;
                Ok(Self {
                    arena: current.arena.clone(),
                    page,
                })
            }
            None => Err(SegmentError::new(Problem::System, "no arena".into(), String::new())),
        }
    }
}
