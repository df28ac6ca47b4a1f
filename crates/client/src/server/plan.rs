//! The plan of a call: which server may take it, or that none may.
//!
//! Must never connect to a server, nor start one.
//!
//! Invariant: every reason to run a command plainly that is known before a server answers is found here.

use super::facts::Record;
use super::key;
use super::process_state::{self, Session};
use super::runtime_directory::House;
use super::start::Start;
use crate::job;
use crate::syscall::Bytes;
use crate::target::Target;

/// All that is known about a call before a server is asked.
pub(crate) struct Plan {
    pub(crate) house: House,
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
        let house = House::open(environ)?;
        let session = process_state::session()?;
        if is_nobodys_job(session) {
            return None;
        }
        let command_id = key::command_id(target, environ)?;
        let record = Record::read(&house.file(&command_id, ".rec")).unwrap_or_default();
        if record.is_plain {
            return None;
        }
        Self::keyed(
            target,
            environ,
            house,
            session,
            command_id,
            &record,
            process_state::terminals(),
        )
    }

    /// The same for a command that was just learned, in the background: `tty` is the caller's.
    pub(crate) fn of_learned(target: &Target, environ: &[Bytes], tty: String) -> Option<Self> {
        let house = House::open(environ)?;
        let session = process_state::session()?;
        let command_id = key::command_id(target, environ)?;
        let record = Record::read(&house.file(&command_id, ".rec"))?;
        Self::keyed(target, environ, house, session, command_id, &record, tty)
    }

    fn keyed(
        target: &Target,
        environ: &[Bytes],
        house: House,
        session: Session,
        command_id: String,
        record: &Record,
        tty: String,
    ) -> Option<Self> {
        let key = key::build(target, record, session, &tty, environ)?;
        let key_id = key::hash(&key);
        Some(Self {
            house,
            command_id,
            key,
            key_id,
            session,
            tty,
        })
    }

    pub(crate) fn start<'a>(&'a self, target: &'a Target, environ: &'a [Bytes]) -> Start<'a> {
        Start {
            house: &self.house,
            target,
            command_id: &self.command_id,
            key: &self.key,
            key_id: &self.key_id,
            session: self.session,
            tty: &self.tty,
            environ,
        }
    }

    /// Whether somebody has looked, and found that there can be no server of this key.
    pub(crate) fn is_refused(&self) -> bool {
        Record::read(&self.house.file(&self.key_id, ".rec")).is_some_and(|record| record.is_plain)
    }

    pub(crate) fn socket(&self) -> Bytes {
        self.house.file(&self.key_id, ".sock")
    }
}

/// Whether a terminal could stop this job, and nobody continue it.
pub(crate) fn is_nobodys_job(session: Session) -> bool {
    match session {
        Session::Shared(leader) => job::is_orphaned(leader),
        Session::Detached => false,
    }
}
