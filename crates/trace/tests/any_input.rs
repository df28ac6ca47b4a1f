//! The reader accepts or refuses any bytes without a panic, and its results are in order of time.

use proptest::prelude::*;
use unsnarl_trace::layout::{self, chunk, header, thread};
use unsnarl_trace::reader::{Malformed, read};
use unsnarl_trace::record::{Drop, Kind, Take, first_word};
use unsnarl_trace::summary::summarise;
use unsnarl_trace::timeline::{State, stretches};

/// A file under construction.
struct Builder(Vec<u8>);

impl Builder {
    fn new(chunks: usize) -> Self {
        let mut file = Self(vec![0; layout::file_size(chunks)]);
        file.0[..8].copy_from_slice(&layout::MAGIC);
        file.put32(header::VERSION, layout::VERSION);
        file.put32(header::ENDIAN, layout::ENDIAN_MARK);
        file
    }

    fn put32(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    fn put64(&mut self, at: usize, value: u64) {
        self.0[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    }

    fn thread(&mut self, entry: usize, tid: u32) {
        let at = layout::THREADS_AT + (entry - 1) * layout::THREAD_SIZE;
        self.put64(at, 7000 + u64::from(tid));
        self.put32(at + thread::TID, tid);
    }

    fn chunk(&mut self, number: usize, entry: u32, tid: u32, records: &[(u64, Kind, u64)]) {
        let at = layout::CHUNKS_AT + number * layout::CHUNK_SIZE;
        self.put64(at + chunk::SEQUENCE, number as u64 + 1);
        self.put32(at + chunk::THREAD, entry);
        self.put32(at + chunk::TID, tid);
        for (place, &(time, kind, payload)) in records.iter().enumerate() {
            let record = at + chunk::HEAD + place * layout::RECORD_SIZE;
            self.put64(record, first_word(time, kind));
            self.put64(record + 8, payload);
        }
    }
}

fn waited(waited: u64) -> u64 {
    Take {
        waited,
        wakeups: 1,
        waiters: 0,
    }
    .pack()
}

fn wanted() -> u64 {
    Drop {
        is_wanted: true,
        ..Drop::default()
    }
    .pack()
}

/// A convoy: one thread holds the GIL for five milliseconds at a time, the other waits.
fn convoy() -> Vec<u8> {
    let ms = 1_000_000;
    let mut file = Builder::new(4);
    file.put64(header::INTERVAL, 5 * ms);
    file.thread(1, 11);
    file.thread(2, 12);
    let (mut hog, mut health) = (Vec::new(), Vec::new());
    for round in 0..20 {
        let begin = round * 6 * ms;
        hog.push((begin, Kind::Take, waited(0)));
        hog.push((begin + 5 * ms, Kind::Drop, wanted()));
        hog.push((begin + 5 * ms, Kind::Forced, 0));
        health.push((begin + 5 * ms, Kind::Take, waited(4 * ms)));
        health.push((begin + 5 * ms + 10_000, Kind::Drop, 0));
    }
    file.chunk(0, 1, 11, &hog);
    file.chunk(1, 2, 12, &health);
    file.0
}

#[test]
fn a_convoy_is_laid_to_the_thread_that_held_the_gil() {
    let summary = summarise(&convoy()).unwrap();
    let pair = summary.contention.pairs.iter().find(|pair| pair.waiter == 1).unwrap();
    assert_eq!((pair.holder, pair.count), (0, 20));
    assert_eq!(pair.median_ns, 4_000_000);
}

#[test]
fn the_imports_of_the_start_are_kept_and_the_rest_begins_after_the_gap() {
    let mut file = Builder::new(16);
    file.put32(header::CHUNKS, 16);
    file.put64(layout::LOCATIONS_AT, 1);
    let imports: Vec<_> = (0..layout::RECORDS as u64)
        .map(|n| (n, if n % 2 == 0 { Kind::ImportBegin } else { Kind::ImportEnd }, 1))
        .collect();
    file.chunk(0, 1, 11, &imports);
    file.chunk(1, 2, 12, &[(5, Kind::Take, waited(0)), (6, Kind::End, 0)]);
    file.chunk(2, 1, 11, &[(9000, Kind::Take, waited(0)), (9500, Kind::ImportBegin, 1)]);
    file.put64(layout::CHUNKS_AT + 2 * layout::CHUNK_SIZE + chunk::SEQUENCE, 17);
    let summary = summarise(&file.0).unwrap();
    assert_eq!((summary.records_from_ns, summary.start_until_ns), (9000, 253));
    assert_eq!(summary.imports.len(), layout::RECORDS / 2 + 1);
    let stretches: Vec<_> = summary.threads.iter().flat_map(|thread| &thread.stretches).collect();
    assert_eq!(stretches, [&(9000, 500, 0, 0), &(5, 1, 0, 0)]);
}

/// Two of 16 chunks are kept, so a lap is 14. An idle thread has kept its chunk through a lap.
#[test]
fn a_chunk_that_an_idle_thread_has_kept_does_not_say_since_when_there_are_records() {
    let (mut file, ms) = (Builder::new(16), 1_000_000);
    file.put32(header::CHUNKS, 16);
    file.put64(header::ENDED, 1000 * ms);
    file.put64(header::OVERWRITTEN, 1);
    file.thread(1, 11);
    file.thread(2, 12);
    let idle = [
        (ms, Kind::Take, waited(0)),
        (2 * ms, Kind::Drop, 0),
        (2 * ms, Kind::LockBegin, 0x1000),
        (895 * ms, Kind::LockEnd, 0x1001),
        (900 * ms, Kind::Take, waited(3 * ms)),
        (901 * ms, Kind::Drop, 0),
    ];
    file.chunk(3, 1, 11, &idle);
    for number in (2..16).filter(|&number| number != 3) {
        let begin = (800 + 10 * number as u64) * ms;
        file.chunk(
            number,
            2,
            12,
            &[(begin, Kind::Take, waited(ms)), (begin + ms, Kind::Drop, 0)],
        );
        let sequence = layout::CHUNKS_AT + number * layout::CHUNK_SIZE + chunk::SEQUENCE;
        file.put64(sequence, 14 * 5 + number as u64 + 1);
    }
    let summary = summarise(&file.0).unwrap();
    assert_eq!(summary.records_from_ns, 820 * ms);
    assert_eq!(summary.contention.histogram.iter().sum::<u64>(), 14);
    let [waits] = &summary.locks[..] else {
        panic!("{:?}", summary.locks)
    };
    assert_eq!((waits.total_ns, waits.longest_ns), (75 * ms, 893 * ms));
}

#[test]
fn the_states_of_a_thread_follow_from_its_records() {
    let mut file = Builder::new(1);
    let records = [
        (100, Kind::Take, waited(100)),
        (200, Kind::Drop, 0),
        (210, Kind::Sleep, 0),
        (300, Kind::Take, waited(50)),
        (400, Kind::Drop, 0),
        (410, Kind::LockBegin, 0x1000),
        (500, Kind::LockEnd, 0x1001),
        (500, Kind::Take, waited(0)),
        (600, Kind::Drop, wanted()),
        (610, Kind::Forced, 0),
        (700, Kind::Take, waited(40)),
        (800, Kind::Drop, 0),
        (900, Kind::Computed, 70),
        (900, Kind::Take, waited(10)),
        (950, Kind::Drop, 0),
        (960, Kind::Take, waited(0)),
        (999, Kind::End, 0),
    ];
    file.chunk(0, 0, 1, &records);
    let trace = read(&file.0).unwrap();
    let found: Vec<_> = stretches(&trace.threads[0], 999)
        .iter()
        .map(|stretch| (stretch.begin, stretch.end, stretch.state))
        .collect();
    let expected = [
        (0, 100, State::Waiting),
        (100, 200, State::Running),
        (200, 250, State::Asleep),
        (250, 300, State::Waiting),
        (300, 400, State::Running),
        (400, 410, State::InIo),
        (410, 500, State::OnLock),
        (500, 600, State::Running),
        (600, 700, State::Waiting),
        (700, 800, State::Running),
        (800, 870, State::Computing),
        (870, 890, State::InIo),
        (890, 900, State::Waiting),
        (900, 950, State::Running),
        (950, 960, State::InIo),
        (960, 999, State::Running),
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_is_no_trace_is_refused() {
    assert_eq!(read(b"").unwrap_err(), Malformed::Truncated);
    assert_eq!(read(b"#!/usr/bin/env python3\n").unwrap_err(), Malformed::Foreign);
    assert_eq!(read(&layout::MAGIC).unwrap_err(), Malformed::Truncated);
    let mut file = Builder::new(0);
    file.put32(header::VERSION, 99);
    assert_eq!(read(&file.0).unwrap_err(), Malformed::Version(99));
    file.put32(header::ENDIAN, layout::ENDIAN_MARK.swap_bytes());
    assert_eq!(read(&file.0).unwrap_err(), Malformed::ByteOrder);
}

#[test]
fn a_file_cut_off_within_its_records_is_read_as_far_as_it_goes() {
    let whole = convoy();
    let cut = &whole[..layout::CHUNKS_AT + chunk::HEAD + 10 * layout::RECORD_SIZE + 5];
    assert_eq!(read(cut).unwrap().threads[0].records.len(), 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_prefix_is_read_or_refused(length in 0_usize..layout::file_size(4)) {
        let _ = summarise(&convoy()[..length]);
    }

    #[test]
    fn any_damage_is_survived(damage in proptest::collection::vec((0_usize..layout::file_size(4), any::<u8>()), 1..400)) {
        let mut file = convoy();
        for (at, byte) in damage {
            file[at] = byte;
        }
        if let Ok(summary) = summarise(&file) {
            for thread in &summary.threads {
                let mut end = 0;
                for &(begin, length, state, _) in &thread.stretches {
                    prop_assert!(begin >= end && state < 5);
                    end = begin + length;
                }
            }
        }
    }

    #[test]
    fn any_records_make_stretches_in_order(words in proptest::collection::vec((any::<u64>(), any::<u64>()), 0..250)) {
        let mut file = Builder::new(1);
        file.chunk(0, 0, 1, &[]);
        for (place, (first, payload)) in words.into_iter().enumerate() {
            let record = layout::CHUNKS_AT + chunk::HEAD + place * layout::RECORD_SIZE;
            file.put64(record, ((first % 1000) << 8) | (first % 12));
            file.put64(record + 8, payload);
        }
        let trace = read(&file.0).unwrap();
        for thread in &trace.threads {
            let all = stretches(thread, 2000);
            prop_assert!(all.windows(2).all(|pair| pair[0].end == pair[1].begin));
        }
        let _ = summarise(&file.0);
    }
}
