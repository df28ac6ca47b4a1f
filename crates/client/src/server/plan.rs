//! The plan of a call: which server may take it, or that none may.
//!
//! Must never connect to a server, nor start one.
//!
//! Invariant: every reason to run a command plainly that is known before a server answers is found here.

use super::facts::Facts;
use super::key;
use super::process_state::{self, Session};
use super::runtime_directory::RuntimeDirectory;
use super::start::Start;
use crate::job;
use crate::syscall::Bytes;
use crate::target::Target;

/// Everything that is known about a call before a server is asked.
pub(crate) struct Plan {
    pub(crate) directory: RuntimeDirectory,
    pub(crate) command_id: String,
    pub(crate) key: Bytes,
    pub(crate) key_id: String,
    pub(crate) session: Session,
    tty: String,
}

impl Plan {
    /// Finds the server for a call; `None` if the call must run plainly.
    pub(crate) fn make(target: &Target, environ: &[Bytes]) -> Option<Self> {
        if key::forbids_server(target, environ) {
            return None;
        }
        let directory = RuntimeDirectory::open(environ)?;
        let session = process_state::session()?;
        if is_orphaned_job(session) {
            return None;
        }
        let command_id = key::command_id(target, environ)?;
        let facts = Facts::read(&directory.file(&command_id, ".rec")).unwrap_or_default();
        if facts.is_plain {
            return None;
        }
        Self::keyed(
            target,
            environ,
            directory,
            session,
            command_id,
            &facts,
            process_state::terminals(),
        )
    }

    /// Does the same for a command that was just learned, in the background: `tty` is the caller's.
    pub(crate) fn of_learned(target: &Target, environ: &[Bytes], tty: String) -> Option<Self> {
        let directory = RuntimeDirectory::open(environ)?;
        let session = process_state::session()?;
        let command_id = key::command_id(target, environ)?;
        let facts = Facts::read(&directory.file(&command_id, ".rec"))?;
        Self::keyed(target, environ, directory, session, command_id, &facts, tty)
    }

    fn keyed(
        target: &Target,
        environ: &[Bytes],
        directory: RuntimeDirectory,
        session: Session,
        command_id: String,
        facts: &Facts,
        tty: String,
    ) -> Option<Self> {
        let key = key::build(target, facts, session, &tty, environ)?;
        let key_id = key::hash(&key);
        Some(Self {
            directory,
            command_id,
            key,
            key_id,
            session,
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

    pub(crate) fn socket(&self) -> Bytes {
        self.directory.file(&self.key_id, ".sock")
    }
}

/// Whether a terminal could stop this job for good.
pub(crate) fn is_orphaned_job(session: Session) -> bool {
    match session {
        Session::Shared(leader) => job::is_orphaned(leader),
        Session::Detached => false,
    }
}
