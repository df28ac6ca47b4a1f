//! A segment: the checked and mapped memory of one primitive, with or without a name.
//!
//! Invariant: a `Segment` exists only with a checked header, and its mapping is exactly as long as the header says.

use crate::arena::{Allocation, Arena};
use crate::file::Named;
use crate::mapping::Mapping;
use crate::process;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use unsnarl_ipc::{Expectations, HEADER_WORDS, Header, Kind, Refusal};

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// The caller's argument is invalid.
    Argument,
    /// There is no such segment.
    Missing,
    /// The segment exists but must not be used.
    Refused,
    /// The operating system reported an error.
    System,
}

/// Why a segment could not be made or opened, and the next step.
#[derive(Debug, Clone)]
pub struct SegmentError {
    /// The kind.
    pub problem: Problem,
    /// The failure, and where it happened.
    pub what: String,
    /// The next step; may be empty.
    pub hint: String,
}

impl SegmentError {
    pub(crate) fn new(problem: Problem, what: String, hint: String) -> Self {
        Self { problem, what, hint }
    }

    pub(crate) fn system(what: &str, errno: rustix::io::Errno) -> Self {
        let hint = match errno {
            rustix::io::Errno::NOSPC | rustix::io::Errno::NOMEM => "make room, or use fewer or smaller segments",
            rustix::io::Errno::MFILE => "raise the limit of open files (`ulimit -n`)",
            rustix::io::Errno::NOENT | rustix::io::Errno::ROFS => {
                "mount a tmpfs there, or use a primitive without a name"
            }
            _ => "see `unsnarl ipc list`",
        };
        let what = format!("{what}: {}", std::io::Error::from_raw_os_error(errno.raw_os_error()));
        Self::new(Problem::System, what, hint.into())
    }

    pub(crate) fn refusal(name: &str, refusal: Refusal) -> Self {
        let (what, hint) = match refusal {
            Refusal::Damaged(why) => (
                format!("the segment {name:?} is damaged: {why}"),
                format!("remove it with `unsnarl ipc rm {name}`"),
            ),
            Refusal::Version(version) => (
                format!(
                    "the segment {name:?} has layout {version}, this unsnarl has layout {}",
                    unsnarl_ipc::LAYOUT
                ),
                "use one version of unsnarl in all processes, or another name".into(),
            ),
            Refusal::Kind(kind) => (
                format!("the segment {name:?} is a {}", kind.name()),
                "use another name".into(),
            ),
            Refusal::Namespace => (
                format!("the segment {name:?} belongs to another pid namespace"),
                "processes in different containers cannot share it; use another name".into(),
            ),
        };
        Self::new(Problem::Refused, what, hint)
    }
}

#[derive(Debug)]
enum Origin {
    Anonymous(Allocation),
    Named(Arc<Named>),
}

/// A mapped segment.
#[derive(Debug)]
pub struct Segment {
    /// Its memory.
    pub mapping: Mapping,
    /// Its checked header.
    pub header: Header,
    origin: Origin,
}

/// The header of a new segment.
#[must_use]
pub(crate) fn header(kind: Kind, parameter: u64, capacity: u64) -> Header {
    let mut header = Header {
        kind,
        page_size: process::page_size() as u32,
        pages: 0,
        parameter,
        capacity,
        pid_namespace: process::pid_namespace(),
        creator: process::identity(),
    };
    header.pages = header.kind_pages();
    header
}

pub(crate) fn write_header(mapping: &Mapping, header: &Header) {
    for (word, value) in mapping.header().iter().zip(header.encode()) {
        word.store(value, Ordering::Relaxed);
    }
}

fn read_header(mapping: &Mapping) -> [u64; HEADER_WORDS] {
    std::array::from_fn(|number| mapping.header()[number].load(Ordering::Relaxed))
}

impl Segment {
    /// Makes a segment without a name. `start` writes its state before the segment is shared.
    ///
    /// # Errors
    /// No memory or no descriptor left.
    pub fn anonymous(
        kind: Kind,
        parameter: u64,
        capacity: u64,
        start: impl FnOnce(&Mapping),
    ) -> Result<Self, SegmentError> {
        let header = header(kind, parameter, capacity);
        let allocation = Allocation::new(header.pages as usize)?;
        let mapping = Self::map(&allocation, header.pages as usize)?;
        write_header(&mapping, &header);
        start(&mapping);
        Ok(Self {
            mapping,
            header,
            origin: Origin::Anonymous(allocation),
        })
    }

    fn map(allocation: &Allocation, pages: usize) -> Result<Mapping, SegmentError> {
        let offset = (allocation.page * process::page_size()) as u64;
        Mapping::new(allocation.arena.file(), offset, pages)
            .map_err(|errno| SegmentError::system("cannot map shared memory", errno))
    }

    /// Opens a segment that another process made without a name, by its file and page.
    ///
    /// # Errors
    /// The segment is not there, or not as expected.
    pub fn inherited(arena: Arc<Arena>, page: usize, pages: usize, kind: Kind) -> Result<Self, SegmentError> {
        let page_size = process::page_size();
        let stat = rustix::fs::fstat(arena.file()).map_err(|errno| SegmentError::system("no such segment", errno))?;
        let end = page.checked_add(pages).and_then(|end| end.checked_mul(page_size));
        if pages == 0 || end.is_none_or(|end| end as i64 > stat.st_size) {
            let what = "a segment without a name is not in its file".to_owned();
            return Err(SegmentError::new(Problem::Refused, what, String::new()));
        }
        let allocation = Allocation { arena, page };
        let mapping = Self::map(&allocation, pages)?;
        let expectations = Expectations {
            kind: Some(kind),
            page_size: page_size as u32,
            file_size: (pages * page_size) as u64,
            pid_namespace: process::pid_namespace(),
        };
        let header = Header::decode(&read_header(&mapping), &expectations)
            .map_err(|refusal| SegmentError::refusal("(inherited)", refusal))?;
        Ok(Self {
            mapping,
            header,
            origin: Origin::Anonymous(allocation),
        })
    }

    /// Opens the segment of that name, or makes it.
    ///
    /// # Errors
    /// The name is invalid, the segment is refused, or the system reports an error.
    pub fn named(
        name: &str,
        kind: Kind,
        parameter: u64,
        capacity: u64,
        start: impl Fn(&Mapping),
    ) -> Result<Self, SegmentError> {
        let wanted = header(kind, parameter, capacity);
        let (named, mapping, header) = Named::open_or_make(name, &wanted, &start)?;
        Ok(Self {
            mapping,
            header,
            origin: Origin::Named(named),
        })
    }

    /// Maps the same pages again, at another address.
    ///
    /// # Errors
    /// The kernel's.
    pub fn alias(&self) -> Result<Mapping, SegmentError> {
        let failed = |errno| SegmentError::system("cannot map shared memory", errno);
        match &self.origin {
            Origin::Anonymous(allocation) => Self::map(allocation, self.header.pages as usize),
            Origin::Named(named) => named.map(self.header.pages as usize).map_err(failed),
        }
    }

    /// The name, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.origin {
            Origin::Anonymous(_) => None,
            Origin::Named(named) => Some(named.name()),
        }
    }

    /// The descriptor and first page of a segment without a name, for a child that inherits them.
    #[must_use]
    pub fn allocation(&self) -> Option<(RawFd, usize)> {
        match &self.origin {
            Origin::Anonymous(allocation) => Some((allocation.arena.file().as_raw_fd(), allocation.page)),
            Origin::Named(_) => None,
        }
    }

    /// Stops counting as a user of the name, and removes the segment if this was its last user.
    pub fn leave(&self) {
        if let Origin::Named(named) = &self.origin {
            named.leave();
        }
    }
}
