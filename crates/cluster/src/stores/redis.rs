//! Redis and Valkey: one script, one connection, and pushed messages over it (RESP3).
//!
//! What is promised is a single primary's promise. A primary that loses its data, or a replica that takes its place
//! without having it, may give a lock to a second holder while the first still believes; the fence is higher all
//! the same (see redis.lua). `replicas=N` has a grant wait until N replicas have it; renewals have a connection of
//! their own then, since WAIT stops the one that it is sent over.
//!
//! Invariant: the connection is subscribed to the client's channel and to those of all watched cells before anybody
//! can use it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, ProtocolVersion,
    PushInfo, PushKind, RedisConnectionInfo, RedisError, Value,
};
use tokio::sync::{Mutex, mpsc};

use super::{check_after_ms, other_limit, read_message};
use crate::failure::{Failure, Outcome};
use crate::identity::Identity;
use crate::name::unescape;
use crate::port::{Cell, Event, Kind, Row, Standing, Store, Ticket};
use crate::target::Target;
use crate::tls;

const SCRIPT: &str = include_str!("redis.lua");

/// The first version with RESP3, LPOS and PEXPIRE in scripts that replicate their effects.
const OLDEST: (u32, u32) = (6, 2);

/// Redis and Valkey.
pub(crate) struct Redis {
    target: Target,
    identity: Identity,
    prefix: String,
    connection: RefCell<Option<MultiplexedConnection>>,
    renewals: RefCell<Option<MultiplexedConnection>>,
    is_connecting: Mutex<()>,
    watched: RefCell<BTreeSet<String>>,
    events: mpsc::UnboundedSender<Event>,
    /// Of the latest connection.
    number: std::cell::Cell<u64>,
}

impl Redis {
    pub(crate) fn new(target: Target, identity: Identity, events: mpsc::UnboundedSender<Event>) -> Rc<Self> {
        let prefix = format!("unsnarl:{{{}}}:", target.namespace);
        Rc::new(Self {
            target,
            identity,
            prefix,
            connection: RefCell::new(None),
            renewals: RefCell::new(None),
            is_connecting: Mutex::new(()),
            watched: RefCell::new(BTreeSet::new()),
            events,
            number: std::cell::Cell::new(0),
        })
    }

    async fn connection(&self) -> Outcome<MultiplexedConnection> {
        if let Some(connection) = &*self.connection.borrow() {
            return Ok(connection.clone());
        }
        let _turn = self.is_connecting.lock().await;
        if let Some(connection) = &*self.connection.borrow() {
            return Ok(connection.clone());
        }
        let connection = self.open_connection().await?;
        *self.connection.borrow_mut() = Some(connection.clone());
        if self.number.get() > 1 {
            let _ = self.events.send(Event::Reconnected);
        }
        Ok(connection)
    }

    async fn open_connection(&self) -> Outcome<MultiplexedConnection> {
        let events = self.events.clone();
        let number = self.number.get() + 1;
        self.number.set(number);
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.target.patience))
            .set_response_timeout(Some(self.target.patience))
            .set_push_sender(move |push: PushInfo| hear(&push, number).map_or(Ok(()), |event| events.send(event)));
        let client = self.client()?;
        let mut connection = client
            .get_multiplexed_async_connection_with_config(&config)
            .await
            .map_err(|error| self.failure(&error))?;
        let information: String = Cmd::new()
            .arg("INFO")
            .arg("server")
            .query_async(&mut connection)
            .await
            .map_err(|error| self.failure(&error))?;
        check_version(&information)?;
        let channels: Vec<String> = std::iter::once(format!("{}n:{}", self.prefix, self.identity.client))
            .chain(
                self.watched
                    .borrow()
                    .iter()
                    .map(|cell| format!("{}k:{cell}", self.prefix)),
            )
            .collect();
        connection
            .subscribe(channels)
            .await
            .map_err(|error| self.failure(&error))?;
        Ok(connection)
    }

    fn client(&self) -> Outcome<Client> {
        let (host, port) = self.target.hosts[0].clone();
        let address = match &self.target.tls {
            None => ConnectionAddr::Tcp(host, port),
            Some(_) => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: false,
                tls_params: None,
            },
        };
        let mut settings = RedisConnectionInfo::default()
            .set_db(self.target.database.parse().unwrap_or(0))
            .set_protocol(ProtocolVersion::RESP3)
            .set_skip_set_lib_name();
        if !self.target.password.reveal().is_empty() {
            settings = settings.set_password(self.target.password.reveal());
        }
        if let Some(user) = &self.target.user {
            settings = settings.set_username(user);
        }
        let information: ConnectionInfo = address
            .into_connection_info()
            .map_err(|error| self.failure(&error))?
            .set_redis_settings(settings);
        let client = match &self.target.tls {
            None => Client::open(information),
            Some(paths) => Client::build_with_tls(information, tls::for_redis(paths)?),
        };
        client.map_err(|error| self.failure(&error))
    }

    /// Returns the connection that renewals take.
    async fn renewals(&self) -> Outcome<MultiplexedConnection> {
        if self.target.replicas == 0 {
            return self.connection().await;
        }
        if let Some(connection) = &*self.renewals.borrow() {
            return Ok(connection.clone());
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.target.patience))
            .set_response_timeout(Some(self.target.patience));
        let client = self.client()?;
        let outcome = client.get_multiplexed_async_connection_with_config(&config).await;
        let connection = outcome.map_err(|error| self.failure(&error))?;
        *self.renewals.borrow_mut() = Some(connection.clone());
        Ok(connection)
    }

    /// Runs one operation of the script.
    async fn call(&self, arguments: &[&str]) -> Outcome<Value> {
        self.call_over(self.connection().await?, arguments)
            .await
            .map_err(|error| self.failure(&error))
    }

    async fn call_over(&self, mut connection: MultiplexedConnection, arguments: &[&str]) -> Result<Value, RedisError> {
        let mut outcome = self
            .command("EVALSHA", hash(), arguments)
            .query_async(&mut connection)
            .await;
        if outcome
            .as_ref()
            .is_err_and(|error: &RedisError| error.code() == Some("NOSCRIPT"))
        {
            outcome = self
                .command("EVAL", SCRIPT, arguments)
                .query_async(&mut connection)
                .await;
        }
        outcome
    }

    fn command(&self, name: &str, script: &str, arguments: &[&str]) -> Cmd {
        let mut command = Cmd::new();
        command.arg(name).arg(script).arg(1).arg(&self.prefix);
        for argument in arguments {
            command.arg(argument);
        }
        command
    }

    /// Sorts an error into those that another try may heal, and the others; drops a connection that is useless.
    fn failure(&self, error: &RedisError) -> Failure {
        let place = self.target.place_words();
        if matches!(error.kind(), ErrorKind::RESP3NotSupported) {
            return too_old("older than 6.0");
        }
        let words = error
            .detail()
            .map_or_else(|| error.to_string(), |detail| format!("{}: {detail}", error.category()));
        let code = error.code().unwrap_or_default().to_owned();
        if matches!(error.kind(), ErrorKind::AuthenticationFailed)
            || matches!(code.as_str(), "WRONGPASS" | "NOAUTH" | "NOPERM" | "ERR")
        {
            return Failure::refused(format!("the store at {place} refuses: {words}"));
        }
        self.reset();
        Failure::unavailable(format!("the store at {place} cannot be reached: {words}"))
    }

    /// Has N replicas acknowledge what this connection has written.
    async fn replicate(&self) -> Outcome<()> {
        let mut connection = self.connection().await?;
        let mut command = Cmd::new();
        command
            .arg("WAIT")
            .arg(self.target.replicas)
            .arg(self.target.patience.as_millis() as u64 / 2);
        let reached: u32 = command
            .query_async(&mut connection)
            .await
            .map_err(|error| self.failure(&error))?;
        if reached < self.target.replicas {
            let wanted = self.target.replicas;
            return Err(Failure::unavailable(format!(
                "{reached} of {wanted} replicas have acknowledged the grant"
            )));
        }
        Ok(())
    }

    /// Returns the names of all queues.
    async fn queues(&self) -> Outcome<BTreeSet<String>> {
        let mut connection = self.connection().await?;
        let (mut cursor, mut queues) = (0_u64, BTreeSet::new());
        loop {
            let mut command = Cmd::new();
            command
                .arg("SCAN")
                .arg(cursor)
                .arg("MATCH")
                .arg(format!("{}[hw]:*", self.prefix))
                .arg("COUNT")
                .arg(1000);
            let (next, keys): (u64, Vec<String>) = command
                .query_async(&mut connection)
                .await
                .map_err(|error| self.failure(&error))?;
            queues.extend(keys.iter().map(|key| key[self.prefix.len() + 2..].to_owned()));
            if next == 0 {
                return Ok(queues);
            }
            cursor = next;
        }
    }
}

impl Store for Redis {
    async fn connect(&self) -> Outcome<()> {
        self.connection().await.map(drop)
    }

    fn disconnected(&self, connection: u64) {
        if self.number.get() == connection {
            self.reset();
        }
    }

    fn reset(&self) {
        *self.connection.borrow_mut() = None;
    }

    fn reset_renewals(&self) {
        if self.target.replicas == 0 {
            self.reset();
        }
        *self.renewals.borrow_mut() = None;
    }

    async fn open(&self, session: &str, ttl_ms: u64) -> Outcome<()> {
        self.call(&["open", session, &ttl_ms.to_string(), &self.identity.words()])
            .await
            .map(drop)
    }

    async fn renew(&self, session: &str, ttl_ms: u64) -> Outcome<bool> {
        let outcome = self
            .call_over(self.renewals().await?, &["renew", session, &ttl_ms.to_string()])
            .await;
        outcome.map(|value| value == Value::Int(1)).map_err(|error| {
            self.reset_renewals();
            self.failure(&error)
        })
    }

    async fn close(&self, session: &str) -> Outcome<()> {
        self.call(&["close", session]).await.map(drop)
    }

    async fn enqueue(&self, ticket: &Ticket, is_waiting: bool) -> Outcome<Standing> {
        let waits = if is_waiting { "1" } else { "0" };
        let value = self
            .call(&["enqueue", &ticket.queue(), &ticket.id, &ticket.limit.to_string(), waits])
            .await?;
        let words: Vec<String> = redis::from_redis_value(value).map_err(|error| Failure::refused(error.to_string()))?;
        let standing = standing(&words)?;
        if self.target.replicas > 0 && matches!(standing, Standing::Granted { .. }) {
            self.replicate().await?;
        }
        Ok(standing)
    }

    async fn confirm(&self, _ticket: &Ticket, _fence: u64) -> Outcome<()> {
        if self.target.replicas > 0 {
            // WAIT counts what this connection has written: another's grant comes before that.
            let mut connection = self.connection().await?;
            let mut command = Cmd::new();
            command
                .arg("SET")
                .arg(format!("{}confirmed", self.prefix))
                .arg(&self.identity.client);
            let () = command
                .query_async(&mut connection)
                .await
                .map_err(|error| self.failure(&error))?;
            self.replicate().await?;
        }
        Ok(())
    }

    async fn leave(&self, ticket: &Ticket) -> Outcome<()> {
        self.call(&["leave", &ticket.queue(), &ticket.id]).await.map(drop)
    }

    async fn read(&self, cell: &str) -> Outcome<Cell> {
        let value = self.call(&["read", cell]).await?;
        let (version, text): (u64, String) =
            redis::from_redis_value(value).map_err(|error| Failure::refused(error.to_string()))?;
        Ok(Cell { version, text })
    }

    async fn swap(&self, cell: &str, version: u64, text: &str) -> Outcome<bool> {
        self.call(&["swap", cell, &version.to_string(), text])
            .await
            .map(|value| value == Value::Int(1))
    }

    async fn watch(&self, cell: &str) -> Outcome<()> {
        self.watched.borrow_mut().insert(cell.to_owned());
        let mut connection = self.connection().await?;
        connection
            .subscribe(format!("{}k:{cell}", self.prefix))
            .await
            .map_err(|error| self.failure(&error))
    }

    async fn unwatch(&self, cell: &str) -> Outcome<()> {
        self.watched.borrow_mut().remove(cell);
        let mut connection = self.connection().await?;
        connection
            .unsubscribe(format!("{}k:{cell}", self.prefix))
            .await
            .map_err(|error| self.failure(&error))
    }

    async fn are_alive(&self, sessions: &[String]) -> Outcome<Vec<bool>> {
        let arguments: Vec<&str> = std::iter::once("alive")
            .chain(sessions.iter().map(String::as_str))
            .collect();
        let value = self.call(&arguments).await?;
        redis::from_redis_value(value).map_err(|error| Failure::refused(error.to_string()))
    }

    async fn list(&self) -> Outcome<Vec<Row>> {
        let mut rows = Vec::new();
        for queue in self.queues().await? {
            let value = self.call(&["rows", &queue]).await?;
            let found: Vec<(String, String, String, String)> =
                redis::from_redis_value(value).map_err(|error| Failure::refused(error.to_string()))?;
            let Some((letter, name)) = queue.split_once(':') else {
                continue;
            };
            let Some(kind) = Kind::of(letter) else { continue };
            rows.extend(found.into_iter().map(|(ticket, fence, since, client)| {
                let (host, pid) = Identity::read(&client);
                Row {
                    kind: kind.word(),
                    name: unescape(name),
                    is_shared: ticket.ends_with(".s"),
                    fence: fence.parse().ok(),
                    since_ms: since.parse().unwrap_or(0),
                    host,
                    pid,
                    ticket,
                }
            }));
        }
        Ok(rows)
    }

    async fn remove(&self, kind: Kind, name: &str) -> Outcome<u64> {
        let value = self.call(&["break", &format!("{}:{name}", kind.letter())]).await?;
        redis::from_redis_value(value).map_err(|error| Failure::refused(error.to_string()))
    }
}

fn standing(words: &[String]) -> Outcome<Standing> {
    let number = |place: usize| words.get(place).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    Ok(match words.first().map(String::as_str) {
        Some("granted") => Standing::Granted { fence: number(1) },
        Some("queued") => Standing::Queued {
            check_after_ms: check_after_ms(number(1), number(2)),
        },
        Some("busy") => Standing::Busy,
        Some("ended") => Standing::NoSession,
        _ => return Err(other_limit(number(1))),
    })
}

/// Makes an event of what the server pushes.
fn hear(push: &PushInfo, number: u64) -> Option<Event> {
    match push.kind {
        PushKind::Disconnection => return Some(Event::Disconnected { connection: number }),
        PushKind::Message => {}
        _ => return None,
    }
    let [_channel, message] = push.data.as_slice() else {
        return None;
    };
    let message: String = redis::from_redis_value_ref(message).ok()?;
    read_message(&message)
}

fn hash() -> &'static str {
    static HASH: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    HASH.get_or_init(|| redis::Script::new(SCRIPT).get_hash().to_owned())
}

fn check_version(information: &str) -> Outcome<()> {
    let version = information
        .lines()
        .find_map(|line| line.strip_prefix("redis_version:"))
        .unwrap_or("0");
    let mut numbers = version.trim().split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found < OLDEST {
        return Err(too_old(version.trim()));
    }
    Ok(())
}

fn too_old(version: &str) -> Failure {
    let (major, minor) = OLDEST;
    Failure::refused(format!(
        "the store is a Redis {version}; {major}.{minor} is the oldest that serves"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Kind as FailureKind;

    #[test]
    fn servers_that_are_too_old_are_refused_in_words() {
        let of = |version: &str| check_version(&format!("# Server\r\nredis_version:{version}\r\nos:Linux\r\n"));
        assert!(of("6.2.0").is_ok() && of("10.0.1").is_ok());
        let failure = of("6.0.16").unwrap_err();
        assert_eq!(failure.kind, FailureKind::Refused);
        assert_eq!(
            failure.message,
            "the store is a Redis 6.0.16; 6.2 is the oldest that serves"
        );
    }

    #[test]
    fn server_that_does_not_know_the_protocol_is_refused_and_not_waited_for() {
        let target = Target::parse("redis://localhost", &[]).unwrap();
        let store = Redis::new(target, Identity::new(), mpsc::unbounded_channel().0);
        let failure = store.failure(&(ErrorKind::RESP3NotSupported, "no HELLO").into());
        assert_eq!(failure.kind, FailureKind::Refused);
        assert!(failure.message.contains("older than 6.0"), "{}", failure.message);
    }
}
