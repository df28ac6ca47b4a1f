//! The state machine of one lease, on its holder's side.
//!
//! | state | means | left by |
//! |---|---|---|
//! | `Requested` | nothing is confirmed yet | a confirmation, a refusal |
//! | `Granted` | confirmed, and no request under way | the next renewal |
//! | `Renewing` | confirmed, and a renewal is under way | its answer |
//! | `Doubtful` | confirmed, but a renewal has had no answer for `Rules::retry_ns` | an answer, the deadline |
//! | `Lost` | for good: no later confirmation revives it | nothing |
//!
//! The first four are `is_held` but for `Requested`. The deadline counts from the moment a confirmed request was
//! *sent*: the store cannot have begun to count earlier.

use crate::rules::Rules;

/// A request on its way to the store: when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    sent_ns: u64,
}

/// Why a lease is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The deadline passed without a confirmation.
    Expired,
    /// The store no longer has the lease.
    Refused,
    /// The holder gave it up.
    Ended,
}

/// The state of a lease at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing is confirmed yet.
    Requested,
    /// Confirmed, and no request under way.
    Granted,
    /// Confirmed, and a renewal is under way.
    Renewing,
    /// Confirmed, and a renewal has been without an answer for too long.
    Doubtful,
    /// Lost for good.
    Lost(Loss),
}

/// The next thing the holder has to do, and when (nanoseconds of its clock).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send a request at this time, and note it with `Lease::send`.
    SendAt(u64),
    /// The lease is lost at this time unless a confirmation arrives.
    ExpireAt(u64),
    /// Nothing: the lease is lost.
    Nothing,
}

/// A lease as its holder sees it.
#[derive(Clone, Debug)]
pub struct Lease {
    rules: Rules,
    /// When the latest confirmed request was sent.
    confirmed_ns: Option<u64>,
    /// When the latest request without an answer was sent, and the earliest since the last confirmation.
    pending_ns: Option<(u64, u64)>,
    loss: Option<Loss>,
}

impl Lease {
    /// Returns a lease of which nothing is confirmed.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            confirmed_ns: None,
            pending_ns: None,
            loss: None,
        }
    }

    /// Notes that a request is sent now: the one that opens the lease, or one that renews it.
    ///
    /// To be called *before* the request leaves; a time after that would make the holder believe for too long.
    pub fn send(&mut self, now_ns: u64) -> Attempt {
        let first_ns = self.pending_ns.map_or(now_ns, |(first_ns, _)| first_ns);
        self.pending_ns = Some((first_ns, now_ns));
        Attempt { sent_ns: now_ns }
    }

    /// Takes the store's word that a request was carried out; returns whether the lease is held then.
    ///
    /// An answer to an older request never shortens what a newer one brought, and none revives a lost lease.
    pub fn confirm(&mut self, attempt: Attempt, now_ns: u64) -> bool {
        self.expire(now_ns);
        if self.loss.is_none() {
            self.confirmed_ns = self.confirmed_ns.max(Some(attempt.sent_ns));
            self.pending_ns = self.pending_ns.filter(|(_, last_ns)| *last_ns > attempt.sent_ns);
            self.expire(now_ns);
        }
        self.is_held(now_ns)
    }

    /// Takes the store's word that it no longer has the lease.
    pub fn refuse(&mut self) {
        self.loss.get_or_insert(Loss::Refused);
    }

    /// Gives the lease up; what the store still has of it runs out there.
    pub fn end(&mut self) {
        self.loss.get_or_insert(Loss::Ended);
    }

    /// Tells whether the holder may act on the lease at this time.
    #[must_use]
    pub fn is_held(&self, now_ns: u64) -> bool {
        self.loss.is_none() && self.deadline_ns().is_some_and(|deadline_ns| now_ns < deadline_ns)
    }

    /// Returns the time from which on the lease is lost, as far as is confirmed.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        self.confirmed_ns.map(|sent_ns| sent_ns + self.rules.belief_ns())
    }

    /// Returns the state at this time.
    #[must_use]
    pub fn state(&self, now_ns: u64) -> State {
        if let Some(loss) = self.loss {
            return State::Lost(loss);
        }
        match (self.deadline_ns(), self.pending_ns) {
            (None, _) => State::Requested,
            (Some(deadline_ns), _) if now_ns >= deadline_ns => State::Lost(Loss::Expired),
            (Some(_), None) => State::Granted,
            (Some(_), Some((first_ns, _))) if now_ns >= first_ns + self.rules.retry_ns() => State::Doubtful,
            (Some(_), Some(_)) => State::Renewing,
        }
    }

    /// Returns what is next: a request to send, or the deadline if that is earlier.
    #[must_use]
    pub fn next_step(&self) -> Step {
        if self.loss.is_some() {
            return Step::Nothing;
        }
        let send_ns = match (self.pending_ns, self.confirmed_ns) {
            (Some((_, last_ns)), _) => last_ns + self.rules.retry_ns(),
            (None, Some(confirmed_ns)) => confirmed_ns + self.rules.renewal_ns(),
            (None, None) => 0,
        };
        match self.deadline_ns() {
            Some(deadline_ns) if deadline_ns <= send_ns => Step::ExpireAt(deadline_ns),
            _ => Step::SendAt(send_ns),
        }
    }

    /// Makes a loss by the deadline final, so that an answer that arrives later cannot revive the lease.
    pub fn expire(&mut self, now_ns: u64) {
        if self.state(now_ns) == State::Lost(Loss::Expired) {
            self.loss = Some(Loss::Expired);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Lease, Loss, State, Step};
    use crate::Rules;

    const SECOND_NS: u64 = 1_000_000_000;

    fn granted() -> Lease {
        let mut lease = Lease::new(Rules::new(10 * SECOND_NS).expect("ten seconds are allowed"));
        let attempt = lease.send(0);
        assert!(lease.confirm(attempt, SECOND_NS));
        lease
    }

    #[test]
    fn the_deadline_counts_from_the_sending() {
        let lease = granted();
        assert_eq!(lease.deadline_ns(), Some(9_970_000_000)); // 10 s - 2,000 ppm - 10 ms
        assert!(lease.is_held(9_969_999_999));
        assert!(!lease.is_held(9_970_000_000));
    }

    #[test]
    fn a_renewal_without_an_answer_makes_it_doubtful_and_is_sent_again() {
        let mut lease = granted();
        assert_eq!(lease.next_step(), Step::SendAt(3_333_333_333));
        lease.send(3_333_333_333);
        assert_eq!(lease.state(4 * SECOND_NS), State::Renewing);
        assert_eq!(lease.state(5 * SECOND_NS), State::Doubtful);
        assert_eq!(lease.next_step(), Step::SendAt(4_333_333_333));
    }

    #[test]
    fn a_late_answer_does_not_revive_it() {
        let mut lease = granted();
        let attempt = lease.send(9 * SECOND_NS);
        assert!(!lease.confirm(attempt, 11 * SECOND_NS));
        assert_eq!(lease.state(11 * SECOND_NS), State::Lost(Loss::Expired));
        assert_eq!(lease.next_step(), Step::Nothing);
    }

    #[test]
    fn an_old_answer_does_not_shorten_it() {
        let mut lease = granted();
        let old = lease.send(3 * SECOND_NS);
        let new = lease.send(4 * SECOND_NS);
        assert!(lease.confirm(new, 5 * SECOND_NS));
        assert!(lease.confirm(old, 6 * SECOND_NS));
        assert_eq!(lease.deadline_ns(), Some(13_970_000_000));
        assert_eq!(lease.state(6 * SECOND_NS), State::Granted);
    }

    #[test]
    fn a_refusal_is_final() {
        let mut lease = granted();
        let attempt = lease.send(SECOND_NS);
        lease.refuse();
        assert!(!lease.confirm(attempt, SECOND_NS));
        assert_eq!(lease.state(SECOND_NS), State::Lost(Loss::Refused));
    }

    #[test]
    fn the_last_step_before_the_deadline_is_to_expire() {
        let mut lease = granted();
        lease.send(9_500_000_000);
        assert_eq!(lease.next_step(), Step::ExpireAt(9_970_000_000));
    }

    #[test]
    fn a_ttl_of_nothing_is_refused() {
        assert!(Rules::new(0).is_err());
        assert!(Rules::new(100_000_000).is_ok());
    }
}
