//! A history of requests for single keys, and what reads by quorum promise about it.
//!
//! Writes are in the order in which the server accepted them, which is somewhere between the
//! beginning and the end of each. A write is *behind* an acknowledged one that began after its end:
//! from the acknowledgement on, no read by quorum returns it. So a read returns
//!
//! 1. a write that began before the read's end, and not one that was refused;
//! 2. a write that is not behind one that was acknowledged before the read began;
//! 3. a write that is not behind one that an earlier read has returned.
//!
//! 1 and 2 are what a regular register promises; 3 is what Cassandra adds, which repairs before it
//! answers.

use std::collections::BTreeMap;

/// Nanoseconds since the beginning of the test.
pub(crate) type Time = u64;

/// What a write leaves: its number, which no other write has, or nothing.
pub(crate) type Value = Option<u64>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Acknowledged,
    /// Nothing was done.
    Refused,
    /// It may have been done.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) value: Value,
    pub(crate) begin: Time,
    pub(crate) end: Time,
    pub(crate) outcome: Outcome,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub(crate) value: Value,
    pub(crate) begin: Time,
    pub(crate) end: Time,
}

/// The requests for one key.
#[derive(Default)]
pub(crate) struct KeyHistory {
    pub(crate) writes: Vec<Write>,
    pub(crate) reads: Vec<Read>,
}

impl KeyHistory {
    /// What contradicts the promises.
    pub(crate) fn contradictions(&self) -> Vec<String> {
        let acknowledged =
            self.writes.iter().filter(|write| write.outcome == Outcome::Acknowledged);
        let acknowledged = Latest::of(acknowledged.map(|write| (write.end, write.begin)));
        // Deletes leave nothing, all of them: which one a read has seen is not known.
        let of_number = self.writes.iter().filter_map(|write| Some((write.value?, *write)));
        let of_number: BTreeMap<u64, Write> = of_number.collect();
        let returned = self
            .reads
            .iter()
            .filter_map(|read| Some((read.end, of_number.get(&read.value?)?.begin)));
        let returned = Latest::of(returned);
        let mut found = Vec::new();
        for read in &self.reads {
            if !self.is_possible(read, &of_number, acknowledged.before(read.begin)) {
                found.push(format!(
                    "{read:?} is behind an acknowledged write, or was never written"
                ));
            } else if !self.is_possible(read, &of_number, returned.before(read.begin)) {
                found.push(format!("{read:?} is behind what an earlier read has returned"));
            }
        }
        found
    }

    /// Whether a write with the read's value ended at `not_before` or later.
    fn is_possible(&self, read: &Read, of_number: &BTreeMap<u64, Write>, not_before: Time) -> bool {
        let is_possible = |write: &Write| {
            write.outcome != Outcome::Refused && write.begin < read.end && write.end >= not_before
        };
        match read.value {
            Some(number) => of_number.get(&number).is_some_and(is_possible),
            None => {
                let deletes = self.writes.iter().filter(|write| write.value.is_none());
                // At first there is nothing.
                not_before == 0 || deletes.into_iter().any(is_possible)
            }
        }
    }

    /// Whether a node that has missed nothing may have `value` after all requests.
    pub(crate) fn may_end_with(&self, value: Value) -> bool {
        let end = self.writes.iter().map(|write| write.end).max().unwrap_or(0) + 1;
        let last = KeyHistory {
            writes: self.writes.clone(),
            reads: vec![Read { value, begin: end, end: end + 1 }],
        };
        last.contradictions().is_empty()
    }
}

/// The latest beginning among all that ended before a time.
struct Latest(Vec<(Time, Time)>);

impl Latest {
    /// Of pairs of end and beginning.
    fn of(pairs: impl Iterator<Item = (Time, Time)>) -> Latest {
        let mut pairs: Vec<(Time, Time)> = pairs.collect();
        pairs.sort_unstable();
        let mut latest = 0;
        for (_, begin) in &mut pairs {
            latest = latest.max(*begin);
            *begin = latest;
        }
        Latest(pairs)
    }

    /// 0: none ended before.
    fn before(&self, time: Time) -> Time {
        let count = self.0.partition_point(|&(end, _)| end < time);
        count.checked_sub(1).map_or(0, |last| self.0[last].1)
    }
}

fn write(value: Value, begin: Time, end: Time, outcome: Outcome) -> Write {
    Write { value, begin, end, outcome }
}

fn contradictions(writes: &[Write], reads: &[(Value, Time, Time)]) -> usize {
    let reads = reads.iter().map(|&(value, begin, end)| Read { value, begin, end });
    KeyHistory { writes: writes.to_vec(), reads: reads.collect() }.contradictions().len()
}

#[test]
fn a_history_of_a_register_has_no_contradiction() {
    use Outcome::{Acknowledged, Unknown};
    let writes = [
        write(Some(1), 10, 20, Acknowledged),
        write(Some(2), 30, 40, Acknowledged),
        write(Some(3), 35, 60, Unknown),
        write(None, 70, 80, Acknowledged),
    ];
    let reads = [
        (None, 1, 15),
        (Some(1), 12, 14),
        (Some(1), 21, 29),
        // While 2 and 3 are written, and after.
        (Some(1), 31, 33),
        (Some(2), 41, 42),
        (Some(3), 61, 62),
        (None, 75, 90),
        (None, 91, 95),
    ];
    assert_eq!(contradictions(&writes, &reads), 0);
    let history = KeyHistory { writes: writes.to_vec(), reads: Vec::new() };
    assert!(history.may_end_with(None) && !history.may_end_with(Some(3)));
}

#[test]
fn what_a_quorum_rules_out_is_found() {
    use Outcome::{Acknowledged, Refused, Unknown};
    let writes = [
        write(Some(1), 10, 20, Acknowledged),
        write(Some(2), 30, 40, Acknowledged),
        write(Some(3), 50, 60, Refused),
        write(Some(4), 70, 80, Unknown),
    ];
    for wrong in [
        // Lost, old, never written, from the future, refused.
        (None, 21, 22),
        (Some(1), 41, 42),
        (Some(9), 41, 42),
        (Some(2), 21, 25),
        (Some(3), 61, 62),
    ] {
        assert_eq!(contradictions(&writes, &[wrong]), 1, "{wrong:?}");
    }
    // An unacknowledged write may be there or not, but does not go away again.
    assert_eq!(contradictions(&writes, &[(Some(2), 81, 82), (Some(4), 83, 84)]), 0);
    assert_eq!(contradictions(&writes, &[(Some(4), 81, 82), (Some(2), 83, 84)]), 1);
}
