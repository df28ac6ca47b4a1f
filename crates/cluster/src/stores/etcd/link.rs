//! One connection to a member of an etcd cluster: calls, and one stream of watches.
//!
//! Another member is tried when one cannot be reached or has no leader, and a member that stops answering is given up.
//!
//! Invariant: every watch that is made ends in events, or in the word that the connection has ended.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::AsciiMetadataValue;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::messages::{
    AuthenticateRequest, AuthenticateResponse, LeaseRequest, LeaseResponse, Nothing, PUT, StatusResponse, WatchCancel,
    WatchChange, WatchCreate, WatchRequest, WatchResponse, calls,
};
use crate::failure::{Failure, Outcome, chain};
use crate::port::Event;
use crate::runner::spawn;
use crate::target::Target;
use crate::tls;

/// The first version whose watches may be numbered by the client.
const OLDEST: (u32, u32) = (3, 4);

/// The first versions of 3.4 and 3.5 by which a leader that was voted out while it stood still ends no leases
/// (etcd-io/etcd#15247). Before, all leases of living clients could be gone at once, one after the other.
const SOUND: [(u32, u32, u32); 2] = [(3, 4, 31), (3, 5, 13)];

/// A member that does not answer a ping for that long is given up.
const PING: Duration = Duration::from_secs(2);

/// How a ticket learns that it is its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Any change: it has to look.
    Unknown,
    /// The end of the one key that is watched, if the ticket of that key has been the first of the queue: nothing can be
    /// before this one then. Its holder says so by changing the key.
    After { is_first: bool, fence: u64 },
}

/// What a watch is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Watched {
    /// A ticket, and what it waits for.
    Ticket(String, Turn),
    Cell(String),
    /// Messages to this client: the last part of a key is a ticket that was broken.
    Messages,
}

/// One connection.
pub(super) struct Link {
    channel: Channel,
    token: Option<AsciiMetadataValue>,
    changes: mpsc::UnboundedSender<WatchRequest>,
    /// Until `listen` takes it.
    requests: RefCell<Option<mpsc::UnboundedReceiver<WatchRequest>>>,
    watches: Rc<RefCell<HashMap<i64, Watched>>>,
    last_watch: Cell<i64>,
    place: String,
    /// Whether a key that is gone was given up, or its lease was over.
    is_sound: bool,
}

impl Link {
    /// Connects to the first member, from the `first` on, that serves.
    pub(super) async fn open(target: &Target, first: usize) -> Outcome<Self> {
        let mut failure = Failure::unavailable("there is no host in the URL");
        for turn in 0..target.hosts.len() {
            match Self::open_member(target, (first + turn) % target.hosts.len()).await {
                Ok(link) => return Ok(link),
                Err(other) => failure = other,
            }
        }
        Err(failure)
    }

    async fn open_member(target: &Target, member: usize) -> Outcome<Self> {
        let (host, port) = &target.hosts[member];
        let place = format!("{host}:{port}");
        let scheme = if target.tls.is_some() { "https" } else { "http" };
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.clone()
        };
        // Each member gets its share of the patience.
        let share = target.patience / u32::try_from(target.hosts.len()).unwrap_or(1);
        let mut endpoint = Endpoint::from_shared(format!("{scheme}://{host}:{port}"))
            .map_err(|error| Failure::invalid(format!("no host: {}", chain(&error))))?
            .connect_timeout(share)
            .http2_keep_alive_interval(PING)
            .keep_alive_timeout(PING)
            .keep_alive_while_idle(true)
            .tcp_nodelay(true);
        if let Some(paths) = &target.tls {
            endpoint = endpoint
                .tls_config(tls::for_etcd(paths)?)
                .map_err(|error| Failure::refused(chain(&error)))?;
        }
        let cannot = |words: String| Failure::unavailable(format!("the store at {place} cannot be reached: {words}"));
        let channel = endpoint.connect().await.map_err(|error| cannot(chain(&error)))?;
        let (changes, requests) = mpsc::unbounded_channel();
        let mut link = Self {
            channel,
            token: None,
            changes,
            requests: RefCell::new(Some(requests)),
            watches: Rc::default(),
            last_watch: Cell::new(0),
            place,
            is_sound: false,
        };
        let silent = || {
            Failure::unavailable(format!(
                "the store at {host}:{port} cannot be reached: it does not answer"
            ))
        };
        tokio::time::timeout(share, link.greet(target))
            .await
            .map_err(|_| silent())??;
        Ok(link)
    }

    /// Checks the version and that there is a leader, and signs in.
    async fn greet(&mut self, target: &Target) -> Outcome<()> {
        let status: StatusResponse = self.call(calls::STATUS, Nothing {}).await?;
        self.is_sound = is_sound(check_version(&status.version)?);
        if status.leader == 0 {
            return Err(Failure::unavailable(format!(
                "the member at {} has no leader",
                self.place
            )));
        }
        if let Some(user) = &target.user {
            let request = AuthenticateRequest {
                name: user.clone(),
                password: target.password.reveal().to_owned(),
            };
            let answer: AuthenticateResponse = self.call(calls::AUTHENTICATE, request).await?;
            self.token = answer.token.parse().ok();
        }
        Ok(())
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert("token", token.clone());
        }
        request
    }

    /// Tells whether a key that is gone was given up, or its lease was over, by the version of etcd.
    pub(super) fn is_sound(&self) -> bool {
        self.is_sound
    }

    /// Makes one call.
    pub(super) async fn call<Q, A>(&self, path: &'static str, message: Q) -> Outcome<A>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        self.try_call(path, message)
            .await
            .map_err(|status| self.failure(&status))
    }

    /// Makes one call, for those who know what a status means.
    pub(super) async fn try_call<Q, A>(&self, path: &'static str, message: Q) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready().await.map_err(|error| Status::unavailable(chain(&error)))?;
        let codec = ProstCodec::<Q, A>::default();
        let answer = grpc
            .unary(self.request(message), PathAndQuery::from_static(path), codec)
            .await?;
        Ok(answer.into_inner())
    }

    /// Has etcd begin a lease's time to live again; false if there is no such lease.
    pub(super) async fn keep_alive(&self, id: i64) -> Outcome<bool> {
        let requests = tokio_stream::once(LeaseRequest { id });
        let mut answers: Streaming<LeaseResponse> = self
            .stream(calls::KEEP_ALIVE, requests)
            .await
            .map_err(|status| self.failure(&status))?;
        match answers.next().await {
            Some(Ok(answer)) => Ok(answer.ttl > 0),
            Some(Err(status)) => Err(self.failure(&status)),
            None => Err(Failure::unavailable(format!(
                "the store at {} has answered nothing",
                self.place
            ))),
        }
    }

    async fn stream<Q, A>(
        &self,
        path: &'static str,
        requests: impl tokio_stream::Stream<Item = Q> + Send + 'static,
    ) -> Result<Streaming<A>, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready().await.map_err(|error| Status::unavailable(chain(&error)))?;
        let codec = ProstCodec::<Q, A>::default();
        let answers = grpc
            .streaming(self.request(requests), PathAndQuery::from_static(path), codec)
            .await?;
        Ok(answers.into_inner())
    }

    /// Begins to listen; what the watches bring, and the end of the connection, goes to `events`.
    ///
    /// To be called once, with a watch made before: etcd answers the call itself with the first of them.
    pub(super) async fn listen(&self, number: u64, events: mpsc::UnboundedSender<Event>) -> Outcome<()> {
        let Some(requests) = self.requests.take() else {
            return Ok(());
        };
        let requests = UnboundedReceiverStream::new(requests);
        let mut answers: Streaming<WatchResponse> = self
            .stream(calls::WATCH, requests)
            .await
            .map_err(|status| self.failure(&status))?;
        let watches = Rc::clone(&self.watches);
        spawn(async move {
            while let Some(Ok(answer)) = answers.next().await {
                let told = match watches.borrow_mut().get_mut(&answer.watch_id) {
                    Some(watched) if answer.canceled || !answer.events.is_empty() => happenings(watched, &answer),
                    _ => continue,
                };
                // A watch that etcd ends, since its revision was compacted, is made again by whoever looks.
                if answer.canceled {
                    watches.borrow_mut().remove(&answer.watch_id);
                }
                for event in told {
                    let _ = events.send(event);
                }
            }
            let _ = events.send(Event::Disconnected { connection: number });
        });
        Ok(())
    }

    /// Watches keys from a revision on; returns the number by which to end that.
    pub(super) fn watch(&self, watched: Watched, key: Vec<u8>, end: Vec<u8>, revision: i64, filters: Vec<i32>) -> i64 {
        let watch_id = self.last_watch.get() + 1;
        self.last_watch.set(watch_id);
        self.watches.borrow_mut().insert(watch_id, watched);
        let create = WatchCreate {
            key,
            range_end: end,
            start_revision: revision,
            filters,
            watch_id,
        };
        self.change(WatchChange::Create(create));
        watch_id
    }

    pub(super) fn unwatch(&self, watch_id: i64) {
        if self.watches.borrow_mut().remove(&watch_id).is_some() {
            self.change(WatchChange::Cancel(WatchCancel { watch_id }));
        }
    }

    fn change(&self, change: WatchChange) {
        // Without a receiver the connection has ended, which is told by its task.
        let _ = self.changes.send(WatchRequest { change: Some(change) });
    }

    /// Sorts a status into those that another try may heal, and the others.
    pub(super) fn failure(&self, status: &Status) -> Failure {
        let (place, words) = (&self.place, status.message());
        match status.code() {
            Code::InvalidArgument | Code::PermissionDenied | Code::FailedPrecondition | Code::Unimplemented => {
                Failure::refused(format!("the store at {place} refuses: {words}"))
            }
            _ => Failure::unavailable(format!("the store at {place} does not serve now: {words}")),
        }
    }
}

/// Reads an answer; a ticket's watch also remembers from it that the key's ticket was the first.
fn happenings(watched: &mut Watched, answer: &WatchResponse) -> Vec<Event> {
    match watched {
        Watched::Ticket(ticket, Turn::After { is_first, fence }) if !answer.canceled => {
            let mut told = Vec::new();
            for event in &answer.events {
                let ticket = ticket.clone();
                if event.kind == PUT {
                    *is_first = true;
                } else if *is_first {
                    told.push(Event::Granted { ticket, fence: *fence });
                } else {
                    told.push(Event::Changed { ticket });
                }
            }
            told
        }
        Watched::Ticket(ticket, _) => vec![Event::Changed { ticket: ticket.clone() }],
        Watched::Cell(cell) => vec![Event::CellChanged { cell: cell.clone() }],
        Watched::Messages => {
            let puts = answer
                .events
                .iter()
                .filter(|event| event.kind == PUT)
                .filter_map(|event| event.kv.as_ref());
            let keys = puts.map(|kv| String::from_utf8_lossy(&kv.key).into_owned());
            keys.filter_map(|key| {
                Some(Event::Broken {
                    ticket: key.rsplit_once('/')?.1.to_owned(),
                })
            })
            .collect()
        }
    }
}

fn check_version(version: &str) -> Outcome<(u32, u32, u32)> {
    let mut numbers = version.split('.').map(|part| {
        let digits = part
            .find(|c: char| !c.is_ascii_digit())
            .map_or(part, |end| &part[..end]);
        digits.parse::<u32>().unwrap_or(0)
    });
    let mut next = || numbers.next().unwrap_or(0);
    let found = (next(), next(), next());
    if (found.0, found.1) < OLDEST {
        let (major, minor) = OLDEST;
        return Err(Failure::refused(format!(
            "the store is etcd {version}; {major}.{minor} is the oldest that serves"
        )));
    }
    Ok(found)
}

fn is_sound(found: (u32, u32, u32)) -> bool {
    let same_minor = SOUND.iter().find(|first| (first.0, first.1) == (found.0, found.1));
    same_minor.is_none_or(|first| found >= *first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::etcd::messages::KeyEvent;

    const GONE: i32 = PUT + 1;

    fn answer(kinds: &[i32]) -> WatchResponse {
        let events = kinds.iter().map(|kind| KeyEvent { kind: *kind, kv: None }).collect();
        WatchResponse {
            watch_id: 1,
            canceled: false,
            events,
        }
    }

    fn waiter(is_first: bool) -> Watched {
        Watched::Ticket("t".to_owned(), Turn::After { is_first, fence: 7 })
    }

    fn granted() -> Event {
        Event::Granted {
            ticket: "t".to_owned(),
            fence: 7,
        }
    }

    fn changed() -> Event {
        Event::Changed { ticket: "t".to_owned() }
    }

    #[test]
    fn the_end_of_the_first_ticket_is_the_next_ones_turn() {
        assert_eq!(happenings(&mut waiter(true), &answer(&[GONE])), [granted()]);
    }

    #[test]
    fn the_end_of_another_ticket_is_looked_into() {
        assert_eq!(happenings(&mut waiter(false), &answer(&[GONE])), [changed()]);
    }

    #[test]
    fn a_ticket_that_has_said_it_is_the_first_is_remembered() {
        let mut watched = waiter(false);
        assert_eq!(happenings(&mut watched, &answer(&[PUT])), []);
        assert_eq!(happenings(&mut watched, &answer(&[GONE])), [granted()]);
        assert_eq!(happenings(&mut waiter(false), &answer(&[PUT, GONE])), [granted()]);
    }

    #[test]
    fn a_watch_that_etcd_has_ended_is_looked_into() {
        let ended = WatchResponse {
            canceled: true,
            ..answer(&[])
        };
        assert_eq!(happenings(&mut waiter(true), &ended), [changed()]);
    }

    #[test]
    fn versions_are_read_with_what_follows_their_numbers() {
        let is = |version: &str| check_version(version).map(is_sound).ok();
        assert_eq!(is("3.3.27"), None);
        assert_eq!(is("3.4.23"), Some(false));
        assert_eq!(is("3.4.31"), Some(true));
        assert_eq!(is("3.5.12"), Some(false));
        assert_eq!(is("3.5.13-rc.1"), Some(true));
        assert_eq!(is("3.6.0"), Some(true));
        assert_eq!(is("4.0.0"), Some(true));
    }
}
