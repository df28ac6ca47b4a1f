//! Lists the holders and waiters of a namespace for `unsnarl cluster list`, and takes a lock away from its holder.
//!
//! Never changes a ticket but to break it.

use std::collections::{BTreeMap, HashMap};

use super::messages::{
    ASCENDING, BY_CREATION, DeleteRequest, GrantRequest, KeyValue, Nothing, Op, PutRequest, RangeRequest,
    RangeResponse, TxnRequest, TxnResponse, calls,
};
use super::{Etcd, after};
use crate::failure::Outcome;
use crate::identity::{Identity, random};
use crate::name::unescape;
use crate::port::{Kind, Row};

/// Seconds for which a message to a client is kept.
const MESSAGE_TTL_S: i64 = 60;

impl Etcd {
    /// All tickets of a prefix, in the order of their queues and places.
    async fn keys(&self, prefix: &str) -> Outcome<Vec<KeyValue>> {
        let (key, range_end) = (prefix.to_owned().into(), after(prefix));
        let (sort_order, sort_target) = (ASCENDING, BY_CREATION);
        let request = RangeRequest {
            key,
            range_end,
            sort_order,
            sort_target,
            ..Default::default()
        };
        let answer: RangeResponse = self.call(calls::RANGE, request).await?;
        Ok(answer.kvs)
    }

    async fn limits(&self) -> Outcome<HashMap<String, usize>> {
        let prefix = format!("{}l/", self.base);
        let keys = self.keys(&prefix).await?;
        let limits = keys.into_iter().filter_map(|kv| {
            let queue = String::from_utf8_lossy(&kv.key).strip_prefix(&prefix)?.to_owned();
            Some((queue, String::from_utf8_lossy(&kv.value).parse().ok()?))
        });
        Ok(limits.collect())
    }
    /// Returns a row for each ticket.
    pub(super) async fn rows(&self) -> Outcome<Vec<Row>> {
        let limits = self.limits().await?;
        let prefix = format!("{}q/", self.base);
        let mut queues: BTreeMap<String, Vec<(bool, KeyValue)>> = BTreeMap::new();
        for kv in self.keys(&prefix).await? {
            let key = String::from_utf8_lossy(&kv.key).into_owned();
            let Some((queue, rest)) = key.strip_prefix(&prefix).and_then(|rest| rest.split_once('/')) else {
                continue;
            };
            queues
                .entry(queue.to_owned())
                .or_default()
                .push((rest.starts_with("s/"), kv));
        }
        let rows = queues.iter().flat_map(|(queue, tickets)| {
            let limit = limits.get(queue).copied().unwrap_or(1);
            let held = holders(queue, tickets, limit);
            tickets
                .iter()
                .enumerate()
                .filter_map(move |(place, (is_shared, kv))| read_row(queue, *is_shared, kv, place < held))
        });
        Ok(rows.collect())
    }

    /// Deletes the tickets that hold, and leaves their clients a message.
    pub(super) async fn break_queue(&self, kind: Kind, name: &str) -> Outcome<u64> {
        let rows = self.rows().await?;
        let queue = format!("{}:{name}", kind.letter());
        let lost = rows
            .iter()
            .filter(|row| row.kind == kind.word() && row.name == unescape(name) && row.fence.is_some());
        let lease = random().cast_signed();
        let _: Nothing = self
            .call(
                calls::GRANT,
                GrantRequest {
                    ttl: MESSAGE_TTL_S,
                    id: lease,
                },
            )
            .await?;
        let mut broken = 0;
        for row in lost {
            let mode = if row.is_shared { 's' } else { 'x' };
            let key = format!("{}{mode}/{}", self.queue_prefix(&queue), row.ticket).into();
            let client = row.ticket.split('.').next().unwrap_or_default();
            let message = format!("{}m/{client}/{}", self.base, row.ticket).into();
            let put = Op::Put(PutRequest {
                key: message,
                value: Vec::new(),
                lease,
                ..Default::default()
            });
            let success = vec![put.into(), Op::Delete(DeleteRequest { key }).into()];
            let _: TxnResponse = self
                .call(
                    calls::TXN,
                    TxnRequest {
                        success,
                        ..Default::default()
                    },
                )
                .await?;
            broken += 1;
        }
        Ok(broken)
    }
}

/// How many tickets of a queue hold; they are the first ones.
fn holders(queue: &str, tickets: &[(bool, KeyValue)], limit: usize) -> usize {
    let readers = tickets.iter().take_while(|(is_shared, _)| *is_shared).count();
    match queue.chars().next() {
        Some('s') => tickets.len().min(limit),
        Some('r') if readers > 0 => readers,
        _ => tickets.len().min(1),
    }
}

fn read_row(queue: &str, is_shared: bool, kv: &KeyValue, is_held: bool) -> Option<Row> {
    let (letter, name) = queue.split_once(':')?;
    let value = String::from_utf8_lossy(&kv.value).into_owned();
    let (who, since) = value.rsplit_once(' ')?;
    let (host, pid) = Identity::read(who);
    Some(Row {
        kind: Kind::of(letter)?.word(),
        name: unescape(name),
        is_shared,
        fence: is_held.then_some(kv.create_revision.cast_unsigned()),
        since_ms: since.parse().unwrap_or(0),
        host,
        pid,
        ticket: String::from_utf8_lossy(&kv.key).rsplit_once('/')?.1.to_owned(),
    })
}
