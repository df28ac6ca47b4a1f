//! The segment that every object has, and how it is made, named and handed to a child.
//!
//! Invariant: descriptors of one file share one arena in this process.

use crate::ipc::segment::errors;
use crate::ipc::wait::Spin;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use unsnarl_ipc::Kind;
use unsnarl_shm::{Arena, Mapping, Segment};

/// An object's segment, and whether spinning pays at it.
pub(in crate::ipc) struct Body {
    pub(in crate::ipc) segment: Segment,
    pub(in crate::ipc) spin: Spin,
}

impl Body {
    /// Makes a segment, or opens the segment of that name.
    pub(in crate::ipc) fn make(
        py: Python<'_>,
        name: Option<&str>,
        kind: Kind,
        parameter: u64,
        capacity: u64,
        start: impl Fn(&Mapping) + Send,
    ) -> PyResult<Self> {
        let segment = match name {
            Some(name) => py.detach(|| Segment::named(name, kind, parameter, capacity, start)),
            None => Segment::anonymous(kind, parameter, capacity, start),
        };
        segment.map(Self::of).map_err(|error| errors::segment(py, error))
    }

    fn of(segment: Segment) -> Self {
        Self {
            segment,
            spin: Spin::default(),
        }
    }

    /// Opens the segment that a parent handed over: descriptor, page and number of pages.
    pub(in crate::ipc) fn inherit(py: Python<'_>, (file, page, pages): Inheritance, kind: Kind) -> PyResult<Self> {
        let arena = adopt(file)?;
        Segment::inherited(arena, page, pages, kind)
            .map(Self::of)
            .map_err(|error| errors::segment(py, error))
    }

    /// Returns what a child needs to inherit the segment; None for a segment with a name.
    pub(in crate::ipc) fn allocation(&self) -> Option<Inheritance> {
        let (file, page) = self.segment.allocation()?;
        Some((file, page, self.segment.header.pages as usize))
    }

    /// Name and creator, for `statistics()`.
    pub(in crate::ipc) fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = PyDict::new(py);
        statistics.set_item("name", self.segment.name())?;
        statistics.set_item("creator", (self.segment.header.creator >> 32) as u32)?;
        Ok(statistics)
    }

    /// The name for `repr`, or nothing.
    pub(in crate::ipc) fn label(&self) -> String {
        self.segment.name().map(|name| format!(" {name:?}")).unwrap_or_default()
    }
}

/// Descriptor, first page, pages.
pub(in crate::ipc) type Inheritance = (RawFd, usize, usize);

/// Returns the arena behind a descriptor; the same arena for every descriptor of one file.
fn adopt(file: RawFd) -> PyResult<Arc<Arena>> {
    static ADOPTED: Mutex<Vec<(u64, Weak<Arena>)>> = Mutex::new(Vec::new());
    let copy = duplicate(file)?;
    let inode = rustix_inode(&copy)?;
    let _alone = unsnarl_shm::alone();
    let mut adopted = ADOPTED.lock().unwrap_or_else(PoisonError::into_inner);
    adopted.retain(|(_, arena)| arena.strong_count() > 0);
    let known = adopted.iter().find(|(number, _)| *number == inode);
    if let Some(arena) = known.and_then(|(_, arena)| arena.upgrade()) {
        return Ok(arena);
    }
    let arena = Arena::adopt(copy);
    adopted.push((inode, Arc::downgrade(&arena)));
    Ok(arena)
}

fn duplicate(file: RawFd) -> PyResult<OwnedFd> {
    if file < 0 {
        return Err(pyo3::exceptions::PyValueError::new_err("no descriptor"));
    }
    // SAFETY: borrowed for this call; a number that is no descriptor fails in the kernel.
    let borrowed = unsafe { BorrowedFd::borrow_raw(file) };
    Ok(borrowed.try_clone_to_owned()?)
}

fn rustix_inode(file: &OwnedFd) -> PyResult<u64> {
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::File::from(file.try_clone()?);
    Ok(file.metadata()?.ino())
}
