//! Converts the processor's counter to CLOCK_MONOTONIC by a straight line that is renewed.
//!
//! Pure arithmetic: the caller reads the counter and the clock. A [`Line`] gives nanoseconds for
//! ticks. After [`Line::due`] ticks the [`Follower`] makes the next line from a new [`Sample`] of
//! both clocks: at first after a millisecond, then less and less often, since a longer interval
//! gives a more precise pace.
//!
//! Invariants: a line never goes back, and is not read when it is overdue, or for a count from before it.
//! While both clocks run, a renewed line does not begin before the furthest reading of its predecessor;
//! so times read from lines go back only where the machine has slept.
//!
//! | at the new sample | the next line |
//! |---|---|
//! | the line's end is behind the clock | begins at the clock's time |
//! | the line's end is ahead of the clock | begins where the line ended, and is slower until they meet |
//! | only one of the clocks has run | begins at the clock's time, by the pace known before |
//! | the same, or no sample at all, [`MAX_FAILURES`] times in a row | does not exist |
//! | one of the clocks has gone back | does not exist |

use crate::Nanos;

/// Bits after the point of [`Line::scale`].
const POINT: u32 = 32;
/// The first interval between two samples.
const FIRST_NS: Nanos = 1_000_000;
/// The longest: short enough that ticks times scale fit into 64 bits.
const LONGEST_NS: Nanos = 500_000_000;
/// A pace that differs from the last by more than this part (one in so many) of the larger is invalid: the
/// machine has slept meanwhile, and only one of the clocks ran.
const CHANGE: u64 = 8;
/// Counts up to this far below the sample of a line still belong to the line: a processor that
/// does not wait for earlier instructions read them ahead. Some microseconds.
const SLACK: u64 = 1 << 16;
/// After this many failures in a row the counter is not followed any longer.
pub const MAX_FAILURES: u32 = 8;
/// The least number of nanoseconds between two samples that give a pace.
pub const APART_NS: Nanos = 50_000;

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The counter.
    pub ticks: u64,
    /// CLOCK_MONOTONIC.
    pub nanos: Nanos,
}

/// Nanoseconds as a function of ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Line {
    /// Its first count: a little before the sample that it was made from.
    pub ticks: u64,
    /// The time there.
    pub nanos: Nanos,
    /// Nanoseconds a tick, 32 bits of them after the point.
    pub scale: u64,
    /// Ticks after its beginning from which on it must be renewed; 0 for no line.
    pub due: u64,
}

impl Line {
    /// The time at this count, which is not overdue.
    #[must_use]
    #[inline]
    pub const fn at(&self, ticks: u64) -> Nanos {
        let since = ticks.wrapping_sub(self.ticks);
        self.nanos.wrapping_add(since.wrapping_mul(self.scale) >> POINT)
    }

    /// Whether it must be renewed before it is read at this count. A count from before the line is
    /// overdue as well, since it wraps to far above the line's end: the counter was set back.
    #[must_use]
    #[inline]
    pub const fn is_overdue(&self, ticks: u64) -> bool {
        ticks.wrapping_sub(self.ticks) >= self.due
    }

    /// Its last reading.
    const fn end(&self) -> Nanos {
        self.at(self.ticks.wrapping_add(self.due))
    }

    /// The line through this moment, at this pace, for `interval` from there; `None` for an impossible pace.
    fn new(through: Sample, scale: u64, interval: Nanos) -> Option<Self> {
        let due = (u128::from(interval) << POINT).checked_div(u128::from(scale))?;
        let due = u64::try_from(due).ok().filter(|&due| due > 0)?;
        Some(Self {
            ticks: through.ticks.wrapping_sub(SLACK),
            nanos: through.nanos.wrapping_sub(SLACK.wrapping_mul(scale) >> POINT),
            scale,
            due: due.checked_add(SLACK)?,
        })
    }
}

/// Makes one line after another from samples.
#[derive(Debug, Clone, Copy)]
pub struct Follower {
    line: Line,
    last: Sample,
    /// The last pace measured while both clocks ran.
    pace: u64,
    /// Failures in a row since.
    failures: u32,
}

impl Follower {
    /// Begins with two samples, which should be [`APART_NS`] apart or more; `None` if they
    /// give no pace: the counter stands still, or goes back, or is far too slow or too fast.
    #[must_use]
    pub fn new(first: Sample, second: Sample) -> Option<Self> {
        let scale = pace(first, second)?;
        Some(Self {
            line: Line::new(second, scale, FIRST_NS)?,
            last: second,
            pace: scale,
            failures: 0,
        })
    }

    /// The present line.
    #[must_use]
    pub const fn line(&self) -> Line {
        self.line
    }

    /// Renews the line with a new sample, if it is overdue: samples are never closer to each other than a
    /// line is long. `None` if the clocks cannot be followed any longer.
    #[must_use]
    pub fn renewed(&self, now: Sample) -> Option<Self> {
        if !self.line.is_overdue(now.ticks) {
            return Some(*self);
        }
        let elapsed = now.nanos.checked_sub(self.last.nanos)?;
        let measured = pace(self.last, now)?;
        if measured.abs_diff(self.pace) > measured.max(self.pace) / CHANGE {
            return self.resumed(now);
        }
        let interval = elapsed.saturating_mul(2).clamp(FIRST_NS, LONGEST_NS);
        let end = self.line.end();
        let ahead = end.saturating_sub(now.nanos).min(interval / 2);
        let through = Sample {
            ticks: now.ticks,
            nanos: end.max(now.nanos),
        };
        Some(Self {
            line: Line::new(through, measured - part_of(measured, ahead, interval), interval)?,
            last: now,
            pace: measured,
            failures: 0,
        })
    }

    /// The same line after a sample failed. `None` after [`MAX_FAILURES`] failures in a row.
    #[must_use]
    pub fn failed(&self) -> Option<Self> {
        let failures = self.failures + 1;
        (failures < MAX_FAILURES).then_some(Self { failures, ..*self })
    }

    /// Continues at the clock's time: no thread has read the line to its end while the machine slept.
    fn resumed(&self, now: Sample) -> Option<Self> {
        Some(Self {
            line: Line::new(now, self.pace, FIRST_NS)?,
            last: now,
            ..self.failed()?
        })
    }
}

/// Nanoseconds a tick between two samples.
fn pace(first: Sample, second: Sample) -> Option<u64> {
    let ticks = second.ticks.checked_sub(first.ticks).filter(|&ticks| ticks > 0)?;
    let nanos = second.nanos.checked_sub(first.nanos)?;
    let scale = u64::try_from((u128::from(nanos) << POINT) / u128::from(ticks)).ok()?;
    (scale > 0).then_some(scale)
}

/// `value * part / whole`.
fn part_of(value: u64, part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(value) * u128::from(part) / u128::from(whole)).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A counter, and a clock that is sometimes made faster or slower, as by NTP.
    struct Machine {
        hertz: u64,
        /// By the counter.
        elapsed: u64,
        /// By the clock.
        nanos: Nanos,
    }

    impl Machine {
        fn new(hertz: u64) -> Self {
            Self {
                hertz,
                elapsed: 40_000_000_000,
                nanos: 5_000_000_000,
            }
        }

        /// Goes on for `nanos` of a clock that is `ppm` too fast, and reads both with an error.
        fn pass(&mut self, nanos: u64, ppm: i64, error: u64) -> Sample {
            self.elapsed += nanos;
            self.nanos += nanos.saturating_add_signed(nanos as i64 / 1_000_000 * ppm);
            Sample {
                ticks: (u128::from(self.elapsed) * u128::from(self.hertz) / 1_000_000_000) as u64,
                nanos: self.nanos + error,
            }
        }
    }

    /// Reads the time as the recorder does: renews the line if it is overdue.
    fn read(follower: &mut Follower, sample: Sample) -> Nanos {
        if follower.line.is_overdue(sample.ticks) {
            *follower = follower.renewed(sample).unwrap();
        }
        follower.line.at(sample.ticks)
    }

    fn follow(hertz: u64) -> (Machine, Follower) {
        let mut machine = Machine::new(hertz);
        let first = machine.pass(0, 0, 0);
        let second = machine.pass(2 * APART_NS, 0, 0);
        (machine, Follower::new(first, second).unwrap())
    }

    fn hertz() -> impl Strategy<Value = u64> {
        prop_oneof![
            Just(19_200_000_u64),
            Just(1_000_000_000),
            1_000_000_000..6_000_000_000_u64
        ]
    }

    proptest! {
        #[test]
        fn times_never_go_back_and_stay_near_the_clock(
            hertz in hertz(),
            steps in prop::collection::vec((1_u64..2_000_000_000, -500_i64..500, 0_u64..200), 1..200),
        ) {
            let (mut machine, mut follower) = follow(hertz);
            let mut before = 0;
            for (nanos, ppm, error) in steps {
                let sample = machine.pass(nanos, ppm, error);
                let time = read(&mut follower, sample);
                prop_assert!(time >= before, "{time} after {before}");
                // Between two samples a clock that changes its pace by 1,000 in a million is
                // that much off, at the end of the interval; and so is one read with an error.
                let allowed = 2_000 + LONGEST_NS / 1000 + nanos / 1000;
                prop_assert!(time.abs_diff(machine.nanos) <= allowed, "{time} for {}", machine.nanos);
                before = time;
            }
        }

        #[test]
        fn a_steady_clock_is_met_within_the_error_of_reading_it(
            hertz in hertz(),
            steps in prop::collection::vec((1_u64..3_000_000, 0_u64..50), 1..2000),
        ) {
            let (mut machine, mut follower) = follow(hertz);
            for (nanos, error) in steps {
                let sample = machine.pass(nanos, 0, error);
                let time = read(&mut follower, sample);
                // Three readings, each 50 at the most, and what is cut off of a slow counter.
                prop_assert!(time.abs_diff(machine.nanos) <= 1_000, "{time} for {}", machine.nanos);
            }
        }

        #[test]
        fn no_samples_overflow(ticks: [u64; 4], nanos: [u64; 4]) {
            let sample = |n: usize| Sample { ticks: ticks[n], nanos: nanos[n] };
            if let Some(next) = Follower::new(sample(0), sample(1)).and_then(|follower| follower.renewed(sample(2))) {
                prop_assert!(next.line.due > 0 && next.line.scale > 0);
                let _ = next.line.at(ticks[3]);
                let _ = next.renewed(sample(3));
            }
        }

        #[test]
        fn what_is_not_overdue_fits(hertz in hertz(), part in 0_u64..1000) {
            let (mut machine, follower) = follow(hertz);
            let line = Line::new(machine.pass(0, 0, 0), follower.line.scale, LONGEST_NS).unwrap();
            let ticks = line.due / 1000 * part;
            let exact = (u128::from(ticks) * u128::from(line.scale)) >> POINT;
            prop_assert_eq!(u128::from(line.at(line.ticks + ticks) - line.nanos), exact);
        }

        #[test]
        fn a_counter_that_was_set_back_is_not_followed(
            hertz in hertz(),
            nanos in 1_u64..1_000_000,
            part in 0_u64..1000,
        ) {
            let (mut machine, follower) = follow(hertz);
            let earliest = follower.last.ticks - SLACK;
            let now = Sample { ticks: earliest / 1000 * part, ..machine.pass(nanos, 0, 0) };
            prop_assert!(follower.line.is_overdue(now.ticks));
            prop_assert!(follower.renewed(now).is_none());
        }

        #[test]
        fn a_stop_of_any_length_is_made_up_for(
            hertz in hertz(),
            steps in 1..100,
            stop in prop_oneof![0..1_000_000_u64, 0..100_000_000_u64, 0..5_000_000_000_u64],
            has_clock_stopped: bool,
        ) {
            let (mut machine, mut follower) = follow(hertz);
            for _ in 0..steps {
                read(&mut follower, machine.pass(10_000_000, 0, 0));
            }
            *(if has_clock_stopped { &mut machine.elapsed } else { &mut machine.nanos }) += stop;
            for _ in 0..200 {
                read(&mut follower, machine.pass(10_000_000, 0, 0));
            }
            let sample = machine.pass(1_000_000, 0, 0);
            prop_assert!(read(&mut follower, sample).abs_diff(sample.nanos) <= 1_000);
        }

        #[test]
        fn a_line_is_not_renewed_before_it_is_overdue(hertz in hertz(), nanos in 0..FIRST_NS - 1_000) {
            let (mut machine, follower) = follow(hertz);
            // An error that would spoil the pace if it were measured over so short a time.
            let next = follower.renewed(machine.pass(nanos, 0, 500)).unwrap();
            prop_assert_eq!((next.line, next.last), (follower.line, follower.last));
        }
    }

    #[test]
    fn a_count_that_was_read_ahead_of_the_sample_is_a_little_earlier() {
        let (_, follower) = follow(2_000_000_000);
        let Sample { ticks, nanos } = follower.last;
        assert_eq!(follower.line.at(ticks), nanos);
        assert!(!follower.line.is_overdue(ticks - 100));
        assert_eq!(follower.line.at(ticks - 100), nanos - 50);
        assert!(follower.line.is_overdue(ticks - SLACK - 1));
    }

    #[test]
    fn a_counter_that_begins_again_is_followed_across_its_largest_number() {
        let sample = |ticks: u64, nanos| Sample {
            ticks: ticks.wrapping_sub(1_000),
            nanos,
        };
        let line = Line::new(sample(0, 5_000), 1 << POINT, FIRST_NS).unwrap();
        assert!(!line.is_overdue(sample(2_000, 0).ticks));
        assert_eq!(line.at(sample(2_000, 0).ticks), 7_000);
    }

    #[test]
    fn a_clock_that_gives_no_sample_is_given_up_after_some_failures() {
        let (mut machine, begun) = follow(2_000_000_000);
        let mut follower = begun;
        for _ in 1..MAX_FAILURES {
            follower = follower.failed().unwrap();
        }
        assert!(follower.failed().is_none());
        let renewed = follower.renewed(machine.pass(2 * FIRST_NS, 0, 0)).unwrap();
        assert!(renewed.failed().is_some());
    }

    #[test]
    fn a_counter_of_another_pace_is_given_up_after_some_failures() {
        let (mut machine, mut follower) = follow(2_000_000_000);
        for _ in 1..MAX_FAILURES {
            machine.elapsed += 5_000_000;
            let sample = machine.pass(5_000_000, 0, 0);
            assert_eq!(read(&mut follower, sample), sample.nanos);
        }
        machine.elapsed += 5_000_000;
        assert!(follower.renewed(machine.pass(5_000_000, 0, 0)).is_none());
    }

    #[test]
    fn a_machine_that_slept_goes_on_at_the_clock_s_time() {
        let (mut machine, mut follower) = follow(2_000_000_000);
        read(&mut follower, machine.pass(10_000_000, 0, 0));
        for _ in 0..3 {
            machine.elapsed += 3_600_000_000_000;
            let sample = machine.pass(1_000_000, 0, 0);
            assert_eq!(read(&mut follower, sample), sample.nanos);
            for _ in 0..100 {
                let sample = machine.pass(300_000, 0, 0);
                assert!(read(&mut follower, sample).abs_diff(sample.nanos) < 100);
            }
        }
    }

    #[test]
    fn samples_that_give_no_pace_give_no_line() {
        let is_begun = |ticks, nanos, later_ticks, later_nanos| {
            let first = Sample { ticks, nanos };
            let second = Sample {
                ticks: later_ticks,
                nanos: later_nanos,
            };
            Follower::new(first, second).is_some()
        };
        assert!(is_begun(5, 10, 6, 11));
        assert!(!is_begun(5, 0, 5, 10));
        assert!(!is_begun(6, 0, 5, 10));
        assert!(!is_begun(5, 10, 6, 5));
        assert!(!is_begun(5, 10, 6, 10));
    }
}
