//! Whether two places have the same records, and which keys differ.
//!
//! Both are read and compared by the digests of [`super::digest`]. Ranges that differ are read
//! again, from both places side by side, and their records compared one by one: this second reading
//! decides. So records that expired, or were written to both, between the first readings of the two
//! places are no difference. Nor are records that expire about now: a copy in a cluster lives up to
//! two seconds longer, one from a cluster up to one, and a cluster says up to one too many.

use super::digest::Ranges;
use super::progress::Progress;
use super::records::{FIRST_KEY, Record, Source};
use crate::exit::note;
use kvant_base::{Error, ErrorKind, Result, size};
use kvant_env::Clock;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// By so much one place may keep a record for longer than the other.
const EXPIRY_TOLERANCE_MS: u64 = 5_000;
/// Keys that are named.
const KEYS_SHOWN_MAX: u64 = 100;

/// Keys that differ.
struct Differences<'a> {
    clock: &'a dyn Clock,
    missing_count: u64,
    surplus_count: u64,
    other_count: u64,
}

impl Differences<'_> {
    /// Whether one place may have this record, and the other one not any more.
    fn is_expiring(&self, record: Record<'_>) -> bool {
        let until_ms = self.clock.wall_ms() + EXPIRY_TOLERANCE_MS;
        record.expires_at_ms.is_some_and(|at_ms| at_ms <= until_ms)
    }

    fn count(&self) -> u64 {
        self.missing_count + self.surplus_count + self.other_count
    }

    fn show(&self, key: &[u8], what: fmt::Arguments<'_>) {
        match self.count() {
            count if count < KEYS_SHOWN_MAX => note(&format!("`{}` {what}", key.escape_ascii())),
            KEYS_SHOWN_MAX => note("more keys differ, which are counted only"),
            _ => {}
        }
    }
}

/// The records of a place, in the ranges that they make.
pub(super) fn digests_of(source: &dyn Source, clock: &Arc<dyn Clock>) -> Result<Ranges> {
    fill(source, Ranges::new(FIRST_KEY), clock)
}

fn fill(source: &dyn Source, mut ranges: Ranges, clock: &Arc<dyn Clock>) -> Result<Ranges> {
    let mut progress = Progress::new(clock, "compared");
    let mut records = source.read(ranges.first(), None)?;
    while let Some(record) = records.next()? {
        ranges.add(record);
        progress.add(record);
    }
    Ok(ranges)
}

/// Compares `to` with `from`, whose records are `expected`; returns a line if they are equal.
/// Records before these are read in `to`, for its checksums, and not compared.
///
/// # Errors
/// `Corruption`: they differ; each of the first keys was named on standard error.
pub(super) fn compare(
    from: &dyn Source,
    to: &dyn Source,
    expected: &Ranges,
    clock: &Arc<dyn Clock>,
) -> Result<String> {
    let earlier_count = count_before(to, expected.first())?;
    let found = fill(to, expected.emptied(), clock)?;
    let differing = expected.differing(&found);
    let mut differences =
        Differences { clock: &**clock, missing_count: 0, surplus_count: 0, other_count: 0 };
    for (start, end) in &differing {
        compare_range(from, to, start, *end, &mut differences)?;
    }
    let total = found.total();
    if differences.count() == 0 {
        let (count, bytes) = (total.count, size::format(total.bytes));
        let earlier = match earlier_count {
            0 => String::new(),
            count => format!("; {count} before them, of earlier attempts, were not compared"),
        };
        return Ok(format!("{count} records, {bytes}: equal in {} ranges{earlier}", found.count()));
    }
    let Differences { missing_count, surplus_count, other_count, .. } = differences;
    let what = format!(
        "the places differ, in {} of {} ranges: of {} records {missing_count} are missing in the \
         second place, {other_count} have another value there, and it has {surplus_count} more",
        differing.len(),
        found.count(),
        expected.total().count,
    );
    Err(Error::new(ErrorKind::Corruption, what))
}

/// Records before `first`.
fn count_before(source: &dyn Source, first: &[u8]) -> Result<u64> {
    let mut count = 0;
    if first > FIRST_KEY {
        let mut records = source.read(FIRST_KEY, Some(first))?;
        while records.next()?.is_some() {
            count += 1;
        }
    }
    Ok(count)
}

fn compare_range(
    from: &dyn Source,
    to: &dyn Source,
    start: &[u8],
    end: Option<&[u8]>,
    differences: &mut Differences<'_>,
) -> Result<()> {
    let (mut expected, mut found) = (from.read(start, end)?, to.read(start, end)?);
    let (mut one, mut other) = (expected.next()?, found.next()?);
    loop {
        let order = match (&one, &other) {
            (None, None) => return Ok(()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(one), Some(other)) => one.key.cmp(other.key),
        };
        let both = (one, other);
        match (order, both) {
            (Ordering::Less, (Some(one), _)) if !differences.is_expiring(one) => {
                differences.show(one.key, format_args!("is missing"));
                differences.missing_count += 1;
            }
            (Ordering::Greater, (_, Some(other))) if !differences.is_expiring(other) => {
                differences.show(other.key, format_args!("is only in the second place"));
                differences.surplus_count += 1;
            }
            (Ordering::Equal, (Some(one), Some(other))) if one.value != other.value => {
                let (len, other_len) = (one.value.len(), other.value.len());
                let what = format_args!("has another value: {len} bytes, now {other_len}");
                differences.show(one.key, what);
                differences.other_count += 1;
            }
            _ => {}
        }
        if order != Ordering::Greater {
            one = expected.next()?;
        }
        if order != Ordering::Less {
            other = found.next()?;
        }
    }
}

#[cfg(test)]
mod tests;
