//! PostgreSQL: functions in a schema of ours, one transaction each, and notifications over the same connection.
//!
//! Renewals have a connection of their own: a server answers a connection's statements one after the other, and one
//! that waits for a queue's lock, or for the disk, would keep a renewal behind it waiting until the lease is lost.
//!
//! Statements are never prepared by name, so a pooler cannot mix them up. A pooler in transaction mode does not pass
//! notifications on, though: that is found out with a second connection when the first is made, and refused.
//!
//! Things that do not work: session-level advisory locks. They belong to the server's process, so a pooler hands them
//! to strangers, and nobody can say when a holder that is cut off from the server loses one.
//!
//! Invariant: the main connection listens to the client's channel and to those of all watched cells before anybody
//! can use it.

mod connection;

use std::cell::{Cell as StdCell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row as SqlRow};

use super::{check_after_ms, other_limit};
use crate::failure::{Failure, Outcome, chain};
use crate::identity::Identity;
use crate::name::unescape;
use crate::port::{Cell, Event, Kind, Row, Standing, Store, Ticket};
use crate::target::Target;
use connection::{Lane, Slot};

/// A parameter with its type: nothing is looked up or prepared.
type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// PostgreSQL.
pub(crate) struct Postgres {
    target: Target,
    identity: Identity,
    main: Slot,
    renewals: Slot,
    watched: RefCell<BTreeSet<String>>,
    events: mpsc::UnboundedSender<Event>,
    number: StdCell<u64>,
    is_proven: StdCell<bool>,
    probed: Rc<Notify>,
}

impl Postgres {
    pub(crate) fn new(target: Target, identity: Identity, events: mpsc::UnboundedSender<Event>) -> Rc<Self> {
        Rc::new(Self {
            target,
            identity,
            main: Slot::default(),
            renewals: Slot::default(),
            watched: RefCell::new(BTreeSet::new()),
            events,
            number: StdCell::new(0),
            is_proven: StdCell::new(false),
            probed: Rc::new(Notify::new()),
        })
    }

    /// Calls a function of the schema.
    async fn call(&self, call: &str, parameters: &[Parameter<'_>]) -> Outcome<Vec<SqlRow>> {
        self.call_over(Lane::Main, call, parameters).await
    }

    async fn call_over(&self, lane: Lane, call: &str, parameters: &[Parameter<'_>]) -> Outcome<Vec<SqlRow>> {
        let client = self.connection(lane).await?;
        self.query(&client, &format!("SELECT * FROM unsnarl_cluster_1.{call}"), parameters)
            .await
    }

    async fn query(&self, client: &Rc<Client>, sql: &str, parameters: &[Parameter<'_>]) -> Outcome<Vec<SqlRow>> {
        let outcome = client.query_typed(sql, parameters).await;
        outcome.map_err(|error| self.failure(Some(client), &error))
    }

    /// Calls a function that returns one value.
    async fn value<T>(&self, call: &str, parameters: &[Parameter<'_>]) -> Outcome<T>
    where
        T: for<'a> tokio_postgres::types::FromSql<'a>,
    {
        first(&self.call(call, parameters).await?)
    }

    /// Sorts an error into those that another try may heal, and the others; lets go of a client that is useless.
    fn failure(&self, client: Option<&Rc<Client>>, error: &Error) -> Failure {
        let place = self.target.place_words();
        let let_go = || {
            let slots = [&self.main, &self.renewals];
            client.map(|client| slots.iter().for_each(|slot| slot.let_go(client)))
        };
        let Some(server) = error.as_db_error() else {
            let_go();
            let words = chain(error);
            if let Some(what) = words.strip_prefix("invalid configuration: ") {
                // Of the client's own making: the server asks for a password, for instance, and there is none.
                return Failure::refused(format!("the store at {place} refuses: {what}"));
            }
            return Failure::unavailable(format!("the store at {place} cannot be reached: {}", chain(error)));
        };
        // Connection exceptions, resources, an operator's doing, a failed transaction (SQLSTATE, appendix A).
        let code = server.code().code();
        if ["08", "53", "57", "40", "25"]
            .iter()
            .any(|class| code.starts_with(class))
        {
            let_go();
            return Failure::unavailable(format!("the store at {place} does not serve now: {}", server.message()));
        }
        Failure::refused(format!("the store at {place} refuses: {}", server.message()))
    }

    fn namespace(&self) -> Parameter<'_> {
        (&self.target.namespace, Type::TEXT)
    }
}

impl Store for Postgres {
    async fn connect(&self) -> Outcome<()> {
        self.connection(Lane::Main).await.map(drop)
    }

    fn reset(&self) {
        self.main.clear();
    }

    fn reset_renewals(&self) {
        self.renewals.clear();
    }

    fn hears_late_answers(&self) -> bool {
        true
    }

    fn disconnected(&self, connection: u64) {
        if self.number.get() == connection {
            self.reset();
        }
    }

    async fn open(&self, session: &str, ttl_ms: u64) -> Outcome<()> {
        let (ttl, words) = (ttl_ms.cast_signed(), self.identity.words());
        let parameters: [Parameter<'_>; 3] = [(&session, Type::TEXT), (&ttl, Type::INT8), (&words, Type::TEXT)];
        self.call("open($1, $2, $3)", &parameters).await.map(drop)
    }

    async fn renew(&self, session: &str, ttl_ms: u64) -> Outcome<bool> {
        let ttl = ttl_ms.cast_signed();
        let parameters: [Parameter<'_>; 2] = [(&session, Type::TEXT), (&ttl, Type::INT8)];
        // A server or a pooler that has no connection left costs no lease: the main one is there.
        let limit = Duration::from_millis(ttl_ms / 6);
        let lane = match timeout(limit, self.connection(Lane::Renewals)).await {
            Ok(Ok(_)) => Lane::Renewals,
            _ => Lane::Main,
        };
        first(&self.call_over(lane, "renew($1, $2)", &parameters).await?)
    }

    async fn close(&self, session: &str) -> Outcome<()> {
        self.call("close($1)", &[(&session, Type::TEXT)]).await.map(drop)
    }

    async fn enqueue(&self, ticket: &Ticket, is_waiting: bool) -> Outcome<Standing> {
        let (queue, limit) = (ticket.queue(), ticket.limit.cast_signed());
        let parameters: [Parameter<'_>; 7] = [
            self.namespace(),
            (&queue, Type::TEXT),
            (&ticket.id, Type::TEXT),
            (&ticket.session, Type::TEXT),
            (&ticket.is_shared, Type::BOOL),
            (&limit, Type::INT4),
            (&is_waiting, Type::BOOL),
        ];
        let rows = self.call("enqueue($1, $2, $3, $4, $5, $6, $7)", &parameters).await?;
        rows.first()
            .map_or_else(|| Err(Failure::unavailable("the store has answered nothing")), standing)
    }

    async fn leave(&self, ticket: &Ticket) -> Outcome<()> {
        let queue = ticket.queue();
        let parameters = [self.namespace(), (&queue, Type::TEXT), (&ticket.id, Type::TEXT)];
        self.call("leave($1, $2, $3)", &parameters).await.map(drop)
    }

    fn is_connected(&self) -> bool {
        self.main.client().is_some()
    }

    async fn keep_only(&self, sessions: &[String], tickets: &[String], next_number: u64) -> Outcome<()> {
        let number = next_number.cast_signed();
        let parameters: [Parameter<'_>; 4] = [
            self.namespace(),
            (&sessions, Type::TEXT_ARRAY),
            (&tickets, Type::TEXT_ARRAY),
            (&number, Type::INT8),
        ];
        self.call("keep_only($1, $2, $3, $4)", &parameters).await.map(drop)
    }

    async fn read(&self, cell: &str) -> Outcome<Cell> {
        let client = self.connection(Lane::Main).await?;
        let sql = "SELECT version, content FROM unsnarl_cluster_1.cell WHERE namespace = $1 AND name = $2";
        let parameters = [self.namespace(), (&cell, Type::TEXT)];
        let rows = self.query(&client, sql, &parameters).await?;
        Ok(rows.first().map_or_else(Cell::default, |row| Cell {
            version: row.get::<_, i64>(0).cast_unsigned(),
            text: row.get(1),
        }))
    }

    async fn swap(&self, cell: &str, version: u64, text: &str) -> Outcome<bool> {
        let version = version.cast_signed();
        let parameters: [Parameter<'_>; 4] = [
            self.namespace(),
            (&cell, Type::TEXT),
            (&version, Type::INT8),
            (&text, Type::TEXT),
        ];
        self.value("swap($1, $2, $3, $4)", &parameters).await
    }

    async fn watch(&self, cell: &str) -> Outcome<()> {
        self.watched.borrow_mut().insert(cell.to_owned());
        self.call("watch($1, $2)", &[self.namespace(), (&cell, Type::TEXT)])
            .await
            .map(drop)
    }

    async fn unwatch(&self, cell: &str) -> Outcome<()> {
        self.watched.borrow_mut().remove(cell);
        self.call("unwatch($1, $2)", &[self.namespace(), (&cell, Type::TEXT)])
            .await
            .map(drop)
    }

    async fn are_alive(&self, sessions: &[String]) -> Outcome<Vec<bool>> {
        let client = self.connection(Lane::Main).await?;
        let sql = "SELECT NOT unsnarl_cluster_1.is_over(id) FROM unnest($1) WITH ORDINALITY AS s (id, n) ORDER BY n";
        let rows = self.query(&client, sql, &[(&sessions, Type::TEXT_ARRAY)]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    async fn list(&self) -> Outcome<Vec<Row>> {
        let client = self.connection(Lane::Main).await?;
        let sql = "SELECT t.id, t.queue, t.is_shared, t.fence, (extract(epoch FROM t.since) * 1000)::bigint, s.client \
                   FROM unsnarl_cluster_1.ticket t JOIN unsnarl_cluster_1.session s ON s.id = t.session \
                   WHERE t.namespace = $1 AND unsnarl_cluster_1.is_alive(s.id) ORDER BY t.queue, t.place";
        let rows = self.query(&client, sql, &[self.namespace()]).await?;
        Ok(rows.iter().filter_map(read_row).collect())
    }

    async fn remove(&self, kind: Kind, name: &str) -> Outcome<u64> {
        let queue = format!("{}:{name}", kind.letter());
        let broken: i64 = self
            .value("break_($1, $2)", &[self.namespace(), (&queue, Type::TEXT)])
            .await?;
        Ok(broken.cast_unsigned())
    }
}

/// Reads the one value that a function has returned.
fn first<T>(rows: &[SqlRow]) -> Outcome<T>
where
    T: for<'a> tokio_postgres::types::FromSql<'a>,
{
    rows.first()
        .map(|row| row.get(0))
        .ok_or_else(|| Failure::unavailable("the store has answered nothing"))
}

fn standing(row: &SqlRow) -> Outcome<Standing> {
    let number = |place: usize| row.get::<_, Option<i64>>(place).unwrap_or(0).max(0).cast_unsigned();
    Ok(match row.get::<_, &str>(0) {
        "granted" => Standing::Granted { fence: number(1) },
        "queued" => Standing::Queued {
            check_after_ms: check_after_ms(number(1), number(2)),
        },
        "busy" => Standing::Busy,
        "ended" => Standing::NoSession,
        _ => return Err(other_limit(number(1))),
    })
}

fn read_row(row: &SqlRow) -> Option<Row> {
    let (letter, name) = row.get::<_, &str>(1).split_once(':')?;
    let (host, pid) = Identity::read(row.get(5));
    Some(Row {
        kind: Kind::of(letter)?.word(),
        name: unescape(name),
        is_shared: row.get(2),
        fence: row.get::<_, Option<i64>>(3).map(i64::cast_unsigned),
        since_ms: row.get::<_, Option<i64>>(4).unwrap_or(0).cast_unsigned(),
        host,
        pid,
        ticket: row.get(0),
    })
}
