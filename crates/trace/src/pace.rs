//! From the processor's counter to CLOCK_MONOTONIC: a straight line that is renewed.
//!
//! Pure arithmetic: the counter and the clock are read elsewhere. A [`Line`] gives
//! nanoseconds for ticks; after [`Line::due`] ticks the [`Follower`] makes the next from a new
//! [`Sample`] of both clocks, at first after a millisecond, then less and less often, since
//! the longer it is, the better the pace is known.
//!
//! Invariants: a line never goes back, nobody reads it when it is overdue, and a renewed one does
//! not begin before the furthest that the one before it could be read. So times never go back.
//!
//! | at its last tick the line is | the next one |
//! |---|---|
//! | behind the clock | begins at the clock's time |
//! | ahead of it | begins where the line ended, and is slower until they meet |

use crate::Nanos;

/// Bits after the point of [`Line::scale`].
const POINT: u32 = 32;
/// The first interval between two samples.
const FIRST_NS: Nanos = 1_000_000;
/// The longest: short enough that ticks times scale fit into 64 bits.
const LONGEST_NS: Nanos = 500_000_000;
/// A pace that differs from the one before by more than this part (one in so many) is none:
/// the machine has slept meanwhile, and only one of the clocks went on.
const CHANGE: u64 = 8;
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
    /// Where it begins.
    pub ticks: u64,
    /// The time there.
    pub nanos: Nanos,
    /// Nanoseconds a tick, 32 bits of them after the point.
    pub scale: u64,
    /// From so many ticks after its beginning on it is to be renewed.
    pub due: u64,
}

impl Line {
    /// The time at this count, which is not overdue; before its beginning, that of the beginning.
    #[must_use]
    #[inline]
    pub const fn at(&self, ticks: u64) -> Nanos {
        let since = ticks.saturating_sub(self.ticks);
        self.nanos.wrapping_add(since.wrapping_mul(self.scale) >> POINT)
    }

    /// Whether it is to be renewed before it is read at this count.
    #[must_use]
    #[inline]
    pub const fn is_overdue(&self, ticks: u64) -> bool {
        ticks.saturating_sub(self.ticks) >= self.due
    }

    /// Of this beginning and pace, for so long; `None` for a pace that cannot be had.
    fn new(start: Sample, scale: u64, interval: Nanos) -> Option<Self> {
        let due = (u128::from(interval) << POINT).checked_div(u128::from(scale))?;
        let due = u64::try_from(due).ok().filter(|&due| due > 0)?;
        Some(Self {
            ticks: start.ticks,
            nanos: start.nanos,
            scale,
            due,
        })
    }
}

/// Makes one line after another from samples.
#[derive(Debug, Clone, Copy)]
pub struct Follower {
    line: Line,
    last: Sample,
    /// What was measured last; `None` after the machine has slept.
    pace: Option<u64>,
}

impl Follower {
    /// Begins with two samples, which should be [`APART_NS`] apart or more; `None` if no pace
    /// can be had from them: the counter stands still, or goes back, or is far too slow or too fast.
    #[must_use]
    pub fn new(first: Sample, second: Sample) -> Option<Self> {
        let scale = pace(first, second)?;
        Some(Self {
            line: Line::new(second, scale, FIRST_NS)?,
            last: second,
            pace: Some(scale),
        })
    }

    /// The line that holds now.
    #[must_use]
    pub const fn line(&self) -> Line {
        self.line
    }

    /// Renews the line with a new sample. `None` if one of the clocks has gone back, or stood still: they
    /// cannot be followed.
    #[must_use]
    pub fn renewed(&self, now: Sample) -> Option<Self> {
        let elapsed = now.nanos.checked_sub(self.last.nanos)?;
        let measured = pace(self.last, now)?;
        let is_likely = self.pace.is_none_or(|pace| measured.abs_diff(pace) <= pace / CHANGE);
        let (scale, interval) = if is_likely {
            (measured, elapsed.saturating_mul(2).clamp(FIRST_NS, LONGEST_NS))
        } else {
            (self.line.scale, FIRST_NS)
        };
        let line = &self.line;
        let end = line.at(now.ticks.min(line.ticks.saturating_add(line.due)));
        let ahead = end.saturating_sub(now.nanos).min(interval / 2);
        let start = Sample {
            ticks: now.ticks,
            nanos: end.max(now.nanos),
        };
        Some(Self {
            line: Line::new(start, scale - part_of(scale, ahead, interval), interval)?,
            last: now,
            pace: is_likely.then_some(measured),
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

    /// A counter beside a clock that is sometimes drawn faster or slower, as by NTP.
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
    }

    #[test]
    fn a_machine_that_slept_goes_on_at_the_clock_s_time() {
        let (mut machine, mut follower) = follow(2_000_000_000);
        read(&mut follower, machine.pass(10_000_000, 0, 0));
        for _ in 0..3 {
            machine.elapsed += 3_600_000_000_000;
            let sample = machine.pass(1_000_000_000, 0, 0);
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
