//! PostgreSQL: functions in a schema of ours, one transaction each, and notifications over the same connection.
//!
//! Statements are never prepared by name, so a pooler cannot mix them up. A pooler in transaction mode does not pass
//! notifications on, though: that is found out with a second connection when the first is made, and refused.
//!
//! Things that do not work: session-level advisory locks. They belong to the server's process, so a pooler hands them
//! to strangers, and nobody can say when a holder that is cut off from the server loses one.
//!
//! Invariant: the connection listens to the client's channel and to those of all watched cells before anybody can
//! use it.

use std::cell::{Cell as StdCell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, NoTls, Row as SqlRow};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{check_after_ms, other_limit, read_message};
use crate::failure::{Failure, Outcome, chain};
use crate::identity::Identity;
use crate::name::unescape;
use crate::port::{Cell, Event, Kind, Row, Standing, Store, Ticket};
use crate::target::Target;
use crate::tls;

const SCHEMA: &str = include_str!("postgres.sql");

/// The function that the newest version of the schema has, to find out whether it is there.
const NEWEST: &str = "unsnarl_cluster_1.unwatch(text,text)";

/// The first version that is tried: `server_version_num`.
const OLDEST: i32 = 120_000;

/// How long a notification may take through a direct connection before a pooler is suspected.
const PROBE: Duration = Duration::from_secs(2);

/// A parameter with its type: nothing is looked up or prepared.
type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// PostgreSQL.
pub(crate) struct Postgres {
    target: Target,
    identity: Identity,
    connection: RefCell<Option<Rc<Client>>>,
    is_connecting: Mutex<()>,
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
            connection: RefCell::new(None),
            is_connecting: Mutex::new(()),
            watched: RefCell::new(BTreeSet::new()),
            events,
            number: StdCell::new(0),
            is_proven: StdCell::new(false),
            probed: Rc::new(Notify::new()),
        })
    }

    async fn connection(&self) -> Outcome<Rc<Client>> {
        if let Some(connection) = &*self.connection.borrow() {
            return Ok(Rc::clone(connection));
        }
        let _turn = self.is_connecting.lock().await;
        if let Some(connection) = &*self.connection.borrow() {
            return Ok(Rc::clone(connection));
        }
        let connection = Rc::new(self.open_connection(true).await?);
        self.prepare(&connection).await?;
        *self.connection.borrow_mut() = Some(Rc::clone(&connection));
        if self.number.get() > 1 {
            let _ = self.events.send(Event::Reconnected);
        }
        Ok(connection)
    }

    /// Opens a connection; what a second one hears (`is_main` is false) is ignored.
    async fn open_connection(&self, is_main: bool) -> Outcome<Client> {
        let mut config = Config::new();
        for (host, port) in &self.target.hosts {
            config.host(host).port(*port);
        }
        config
            .connect_timeout(self.target.patience)
            .application_name("unsnarl-cluster");
        if let Some(user) = &self.target.user {
            config.user(user);
        }
        if !self.target.password.reveal().is_empty() {
            config.password(self.target.password.reveal());
        }
        let database = if self.target.database.is_empty() {
            "postgres"
        } else {
            &self.target.database
        };
        config.dbname(database);
        match &self.target.tls {
            None => {
                config.ssl_mode(SslMode::Disable);
                let (client, connection) = config.connect(NoTls).await.map_err(|error| self.failure(&error))?;
                self.drive(connection, is_main);
                Ok(client)
            }
            Some(paths) => {
                config.ssl_mode(SslMode::Require);
                let tls = MakeRustlsConnect::new(tls::for_postgres(paths)?);
                let (client, connection) = config.connect(tls).await.map_err(|error| self.failure(&error))?;
                self.drive(connection, is_main);
                Ok(client)
            }
        }
    }

    /// Runs a connection's input and output in a task, and passes on what it hears.
    fn drive<S, T>(&self, mut connection: Connection<S, T>, is_main: bool)
    where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
        T: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let number = self.number.get() + u64::from(is_main);
        self.number.set(number);
        let (events, probed) = (self.events.clone(), Rc::clone(&self.probed));
        drop(tokio::task::spawn_local(async move {
            let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
            while let Some(Ok(message)) = messages.next().await {
                let AsyncMessage::Notification(message) = message else {
                    continue;
                };
                if !is_main {
                    continue;
                }
                if message.payload() == "probe" {
                    probed.notify_one();
                } else if let Some(event) = read_message(message.payload()) {
                    let _ = events.send(event);
                }
            }
            if is_main {
                let _ = events.send(Event::Disconnected { connection: number });
            }
        }));
    }

    /// Checks the server, makes the schema where it is missing, and listens.
    async fn prepare(&self, client: &Client) -> Outcome<()> {
        let fail = |error: Error| self.failure(&error);
        let sql = "SELECT current_setting('server_version_num')::int, current_setting('default_transaction_isolation'), \
                   to_regprocedure($1) IS NOT NULL, pg_is_in_recovery()";
        let row = client
            .query_typed_one(sql, &[(&NEWEST, Type::TEXT)])
            .await
            .map_err(fail)?;
        let (version, isolation, has_schema): (i32, &str, bool) = (row.get(0), row.get(1), row.get(2));
        if version < OLDEST {
            let (is, oldest) = (version / 10_000, OLDEST / 10_000);
            return Err(Failure::refused(format!(
                "the store is PostgreSQL {is}; {oldest} is the oldest that serves"
            )));
        }
        if row.get::<_, bool>(3) {
            return Err(Failure::unavailable(format!(
                "the server at {} is a standby",
                self.target.place_words()
            )));
        }
        if isolation != "read committed" {
            let words = format!("default_transaction_isolation is {isolation:?}; the store needs \"read committed\"");
            return Err(Failure::refused(words));
        }
        if !has_schema {
            client.batch_execute(SCHEMA).await.map_err(|error| {
                let failure = self.failure(&error);
                Failure {
                    message: format!("{}, for the schema unsnarl_cluster_1", failure.message),
                    ..failure
                }
            })?;
        }
        let listen = format!("LISTEN unsnarl_{}", self.identity.client);
        client.batch_execute(&listen).await.map_err(fail)?;
        let watched: Vec<String> = self.watched.borrow().iter().cloned().collect();
        for cell in &watched {
            self.run(
                client,
                "watch($1, $2)",
                &[(&self.target.namespace, Type::TEXT), (cell, Type::TEXT)],
            )
            .await?;
        }
        self.prove().await
    }

    /// Finds out, once, whether notifications arrive: behind a pooler in transaction mode they do not.
    async fn prove(&self) -> Outcome<()> {
        if self.is_proven.get() {
            return Ok(());
        }
        let second = self.open_connection(false).await?;
        let sql = format!("SELECT pg_notify('unsnarl_{}', 'probe')", self.identity.client);
        second
            .query_typed(&sql, &[])
            .await
            .map_err(|error| self.failure(&error))?;
        if timeout(PROBE.min(self.target.patience), self.probed.notified())
            .await
            .is_err()
        {
            let place = self.target.place_words();
            return Err(Failure::refused(format!(
                "no notification arrives from the store at {place}: a pooler in transaction mode stands between; \
                 connect to PostgreSQL itself, or to a pool in session mode"
            )));
        }
        self.is_proven.set(true);
        Ok(())
    }

    async fn run(&self, client: &Client, call: &str, parameters: &[Parameter<'_>]) -> Outcome<Vec<SqlRow>> {
        let sql = format!("SELECT * FROM unsnarl_cluster_1.{call}");
        client
            .query_typed(&sql, parameters)
            .await
            .map_err(|error| self.failure(&error))
    }

    /// Calls a function of the schema.
    async fn call(&self, call: &str, parameters: &[Parameter<'_>]) -> Outcome<Vec<SqlRow>> {
        let client = self.connection().await?;
        self.run(&client, call, parameters).await
    }

    /// Calls a function that returns one value.
    async fn value<T>(&self, call: &str, parameters: &[Parameter<'_>]) -> Outcome<T>
    where
        T: for<'a> tokio_postgres::types::FromSql<'a>,
    {
        let rows = self.call(call, parameters).await?;
        rows.first()
            .map(|row| row.get(0))
            .ok_or_else(|| Failure::unavailable("the store has answered nothing"))
    }

    /// Sorts an error into those that another try may heal, and the others; drops a connection that is useless.
    fn failure(&self, error: &Error) -> Failure {
        let place = self.target.place_words();
        let Some(server) = error.as_db_error() else {
            self.reset();
            return Failure::unavailable(format!("the store at {place} cannot be reached: {}", chain(error)));
        };
        // Connection exceptions, resources, an operator's doing, a failed transaction (SQLSTATE, appendix A).
        let code = server.code().code();
        if ["08", "53", "57", "40", "25"]
            .iter()
            .any(|class| code.starts_with(class))
        {
            self.reset();
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
        self.connection().await.map(drop)
    }

    fn reset(&self) {
        *self.connection.borrow_mut() = None;
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
        self.value(
            "renew($1, $2)",
            &[(&session, Type::TEXT), (&ttl_ms.cast_signed(), Type::INT8)],
        )
        .await
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

    async fn read(&self, cell: &str) -> Outcome<Cell> {
        let client = self.connection().await?;
        let sql = "SELECT version, content FROM unsnarl_cluster_1.cell WHERE namespace = $1 AND name = $2";
        let parameters = [self.namespace(), (&cell, Type::TEXT)];
        let row = client
            .query_typed_opt(sql, &parameters)
            .await
            .map_err(|error| self.failure(&error))?;
        Ok(row.map_or_else(Cell::default, |row| Cell {
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
        let client = self.connection().await?;
        let sql = "SELECT unsnarl_cluster_1.is_alive(id) FROM unnest($1) WITH ORDINALITY AS s (id, n) ORDER BY n";
        let rows = client
            .query_typed(sql, &[(&sessions, Type::TEXT_ARRAY)])
            .await
            .map_err(|error| self.failure(&error))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    async fn list(&self) -> Outcome<Vec<Row>> {
        let client = self.connection().await?;
        let sql = "SELECT t.id, t.queue, t.is_shared, t.fence, (extract(epoch FROM t.since) * 1000)::bigint, s.client \
                   FROM unsnarl_cluster_1.ticket t JOIN unsnarl_cluster_1.session s ON s.id = t.session \
                   WHERE t.namespace = $1 AND s.expires > clock_timestamp() ORDER BY t.queue, t.place";
        let rows = client
            .query_typed(sql, &[self.namespace()])
            .await
            .map_err(|error| self.failure(&error))?;
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
