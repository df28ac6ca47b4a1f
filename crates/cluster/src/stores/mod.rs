//! The stores, one file each, all behind `crate::port::Store`, and what Redis and PostgreSQL have in common.

pub(crate) mod etcd;
pub(crate) mod postgres;
pub(crate) mod redis;

use crate::failure::Failure;
use crate::port::Event;

/// What a semaphore's user is told whose limit is not the others'.
fn other_limit(limit: u64) -> Failure {
    Failure::invalid(format!("this semaphore is in use with a limit of {limit}"))
}

/// When a waiter asks again by itself, from the milliseconds until a holder may be dead and its place in the queue.
///
/// The first does it as soon as the holder may be dead; those behind it later, in case the first has died as well.
fn check_after_ms(soonest_ms: u64, place: u64) -> u64 {
    soonest_ms + 5 + 500 * place.min(20)
}

/// Reads what a store tells one client: `granted TICKET FENCE`, `broken TICKET -` or `cell CELL -`.
fn read_message(message: &str) -> Option<Event> {
    let mut words = message.split(' ');
    let (word, name, more) = (words.next()?, words.next()?.to_owned(), words.next()?);
    match word {
        "granted" => Some(Event::Granted {
            ticket: name,
            fence: more.parse().ok()?,
        }),
        "broken" => Some(Event::Broken { ticket: name }),
        "cell" => Some(Event::CellChanged { cell: name }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{check_after_ms, read_message};
    use crate::port::Event;

    #[test]
    fn messages_are_read_and_others_ignored() {
        let granted = Event::Granted {
            ticket: "a.b.1.x".to_owned(),
            fence: 7,
        };
        assert_eq!(read_message("granted a.b.1.x 7"), Some(granted));
        assert_eq!(
            read_message("cell e:go -"),
            Some(Event::CellChanged {
                cell: "e:go".to_owned()
            })
        );
        assert_eq!(read_message("granted a.b.1.x"), None);
        assert_eq!(read_message("hello"), None);
    }

    #[test]
    fn the_first_asks_first() {
        assert!(check_after_ms(100, 0) < check_after_ms(100, 1));
        assert_eq!(check_after_ms(0, 20), check_after_ms(0, 1_000_000));
    }
}
