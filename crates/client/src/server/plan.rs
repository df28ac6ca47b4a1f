//! The plan of a call: which server may take it, or that none may.
//!
//! Must never connect to a server, nor start one.
//!
//! Invariant: every reason to run a command plainly that is known before a server answers is found here.

use super::account;
use super::against::Against;
use super::calls::Calls;
use super::economy::{self, Share};
use super::facts::Facts;
use super::key;
use super::parts;
use super::process_state::{self, Session};
use super::runtime_directory::RuntimeDirectory;
use super::start::Start;
use crate::job;
use crate::syscall::{Bytes, close, open, stat, unlink, variable};
use crate::target::Target;

/// Seconds for which a server that did not answer in time is not asked again.
const SILENCE_S: i64 = 60;

/// Everything that is known about a call before a server is asked.
pub(crate) struct Plan {
    pub(crate) directory: RuntimeDirectory,
    pub(crate) command_id: String,
    pub(crate) key: Bytes,
    pub(crate) key_id: String,
    pub(crate) session: Session,
    facts: Facts,
    tty: String,
}

impl Plan {
    /// Finds the server for a call, or why the call must run plainly.
    pub(crate) fn make(target: &Target, environ: &[Bytes]) -> Result<Self, Against> {
        if let Some(against) = key::against(target, environ) {
            return Err(against);
        }
        let directory =
            RuntimeDirectory::open(environ).ok_or_else(|| Against::Untrusted(RuntimeDirectory::path(environ)))?;
        let session = process_state::session().ok_or(Against::Session)?;
        if is_orphaned_job(session) {
            return Err(Against::Orphaned);
        }
        let command_id = key::command_id(target, environ).ok_or(Against::Directory)?;
        let facts = Facts::read(&directory.file(&command_id, ".rec")).unwrap_or_default();
        if facts.is_plain {
            return Err(Against::Learned);
        }
        if facts.asks_sum && key::is_large(environ) {
            return Err(Against::Environment);
        }
        Self::keyed(
            target,
            environ,
            directory,
            session,
            command_id,
            facts,
            process_state::terminals(),
        )
        .ok_or(Against::State)
    }

    /// Does the same for a command that was just learned, in the background: `tty` is the caller's.
    pub(crate) fn of_learned(target: &Target, environ: &[Bytes], tty: String) -> Option<Self> {
        let directory = RuntimeDirectory::open(environ)?;
        let session = process_state::session()?;
        let command_id = key::command_id(target, environ)?;
        let facts = Facts::read(&directory.file(&command_id, ".rec"))?;
        Self::keyed(target, environ, directory, session, command_id, facts, tty)
    }

    fn keyed(
        target: &Target,
        environ: &[Bytes],
        directory: RuntimeDirectory,
        session: Session,
        command_id: String,
        facts: Facts,
        tty: String,
    ) -> Option<Self> {
        let key = key::build(target, &facts, session, &tty, environ)?;
        let key_id = key::hash(&key);
        Some(Self {
            directory,
            command_id,
            key,
            key_id,
            session,
            facts,
            tty,
        })
    }

    pub(crate) fn start<'a>(&'a self, target: &'a Target, environ: &'a [Bytes]) -> Start<'a> {
        Start {
            directory: &self.directory,
            target,
            command_id: &self.command_id,
            key: &self.key,
            key_id: &self.key_id,
            session: self.session,
            tty: &self.tty,
            environ,
        }
    }

    /// Whether an earlier start found that there can be no server of this key.
    pub(crate) fn is_refused(&self) -> bool {
        Facts::read(&self.directory.file(&self.key_id, ".rec")).is_some_and(|facts| facts.is_plain)
    }

    /// Counts this call, which runs plainly; returns whether a server for calls like it may be paid by now.
    pub(crate) fn pays(&self, environ: &[Bytes]) -> bool {
        let file = |suffix| self.directory.file(&self.command_id, suffix);
        let parts = parts::of_call(&self.facts, &self.tty, environ);
        let account = account::count(&file(".calls"), &file(".ledger"), &self.key_id, &parts);
        economy::pays(&account, share(environ))
    }

    /// Reads the calls of the command that ran plainly, and how many more like this one pay for a server. Counts none.
    pub(crate) fn lacking(&self, environ: &[Bytes]) -> (Calls, Option<u64>) {
        let file = |suffix| self.directory.file(&self.command_id, suffix);
        let calls = Calls::read(&file(".calls"));
        let account = account::read(&calls, &file(".ledger"), &self.key_id);
        (calls, economy::lacking(&account, share(environ)))
    }

    /// Whether a learning run is needed before a server can start.
    pub(crate) fn is_unknown(&self) -> bool {
        Facts::read(&self.directory.file(&self.command_id, ".rec")).is_none()
    }

    pub(crate) fn socket(&self) -> Bytes {
        self.directory.file(&self.key_id, ".sock")
    }

    /// Whether the server has just let a call wait until its time was up: it is stopped, or the machine is too busy.
    /// Its calls run plainly for [`SILENCE_S`] from then on.
    pub(crate) fn is_silent(&self) -> bool {
        stat(&self.silence()).is_some_and(|noted| (0..SILENCE_S).contains(&(now_s() - noted.st_mtime)))
    }

    /// Notes that a call has waited in vain.
    pub(crate) fn note_silence(&self) {
        let path = self.silence();
        unlink(&path);
        close(open(
            &path,
            libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW,
            0o600,
        ));
    }

    /// Forgets it: the server has answered.
    pub(crate) fn forget_silence(&self) {
        unlink(&self.silence());
    }

    fn silence(&self) -> Bytes {
        self.directory.file(&self.key_id, ".silent")
    }
}

fn share(environ: &[Bytes]) -> Share {
    Share::parse(variable(environ, b"UNSNARL_WARM_SPEND"))
}

fn now_s() -> i64 {
    // SAFETY: no memory is passed.
    unsafe { libc::time(core::ptr::null_mut()) }
}

/// Whether a terminal could stop this job for good.
pub(crate) fn is_orphaned_job(session: Session) -> bool {
    match session {
        Session::Shared(leader) => job::is_orphaned(leader),
        Session::Detached => false,
    }
}
