//! Segments with names: files in /dev/shm (or in the directory that `UNSNARL_SHM` names), removed by their last user.
//!
//! A file is created without a name, filled, and only then linked, so no process ever sees half a segment. Every
//! process that uses the segment holds a shared flock(2) on the file. The kernel counts these locks and releases them
//! when the process ends in any way.
//!
//! A process that leaves tries to get the exclusive lock. Only the last user succeeds, and removes the file. After a
//! crash of all users the file stays, with its record of the dead, until a process uses it again or removes it
//! (`unsnarl ipc rm`).
//!
//! Invariant: before a file is mapped, it was checked to be a regular file of this user, with mode 0600 and one name,
//! as long as its header says.

use crate::mapping::Mapping;
use crate::process;
use crate::segment::{Problem, SegmentError, write_header};
use rustix::fs::{AtFlags, FallocateFlags, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use unsnarl_ipc::{Expectations, HEADER_WORDS, Header, Kind};

/// The longest name in bytes; together with the prefix it must fit into a file name.
const LONGEST_NAME: usize = 200;
/// How long to wait for another process that is making or removing the same name.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// The directory of segments with names.
#[must_use]
pub fn directory() -> PathBuf {
    std::env::var_os("UNSNARL_SHM").map_or_else(|| PathBuf::from("/dev/shm"), PathBuf::from)
}

fn prefix() -> String {
    format!("unsnarl-{}-", rustix::process::geteuid().as_raw())
}

fn path(name: &str) -> Result<PathBuf, SegmentError> {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_allowed) {
        let what = format!("{name:?} is not a valid name for a segment");
        let hint = format!("use 1 to {LONGEST_NAME} letters, digits, '.', '_' and '-'");
        return Err(SegmentError::new(Problem::Argument, what, hint));
    }
    Ok(directory().join(prefix() + name))
}

/// A named file that this process uses.
#[derive(Debug)]
pub(crate) struct Named {
    file: OwnedFd,
    name: String,
    has_left: AtomicBool,
}

enum Found {
    Segment(OwnedFd, Header),
    /// The file is being made or removed: try again.
    Again,
    Nothing,
}

impl Named {
    /// Opens the file, or makes it.
    pub(crate) fn open_or_make(
        name: &str,
        wanted: &Header,
        start: &dyn Fn(&Mapping),
    ) -> Result<(Arc<Self>, Mapping, Header), SegmentError> {
        let path = path(name)?;
        let end = Instant::now() + OPEN_TIMEOUT;
        while Instant::now() < end {
            let found = match open(name, &path, Some(wanted.kind))? {
                Found::Nothing => make(name, &path, wanted, start)?.map(|file| (file, *wanted)),
                Found::Segment(file, header) => Some((file, header)),
                Found::Again => None,
            };
            if let Some((file, header)) = found {
                let mapping = map(&file, header.pages as usize)
                    .map_err(|errno| SegmentError::system(&format!("cannot map the segment {name:?}"), errno))?;
                let named = Self {
                    file,
                    name: name.to_owned(),
                    has_left: AtomicBool::new(false),
                };
                return Ok((remember(named), mapping, header));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let what = format!("the segment {name:?} is constantly being made or removed");
        Err(SegmentError::new(Problem::Refused, what, "try again".into()))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Maps the file's pages.
    pub(crate) fn map(&self, pages: usize) -> rustix::io::Result<Mapping> {
        map(&self.file, pages)
    }

    /// Stops being a user; the last user removes the file.
    pub(crate) fn leave(&self) {
        if self.has_left.swap(true, Ordering::Relaxed) {
            return;
        }
        let Ok(path) = path(&self.name) else { return };
        let own = rustix::fs::fstat(&self.file);
        // A forked child shares the open file and its lock, so this lock cannot simply be made exclusive. Gives up
        // this process's descriptor, and tries with a new one: the lock of a child that still has the file stays.
        let Ok(nothing) = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) else {
            return;
        };
        let Ok(again) = rustix::fs::open(&path, OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
        else {
            return;
        };
        // SAFETY: dup3(2) onto our own descriptor, which stays ours: it names /dev/null from now on.
        unsafe { libc::dup3(nothing.as_raw_fd(), self.file.as_raw_fd(), libc::O_CLOEXEC) };
        if let (Ok(own), Ok(now)) = (own, rustix::fs::fstat(&again))
            && (own.st_dev, own.st_ino) == (now.st_dev, now.st_ino)
        {
            remove_if_unused(&again, &path);
        }
    }
}

/// The named files that this process uses, for `leave_all`.
static OPEN: Mutex<Vec<Weak<Named>>> = Mutex::new(Vec::new());

/// Leaves every named segment: this process is about to end.
pub fn leave_all() {
    let alone = process::alone();
    let open = std::mem::take(&mut *OPEN.lock().unwrap_or_else(PoisonError::into_inner));
    drop(alone);
    for named in open.iter().filter_map(Weak::upgrade) {
        named.leave();
    }
}

fn remember(named: Named) -> Arc<Named> {
    let named = Arc::new(named);
    let _alone = process::alone();
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|other| other.strong_count() > 0);
    open.push(Arc::downgrade(&named));
    named
}

impl Drop for Named {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Maps a file through a separate descriptor: a mapping keeps the open file from which it was made, and with it the
/// lock, which must end when `leave` is called.
fn map(file: &OwnedFd, pages: usize) -> rustix::io::Result<Mapping> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let again = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    Mapping::new(again.as_fd(), 0, pages)
}

/// Removes the file if it has no user; true if it was removed.
fn remove_if_unused(file: &OwnedFd, path: &std::path::Path) -> bool {
    if rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return false;
    }
    // While the exclusive lock is held, a process between opening and locking the file re-checks it after locking
    // (`open`).
    let is_linked = rustix::fs::fstat(file).is_ok_and(|stat| stat.st_nlink > 0);
    is_linked && rustix::fs::unlink(path).is_ok()
}

fn open(name: &str, path: &std::path::Path, kind: Option<Kind>) -> Result<Found, SegmentError> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(Found::Nothing),
        Err(Errno::LOOP) => return Err(foreign(name, "a symbolic link")),
        Err(errno) => {
            return Err(SegmentError::system(
                &format!("cannot open the segment {name:?}"),
                errno,
            ));
        }
    };
    let failed = |errno| SegmentError::system(&format!("cannot inspect the segment {name:?}"), errno);
    check(name, &rustix::fs::fstat(&file).map_err(failed)?)?;
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_err() {
        return Ok(Found::Again);
    }
    let stat = rustix::fs::fstat(&file).map_err(failed)?;
    if stat.st_nlink == 0 {
        return Ok(Found::Again);
    }
    let header = read(name, &file, stat.st_size as u64, kind)?;
    Ok(Found::Segment(file, header))
}

fn foreign(name: &str, what: &str) -> SegmentError {
    let what = format!("the segment {name:?} is {what}: unsnarl did not make it");
    SegmentError::new(Problem::Refused, what, "use another name, or remove that file".into())
}

fn check(name: &str, stat: &Stat) -> Result<(), SegmentError> {
    if stat.st_mode & libc::S_IFMT != libc::S_IFREG {
        return Err(foreign(name, "no regular file"));
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(foreign(name, "a file of another user"));
    }
    if stat.st_mode & 0o7777 != 0o600 {
        return Err(foreign(name, "a file that others may use (its mode is not 0600)"));
    }
    if stat.st_nlink > 1 {
        return Err(foreign(name, "a file with several names"));
    }
    Ok(())
}

/// Reads the header, at the start of the last page.
fn read(name: &str, file: &OwnedFd, size: u64, kind: Option<Kind>) -> Result<Header, SegmentError> {
    let page_size = process::page_size() as u64;
    let mut bytes = [0; HEADER_WORDS * 8];
    let length = rustix::io::pread(file, &mut bytes, size.saturating_sub(page_size)).unwrap_or(0);
    if size < page_size || !size.is_multiple_of(page_size) || length < bytes.len() {
        let damaged = unsnarl_ipc::Refusal::Damaged("the file is not as long as a segment");
        return Err(SegmentError::refusal(name, damaged));
    }
    let mut words = [0; HEADER_WORDS];
    for (word, chunk) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_ne_bytes(*chunk);
    }
    let expectations = Expectations {
        kind,
        page_size: page_size as u32,
        file_size: size,
        pid_namespace: process::pid_namespace(),
    };
    Header::decode(&words, &expectations).map_err(|refusal| SegmentError::refusal(name, refusal))
}

/// Makes the file and links it under its name; None if another process was faster.
fn make(
    name: &str,
    path: &std::path::Path,
    header: &Header,
    start: &dyn Fn(&Mapping),
) -> Result<Option<OwnedFd>, SegmentError> {
    let directory = directory();
    let failed = |errno| {
        let what = format!("cannot make the segment {name:?} in {}", directory.display());
        SegmentError::system(&what, errno)
    };
    let mode = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let file = rustix::fs::open(&directory, flags, mode).map_err(failed)?;
    rustix::fs::fchmod(&file, mode).map_err(failed)?;
    let size = u64::from(header.pages) * u64::from(header.page_size);
    rustix::fs::ftruncate(&file, size).map_err(failed)?;
    // Allocates the memory now, when a failure is an error; at a later store it would be SIGBUS.
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size).map_err(failed)?;
    let mapping = Mapping::new(file.as_fd(), 0, header.pages as usize).map_err(failed)?;
    start(&mapping);
    write_header(&mapping, header);
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).map_err(failed)?;
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    match rustix::fs::linkat(
        rustix::fs::CWD,
        &*unnamed,
        rustix::fs::CWD,
        path,
        AtFlags::SYMLINK_FOLLOW,
    ) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::EXIST) => Ok(None),
        Err(errno) => Err(failed(errno)),
    }
}

/// A named segment as `unsnarl ipc list` shows it.
#[derive(Debug)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its header, or why it is refused.
    pub header: Result<Header, SegmentError>,
    /// Bytes.
    pub size: u64,
    /// The processes that use it, as far as /proc/locks shows them.
    pub users: Vec<u32>,
    /// Whether a process uses it.
    pub is_used: bool,
}

/// Every named segment of this user.
///
/// # Errors
/// The directory cannot be read.
pub fn list() -> Result<Vec<Listed>, SegmentError> {
    let directory = directory();
    let failed = |error: std::io::Error| {
        let errno = Errno::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO));
        SegmentError::system(&format!("cannot read {}", directory.display()), errno)
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&directory).map_err(failed)? {
        let file_name = entry.map_err(failed)?.file_name();
        if let Some(name) = file_name.to_str().and_then(|name| name.strip_prefix(&prefix())) {
            found.extend(inspect(name));
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

fn inspect(name: &str) -> Option<Listed> {
    let path = path(name).ok()?;
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let unreadable = |error| Listed {
        name: name.to_owned(),
        header: Err(error),
        size: 0,
        users: Vec::new(),
        is_used: false,
    };
    let file = match rustix::fs::open(&path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return None,
        Err(Errno::LOOP) => return Some(unreadable(foreign(name, "a symbolic link"))),
        Err(errno) => return Some(unreadable(SegmentError::system("cannot open it", errno))),
    };
    let stat = rustix::fs::fstat(&file).ok()?;
    let size = stat.st_size as u64;
    let is_used = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err();
    Some(Listed {
        name: name.to_owned(),
        header: check(name, &stat).and_then(|()| read(name, &file, size, None)),
        size,
        users: if is_used { users(&stat) } else { Vec::new() },
        is_used,
    })
}

/// The processes that hold a lock on the file, from /proc/locks.
fn users(stat: &Stat) -> Vec<u32> {
    let inode = format!(":{}", stat.st_ino);
    let text = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let mut users: Vec<u32> = text
        .lines()
        .filter(|line| line.contains("FLOCK"))
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields.get(5).filter(|file| file.ends_with(&inode))?;
            fields.get(4)?.parse().ok()
        })
        .collect();
    users.sort_unstable();
    users
}

/// The outcome of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// The segment was removed.
    Removed,
    /// A process uses the segment.
    Used,
    /// There is no segment of that name.
    Missing,
}

/// Removes a named segment. `force` removes it even while processes use it; they keep the memory, which has no name
/// any more.
///
/// # Errors
/// The name is invalid, or the system reports an error.
pub fn remove(name: &str, force: bool) -> Result<Removal, SegmentError> {
    let path = path(name)?;
    let failed = |errno| SegmentError::system(&format!("cannot remove the segment {name:?}"), errno);
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    match rustix::fs::open(&path, flags, Mode::empty()) {
        Ok(file) if !force => {
            if remove_if_unused(&file, &path) {
                return Ok(Removal::Removed);
            }
            Ok(Removal::Used)
        }
        Err(Errno::NOENT) => Ok(Removal::Missing),
        // A symbolic link or a file that cannot be opened can still be removed.
        _ => rustix::fs::unlink(&path).map_err(failed).map(|()| Removal::Removed),
    }
}
