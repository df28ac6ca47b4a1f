//! What the engine asks of a store, and what a store tells the engine.
//!
//! Every request can be repeated: a session and a ticket have names that the client chose, so a store that gets one
//! twice answers the second time what it answered the first time. That is how a request whose answer was lost is
//! found out about.
//!
//! Invariant: a store grants a queue's tickets in their order; a ticket's fence is higher than that of any ticket of
//! the queue that was granted before; a ticket of a session that has ended is never granted.

use crate::failure::Outcome;

/// What a queue's tickets ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any number of tickets up to `Ticket::limit` at once; a lock's limit is 1.
    Lock,
    Semaphore,
    /// Shared tickets together, or one exclusive.
    RwLock,
    Leader,
}

impl Kind {
    pub(crate) fn letter(self) -> char {
        match self {
            Self::Lock => 'l',
            Self::Semaphore => 's',
            Self::RwLock => 'r',
            Self::Leader => 'e',
        }
    }

    pub(crate) fn of(word: &str) -> Option<Self> {
        Some(match word {
            "lock" | "l" => Self::Lock,
            "semaphore" | "s" => Self::Semaphore,
            "rwlock" | "r" => Self::RwLock,
            "leader" | "e" => Self::Leader,
            _ => return None,
        })
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Semaphore => "semaphore",
            Self::RwLock => "rwlock",
            Self::Leader => "leader",
        }
    }
}

/// A place in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) kind: Kind,
    /// The primitive's name, escaped.
    pub(crate) name: String,
    pub(crate) is_shared: bool,
    pub(crate) limit: u32,
    pub(crate) session: String,
    /// `CLIENT.SESSION.NUMBER.MODE`, with `x` or `s` for the mode: unique for all time.
    pub(crate) id: String,
}

impl Ticket {
    /// The queue's name: kinds have names of their own.
    pub(crate) fn queue(&self) -> String {
        format!("{}:{}", self.kind.letter(), self.name)
    }
}

/// Where a ticket stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Granted {
        fence: u64,
    },
    /// In the queue; whatever the store tells meanwhile, the engine asks again after that time, since a holder may die.
    Queued {
        check_after_ms: u64,
    },
    /// Not granted at once, and not to be queued.
    Busy,
    /// The session has ended.
    NoSession,
}

/// A piece of text that clients change by compare-and-swap, and watch: events and barriers are made of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    /// 0 for one that does not exist.
    pub(crate) version: u64,
    pub(crate) text: String,
}

/// A ticket, as `unsnarl cluster list` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) kind: &'static str,
    /// The name as the program passed it.
    pub(crate) name: String,
    pub(crate) is_shared: bool,
    /// None for one that waits.
    pub(crate) fence: Option<u64>,
    /// Milliseconds since 1970, by the store's clock or the holder's; 0 where it is not known.
    pub(crate) since_ms: u64,
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) ticket: String,
}

/// What a store tells without being asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Granted {
        ticket: String,
        fence: u64,
    },
    /// Ask again: what the ticket waited for may have happened.
    Changed {
        ticket: String,
    },
    /// The ticket was taken away by an operator.
    Broken {
        ticket: String,
    },
    CellChanged {
        cell: String,
    },
    /// The connection of that number has ended.
    Disconnected {
        connection: u64,
    },
    /// The connection was lost and is there again: anything may have been missed.
    Reconnected,
}

/// One store. All methods run on the native thread; each may be dropped before it is done.
pub(crate) trait Store: 'static {
    /// Connects and checks that the store can serve us.
    async fn connect(&self) -> Outcome<()>;
    /// Drops a connection that has stopped answering.
    fn reset(&self);
    /// Drops the connection that renewals take, where that is another.
    fn reset_renewals(&self) {
        self.reset();
    }
    /// Tells whether a renewal may still be answered over a connection that was dropped, and does no harm if it fails.
    fn hears_late_answers(&self) -> bool {
        false
    }
    /// Notes that a connection has ended, if it is still the latest.
    fn disconnected(&self, connection: u64);
    /// Tells whether the connection that events come over is there.
    fn is_connected(&self) -> bool {
        true
    }
    /// Begins a session, or begins its time to live again.
    async fn open(&self, session: &str, ttl_ms: u64) -> Outcome<()>;
    /// Begins the time to live again; false if the session has ended.
    async fn renew(&self, session: &str, ttl_ms: u64) -> Outcome<bool>;
    async fn close(&self, session: &str) -> Outcome<()>;
    /// Puts a ticket into its queue, if it is not there already, and tells where it stands.
    async fn enqueue(&self, ticket: &Ticket, is_waiting: bool) -> Outcome<Standing>;
    /// Hears of a grant that was told by an event, and waits until it is as durable as the URL asks for.
    async fn confirm(&self, _ticket: &Ticket, _fence: u64) -> Outcome<()> {
        Ok(())
    }
    /// Takes a ticket out, whether it was granted or not, and grants what can be granted then.
    async fn leave(&self, ticket: &Ticket) -> Outcome<()>;
    /// Takes out what `leave` has taken out already and a crash of the store has brought back: the tickets of these
    /// sessions that are none of `tickets`, and have a lower number than the next.
    async fn keep_only(&self, _sessions: &[String], _tickets: &[String], _next_number: u64) -> Outcome<()> {
        Ok(())
    }
    async fn read(&self, cell: &str) -> Outcome<Cell>;
    /// Replaces the text if the version is still the same; tells whether it was.
    async fn swap(&self, cell: &str, version: u64, text: &str) -> Outcome<bool>;
    /// From now on a change of the cell is an event.
    async fn watch(&self, cell: &str) -> Outcome<()>;
    async fn unwatch(&self, cell: &str) -> Outcome<()>;
    /// Tells of each session whether it is alive.
    async fn are_alive(&self, sessions: &[String]) -> Outcome<Vec<bool>>;
    async fn list(&self) -> Outcome<Vec<Row>>;
    /// Takes the holders of a queue away from it; returns how many there were.
    async fn remove(&self, kind: Kind, name: &str) -> Outcome<u64>;
}
