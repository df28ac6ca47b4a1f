//! Converts a thread's records to consecutive stretches of time, each in one state.
//!
//! | between | the thread is |
//! |---|---|
//! | a take and the next drop | running |
//! | the begin of a wait and its take; a forced drop and the next take | waiting for the GIL |
//! | the begin and the end of a lock | blocked on a lock |
//! | a sleep and the next take, less the wait | sleeping |
//! | a drop and the next take, as long as the thread had a processor (as if at first) | computing: C code without the GIL |
//! | any other drop and the next take, less the wait | in I/O |
//!
//! Invariant: the stretches of a thread follow each other and do not overlap.

use crate::Nanos;
use crate::reader::Thread;
use crate::record::{Drop, Kind, Record, Take};

/// The state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// Has the GIL.
    Running = 0,
    /// Waits for the GIL.
    Waiting = 1,
    /// Blocked on a lock.
    OnLock = 2,
    /// In a call that released the GIL and waits, or is short: mostly I/O.
    InIo = 3,
    /// In `time.sleep`.
    Asleep = 4,
    /// In C code that released the GIL and computes.
    Computing = 5,
}

/// A stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// When it begins.
    pub begin: Nanos,
    /// When it ends.
    pub end: Nanos,
    /// The state of the thread.
    pub state: State,
    /// Node of its stack; 0 if none was taken.
    pub node: u32,
    /// For [`State::Running`]: for how long it had no processor; for [`State::Waiting`]: how often it woke up; for
    /// [`State::OnLock`]: the address, whose lowest bit is whether the lock was acquired.
    pub detail: u64,
    /// For [`State::Waiting`]: how many others waited at its end.
    pub waiters: u32,
    /// For [`State::Running`]: whether another thread waited at its end.
    pub is_wanted: bool,
}

impl Stretch {
    /// Its length.
    #[must_use]
    pub const fn length(&self) -> Nanos {
        self.end - self.begin
    }
}

struct Builder {
    stretches: Vec<Stretch>,
    /// Where the stretches end so far.
    at: Nanos,
    is_running: bool,
    is_forced: bool,
    is_asleep: bool,
    /// For how long it computed since the drop.
    computed: Nanos,
    lock: Option<(Nanos, u64)>,
    /// First stretch since the last drop: a stack after a take belongs to them.
    since_drop: usize,
}

/// The stretches of a thread, to its end or to `end`.
#[must_use]
pub fn stretches(thread: &Thread, end: Nanos) -> Vec<Stretch> {
    if thread.records.is_empty() {
        return Vec::new(); // its activity is unknown
    }
    let mut builder = Builder {
        stretches: Vec::with_capacity(thread.records.len()),
        at: thread.records.first().map_or(0, first_moment),
        is_running: false,
        is_forced: false,
        is_asleep: false,
        computed: 0,
        lock: None,
        since_drop: 0,
    };
    let mut last = None;
    for record in &thread.records {
        builder.take(record, last);
        if record.kind != Kind::Stack {
            last = Some(record.kind);
        }
    }
    if last != Some(Kind::End) {
        builder.finish(end);
    }
    builder.stretches
}

/// A thread's life begins with its first wait.
fn first_moment(record: &Record) -> Nanos {
    match record.kind {
        Kind::Take => record.time.saturating_sub(Take::unpack(record.payload).waited),
        _ => record.time,
    }
}

impl Builder {
    fn push(&mut self, until: Nanos, state: State) -> Option<&mut Stretch> {
        if until <= self.at {
            return None;
        }
        self.stretches.push(Stretch {
            begin: self.at,
            end: until,
            state,
            node: 0,
            detail: 0,
            waiters: 0,
            is_wanted: false,
        });
        self.at = until;
        self.stretches.last_mut()
    }

    fn take(&mut self, record: &Record, last: Option<Kind>) {
        match record.kind {
            Kind::Take => self.taken(record),
            Kind::Drop => self.dropped(record),
            Kind::Forced => self.is_forced = true,
            Kind::Sleep => self.is_asleep = true,
            Kind::Computed => self.computed = record.payload,
            Kind::Starved => self.starved(record),
            Kind::LockBegin => self.lock_begins(record),
            Kind::LockEnd => self.lock_ends(record),
            Kind::Stack => self.at_stack(record, last),
            Kind::End => self.finish(record.time),
            Kind::Post | Kind::ImportBegin | Kind::ImportEnd => {}
        }
    }

    fn idle_state(&self) -> State {
        match (self.is_running, self.is_forced, self.is_asleep) {
            (true, ..) => State::Running,
            (_, true, _) => State::Waiting,
            (_, _, true) => State::Asleep,
            _ => State::InIo,
        }
    }

    fn taken(&mut self, record: &Record) {
        let take = Take::unpack(record.payload);
        let began = if self.is_forced {
            self.at
        } else {
            record.time.saturating_sub(take.waited)
        };
        let state = self.idle_state();
        if state == State::InIo {
            let computed = self.computed.min(began.saturating_sub(self.at));
            self.push(self.at + computed, State::Computing);
        }
        self.push(began, state);
        if let Some(wait) = self.push(record.time, State::Waiting) {
            wait.detail = take.wakeups;
            wait.waiters = take.waiters as u32;
        }
        self.is_running = true;
        self.is_forced = false;
        self.is_asleep = false;
        self.computed = 0;
        self.lock = None;
    }

    fn dropped(&mut self, record: &Record) {
        let drop = Drop::unpack(record.payload);
        if let Some(hold) = self.push(record.time, State::Running) {
            hold.is_wanted = drop.is_wanted;
        }
        self.since_drop = self.stretches.len();
        self.is_running = false;
    }

    fn starved(&mut self, record: &Record) {
        if let Some(hold) = self.stretches.last_mut()
            && hold.state == State::Running
        {
            hold.detail = record.payload.min(hold.length());
        }
    }

    fn lock_begins(&mut self, record: &Record) {
        let state = self.idle_state();
        self.push(record.time, state);
        self.lock = Some((record.time, record.payload));
    }

    fn lock_ends(&mut self, record: &Record) {
        if let Some((_, address)) = self.lock.take()
            && let Some(stretch) = self.push(record.time, State::OnLock)
        {
            stretch.detail = address & !1 | record.payload & 1;
        }
    }

    /// Assigns a stack: after a drop to the hold, after a take to the stretches since the drop.
    fn at_stack(&mut self, record: &Record, last: Option<Kind>) {
        let node = record.payload as u32;
        match last {
            Some(Kind::Drop) => {
                if let Some(hold) = self.stretches.last_mut()
                    && hold.state == State::Running
                {
                    hold.node = node;
                }
            }
            Some(Kind::Take) => {
                for stretch in self.stretches.iter_mut().skip(self.since_drop) {
                    if stretch.state != State::Running {
                        stretch.node = node;
                    }
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, end: Nanos) {
        if self.lock.is_some() {
            self.push(end, State::OnLock);
        } else {
            let state = self.idle_state();
            self.push(end, state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: Nanos, kind: Kind, payload: u64) -> Record {
        Record { time, kind, payload }
    }

    /// The nodes and details of the stretches in a state, of a thread with these records.
    fn details(records: Vec<Record>, state: State) -> Vec<(u32, u64)> {
        let end = records.last().map_or(0, |last| last.time);
        let thread = Thread {
            records,
            ..Thread::default()
        };
        stretches(&thread, end)
            .iter()
            .filter(|stretch| stretch.state == state)
            .map(|stretch| (stretch.node, stretch.detail))
            .collect()
    }

    #[test]
    fn a_hold_knows_for_how_long_it_had_no_processor() {
        let records = vec![
            record(10, Kind::Take, 0),
            record(90, Kind::Drop, 0),
            record(90, Kind::Stack, 7),
            record(90, Kind::Starved, 60),
            record(91, Kind::Take, 0),
            record(95, Kind::Drop, 0),
            record(95, Kind::Starved, 600),
            record(99, Kind::End, 0),
        ];
        assert_eq!(details(records, State::Running), [(7, 60), (0, 4)]);
    }

    #[test]
    fn a_wait_for_a_lock_shows_whether_it_acquired_the_lock() {
        let records = vec![
            record(1, Kind::LockBegin, 0x1000),
            record(5, Kind::LockEnd, 0x1001),
            record(6, Kind::LockBegin, 0x1000),
            record(9, Kind::LockEnd, 0x1000),
            record(9, Kind::End, 0),
        ];
        assert_eq!(details(records, State::OnLock), [(0, 0x1001), (0, 0x1000)]);
    }
}
