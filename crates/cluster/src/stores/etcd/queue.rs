//! Tickets in etcd: keys in the order of their creation.
//!
//! Invariant: a ticket that is told to wait has a watch that begins with the revision after the one it was told at.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::sleep;
use tonic::Code;

use super::link::{Turn, Watched};
use super::messages::{
    ASCENDING, BY_CREATION, CHANGE, CREATION, Compared, DESCENDING, KeyValue, NO_PUTS, Op, PutRequest, RangeRequest,
    RangeResponse, RequestOp, TxnRequest, TxnResponse, VALUE, calls,
};
use super::{CHECK_AFTER_MS, Etcd, after, equals, lease_of, now_ms};
use crate::failure::Outcome;
use crate::port::{Kind, Standing, Store, Ticket};
use crate::runner::spawn;
use crate::stores::other_limit;

/// How long a lock is held before its holder says so to the next one: less, and the word comes after the release.
const MARK_AFTER: Duration = Duration::from_millis(5);

/// A ticket's key as the store has it, and the keys in front.
struct View {
    own: Option<KeyValue>,
    front: Vec<KeyValue>,
    revision: i64,
}

impl Etcd {
    pub(super) fn queue_prefix(&self, queue: &str) -> String {
        format!("{}q/{queue}/", self.base)
    }

    /// Finds out where a ticket stands, and watches for its turn.
    pub(super) async fn stand(&self, ticket: &Ticket, is_waiting: bool) -> Outcome<Standing> {
        loop {
            let Some(view) = self.place(ticket).await? else {
                return Ok(Standing::NoSession);
            };
            let Some(own) = view.own.as_ref() else {
                if self.standing.borrow_mut().remove(&ticket.id).is_some() {
                    // It was there: with the session it has gone, or an operator has taken it away.
                    return Ok(Standing::NoSession);
                }
                // Only a semaphore's limit can have kept it out.
                self.agree_on_limit(ticket).await?;
                continue;
            };
            let had_waited = *self.standing.borrow_mut().entry(ticket.id.clone()).or_default();
            if is_granted(ticket, own, &view.front) {
                self.unwatch_ticket(ticket);
                if had_waited && ticket.limit > 1 {
                    self.mark(own).await?;
                } else if had_waited {
                    self.mark_later(ticket, own.create_revision);
                }
                return Ok(Standing::Granted {
                    fence: own.create_revision.cast_unsigned(),
                });
            }
            if !is_waiting {
                self.leave(ticket).await?;
                return Ok(Standing::Busy);
            }
            self.standing.borrow_mut().insert(ticket.id.clone(), true);
            if self.watch_rival(ticket, own, &view).await? {
                return Ok(Standing::Queued {
                    check_after_ms: CHECK_AFTER_MS,
                });
            }
        }
    }

    pub(super) fn ticket_key(&self, ticket: &Ticket) -> Vec<u8> {
        let mode = if ticket.is_shared { 's' } else { 'x' };
        format!("{}{mode}/{}", self.queue_prefix(&ticket.queue()), ticket.id).into()
    }

    /// The keys that a ticket waits for: a reader for writers only.
    fn rivals(&self, ticket: &Ticket) -> (Vec<u8>, Vec<u8>) {
        let prefix = self.queue_prefix(&ticket.queue());
        let prefix = if ticket.is_shared {
            format!("{prefix}x/")
        } else {
            prefix
        };
        (prefix.clone().into(), after(&prefix))
    }

    /// Reads the front of the queue: one key more than can hold.
    fn front(&self, ticket: &Ticket) -> Op {
        let (key, range_end) = self.rivals(ticket);
        let (limit, keys_only) = (i64::from(ticket.limit) + 1, true);
        let (sort_order, sort_target) = (ASCENDING, BY_CREATION);
        Op::Range(RangeRequest {
            key,
            range_end,
            limit,
            sort_order,
            sort_target,
            keys_only,
            ..Default::default()
        })
    }

    /// Puts the ticket's key there if it is not, and reads it and the front; None if the session has ended.
    async fn place(&self, ticket: &Ticket) -> Outcome<Option<View>> {
        let key = self.ticket_key(ticket);
        let own = Op::Range(RangeRequest {
            key: key.clone(),
            ..Default::default()
        });
        let read = vec![own.into(), self.front(ticket).into()];
        if self.standing.borrow().contains_key(&ticket.id) {
            let transaction = TxnRequest {
                success: read,
                ..Default::default()
            };
            let answer: TxnResponse = self.call(calls::TXN, transaction).await?;
            return Ok(Some(view(answer)));
        }
        let lease = lease_of(&ticket.session);
        let value = format!("{} {}", self.identity.words(), now_ms()).into();
        let put = Op::Put(PutRequest {
            key: key.clone(),
            value,
            lease,
            ..Default::default()
        });
        let mut compare = vec![equals(key, CREATION, Compared::CreateRevision(0))];
        if ticket.kind == Kind::Semaphore {
            let key = format!("{}l/{}", self.base, ticket.queue()).into();
            compare.push(equals(key, VALUE, Compared::Value(ticket.limit.to_string().into())));
        }
        let success: Vec<RequestOp> = std::iter::once(put.into()).chain(read.clone()).collect();
        let link = self.link().await?;
        match link
            .try_call(
                calls::TXN,
                TxnRequest {
                    compare,
                    success,
                    failure: read,
                },
            )
            .await
        {
            Ok(answer) => Ok(Some(view(answer))),
            // The lease: `etcdserver: requested lease not found`.
            Err(status) if status.code() == Code::NotFound => Ok(None),
            Err(status) => self.checked(Err(link.failure(&status))),
        }
    }

    /// Reads a semaphore's limit, and how many tickets it has.
    async fn limit(&self, ticket: &Ticket, key: &[u8]) -> Outcome<(Option<KeyValue>, i64)> {
        let (prefix, range_end) = self.rivals(ticket);
        let known = Op::Range(RangeRequest {
            key: key.to_vec(),
            ..Default::default()
        });
        let users = Op::Range(RangeRequest {
            key: prefix,
            range_end,
            count_only: true,
            ..Default::default()
        });
        let success = vec![known.into(), users.into()];
        let answer: TxnResponse = self
            .call(
                calls::TXN,
                TxnRequest {
                    success,
                    ..Default::default()
                },
            )
            .await?;
        let mut ranges = answer.responses.into_iter().filter_map(|response| response.range);
        let known = ranges.next().and_then(|range| range.kvs.into_iter().next());
        Ok((known, ranges.next().map_or(0, |range| range.count)))
    }

    /// Makes a semaphore's limit what this ticket says, unless others use another.
    async fn agree_on_limit(&self, ticket: &Ticket) -> Outcome<()> {
        if ticket.kind != Kind::Semaphore {
            return Ok(());
        }
        let key: Vec<u8> = format!("{}l/{}", self.base, ticket.queue()).into();
        loop {
            let (known, users) = self.limit(ticket, &key).await?;
            let limit = known
                .as_ref()
                .and_then(|kv| String::from_utf8_lossy(&kv.value).parse::<u32>().ok());
            match limit {
                Some(limit) if limit == ticket.limit => return Ok(()),
                Some(limit) if users > 0 => return Err(other_limit(u64::from(limit))),
                _ => {}
            }
            let revision = known.map_or(0, |kv| kv.mod_revision);
            let compare = vec![equals(key.clone(), CHANGE, Compared::ModRevision(revision))];
            let value = ticket.limit.to_string().into();
            let success = vec![
                Op::Put(PutRequest {
                    key: key.clone(),
                    value,
                    ..Default::default()
                })
                .into(),
            ];
            let _: TxnResponse = self
                .call(
                    calls::TXN,
                    TxnRequest {
                        compare,
                        success,
                        failure: Vec::new(),
                    },
                )
                .await?;
        }
    }

    /// Watches what a ticket waits for; false if that has gone meanwhile.
    async fn watch_rival(&self, ticket: &Ticket, own: &KeyValue, view: &View) -> Outcome<bool> {
        let link = self.link().await?;
        let limit = usize::try_from(ticket.limit).unwrap_or(usize::MAX);
        let is_first = ticket.limit > 1 && view.front.get(limit).is_some_and(|kv| kv.key == own.key);
        let (key, range_end) = self.rivals(ticket);
        let watch = if is_first {
            let watched = Watched::Ticket(ticket.id.clone(), Turn::Unknown);
            link.watch(watched, key, range_end, view.revision + 1, vec![NO_PUTS])
        } else {
            let before = RangeRequest {
                key,
                range_end,
                limit: 1,
                sort_order: DESCENDING,
                sort_target: BY_CREATION,
                keys_only: true,
                max_create_revision: own.create_revision - 1,
                ..Default::default()
            };
            let answer: RangeResponse = self.call(calls::RANGE, before).await?;
            let Some(rival) = answer.kvs.into_iter().next() else {
                return Ok(false);
            };
            let revision = answer.header.map_or(0, |header| header.revision) + 1;
            let turn = if ticket.limit > 1 || !link.is_sound() {
                Turn::Unknown
            } else {
                // A ticket that was the first once stays it to its end, and a lock's key is changed by the first only.
                let was_first = view.front.first().is_some_and(|first| first.key == rival.key);
                let is_first = was_first || rival.mod_revision > rival.create_revision;
                let fence = own.create_revision.cast_unsigned();
                Turn::After { is_first, fence }
            };
            let watched = Watched::Ticket(ticket.id.clone(), turn);
            link.watch(watched, rival.key, Vec::new(), revision, Vec::new())
        };
        if let Some(earlier) = self.tickets.borrow_mut().insert(ticket.id.clone(), watch) {
            link.unwatch(earlier);
        }
        Ok(true)
    }

    pub(super) fn unwatch_ticket(&self, ticket: &Ticket) {
        if let (Some(watch), Some(link)) = (self.tickets.borrow_mut().remove(&ticket.id), &*self.link.borrow()) {
            link.unwatch(watch);
        }
    }

    /// Changes the key of a ticket that holds after it had waited, unless it is released at once: the next one, which
    /// watches that key, then knows that it holds once the key has gone, and need not ask.
    ///
    /// A reader is not always the first of its queue, so it says nothing.
    pub(super) fn mark_later(&self, ticket: &Ticket, fence: i64) {
        let link = self.link.borrow().as_ref().map(Rc::clone);
        let Some(link) = link.filter(|link| link.is_sound() && !ticket.is_shared) else {
            return;
        };
        let (id, key, standing) = (ticket.id.clone(), self.ticket_key(ticket), Rc::clone(&self.standing));
        spawn(async move {
            sleep(MARK_AFTER).await;
            if !standing.borrow().contains_key(&id) {
                return;
            }
            // Without it the next one asks.
            let _: Result<TxnResponse, _> = link.try_call(calls::TXN, marking(key, fence)).await;
        });
    }

    /// Changes the key of a ticket of a semaphore that had to wait, so that the one behind it looks.
    async fn mark(&self, own: &KeyValue) -> Outcome<()> {
        let _: TxnResponse = self
            .call(calls::TXN, marking(own.key.clone(), own.create_revision))
            .await?;
        Ok(())
    }
}

/// Changes a key, and neither its value nor its lease, if it is still the one that was created then.
fn marking(key: Vec<u8>, created: i64) -> TxnRequest {
    let put = PutRequest {
        key: key.clone(),
        ignore_value: true,
        ignore_lease: true,
        ..Default::default()
    };
    TxnRequest {
        compare: vec![equals(key, CREATION, Compared::CreateRevision(created))],
        success: vec![Op::Put(put).into()],
        failure: Vec::new(),
    }
}

/// Tells whether a ticket holds, from the keys in front of its queue.
fn is_granted(ticket: &Ticket, own: &KeyValue, front: &[KeyValue]) -> bool {
    if ticket.is_shared {
        return front
            .first()
            .is_none_or(|writer| writer.create_revision > own.create_revision);
    }
    let limit = usize::try_from(ticket.limit).unwrap_or(usize::MAX);
    front.iter().take(limit).any(|kv| kv.key == own.key)
}

fn view(answer: TxnResponse) -> View {
    let revision = answer.header.map_or(0, |header| header.revision);
    let mut ranges = answer.responses.into_iter().filter_map(|response| response.range);
    let own = ranges.next().and_then(|range| range.kvs.into_iter().next());
    View {
        own,
        front: ranges.next().map_or_else(Vec::new, |range| range.kvs),
        revision,
    }
}
