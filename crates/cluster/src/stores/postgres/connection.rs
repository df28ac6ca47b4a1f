//! The two connections to PostgreSQL: how each is made, checked and let go of.
//!
//! Invariant: what is in a slot has passed all checks.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{Parameter, Postgres};
use crate::failure::{Failure, Outcome};
use crate::port::Event;
use crate::runner::spawn;
use crate::stores::read_message;
use crate::tls;

const SCHEMA: &str = include_str!("schema.sql");

/// The function that the newest version of the schema has, to find out whether it is there.
const NEWEST: &str = "unsnarl_cluster_1.keep_only(text,text[],text[],bigint)";

/// The first version that is tried: `server_version_num`.
const OLDEST: i32 = 120_000;

/// How long a notification may take through a direct connection before a pooler is suspected.
const PROBE: Duration = Duration::from_secs(2);

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Everything else, and the notifications.
    Main,
    Renewals,
}

/// The place of one connection.
#[derive(Default)]
pub(super) struct Slot {
    client: RefCell<Option<Rc<Client>>>,
    is_connecting: Mutex<()>,
}

impl Slot {
    pub(super) fn client(&self) -> Option<Rc<Client>> {
        self.client
            .borrow()
            .as_ref()
            .filter(|client| !client.is_closed())
            .map(Rc::clone)
    }

    pub(super) fn clear(&self) {
        *self.client.borrow_mut() = None;
    }

    /// Clears it if it has that client.
    pub(super) fn let_go(&self, useless: &Rc<Client>) {
        let is_there = self
            .client
            .borrow()
            .as_ref()
            .is_some_and(|client| Rc::ptr_eq(client, useless));
        if is_there {
            self.clear();
        }
    }
}

impl Postgres {
    /// Returns the connection for something, and makes it first where there is none.
    pub(super) async fn connection(&self, lane: Lane) -> Outcome<Rc<Client>> {
        let slot = match lane {
            Lane::Main => &self.main,
            Lane::Renewals => &self.renewals,
        };
        if let Some(client) = slot.client() {
            return Ok(client);
        }
        let _turn = slot.is_connecting.lock().await;
        if let Some(client) = slot.client() {
            return Ok(client);
        }
        let client = Rc::new(self.open_connection(lane == Lane::Main).await?);
        if lane == Lane::Main {
            self.prepare(&client).await?;
        }
        *slot.client.borrow_mut() = Some(Rc::clone(&client));
        if lane == Lane::Main && self.number.get() > 1 {
            let _ = self.events.send(Event::Reconnected);
        }
        Ok(client)
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
        if self.target.hosts.len() > 1 {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
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
                let (client, connection) = config
                    .connect(NoTls)
                    .await
                    .map_err(|error| self.failure(None, &error))?;
                self.drive(connection, is_main);
                Ok(client)
            }
            Some(paths) => {
                config.ssl_mode(SslMode::Require);
                let tls = MakeRustlsConnect::new(tls::for_postgres(paths)?);
                let (client, connection) = config.connect(tls).await.map_err(|error| self.failure(None, &error))?;
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
        spawn(async move {
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
        });
    }

    /// Checks the server, makes the schema where it is missing, and listens.
    async fn prepare(&self, client: &Rc<Client>) -> Outcome<()> {
        let sql = "SELECT current_setting('server_version_num')::int, current_setting('default_transaction_isolation'), \
                   to_regprocedure($1) IS NOT NULL, pg_is_in_recovery()";
        let rows = self.query(client, sql, &[(&NEWEST, Type::TEXT)]).await?;
        let row = rows
            .first()
            .ok_or_else(|| Failure::unavailable("the store has answered nothing"))?;
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
                let failure = self.failure(Some(client), &error);
                Failure {
                    message: format!("{}, for the schema unsnarl_cluster_1", failure.message),
                    ..failure
                }
            })?;
        }
        self.query(client, &format!("LISTEN unsnarl_{}", self.identity.client), &[])
            .await?;
        let watched: Vec<String> = self.watched.borrow().iter().cloned().collect();
        for cell in &watched {
            let parameters: [Parameter<'_>; 2] = [self.namespace(), (cell, Type::TEXT)];
            self.query(client, "SELECT unsnarl_cluster_1.watch($1, $2)", &parameters)
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
        self.query(&Rc::new(second), &sql, &[]).await?;
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
}
