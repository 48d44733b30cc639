//! Second reads: a read that has no answer after the time in which 99 of 100 have one is sent to
//! another node too, and the first answer counts.
//!
//! Invariants:
//! 1. Second reads are at most one in [`READS_EACH`] reads, whatever the cluster does: an
//!    overloaded cluster gets no more work from them than that. Reads that are in flight together
//!    may send more of them; later reads pay for these before another one is sent.
//! 2. A first attempt that lost counts with the time that it had. Left out, it would make the
//!    percentile fall, and more attempts lose.
//!
//! Threads: any.

use kvant_env::Clock;
use scylla::policies::speculative_execution::{Context, SpeculativeExecutionPolicy};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// A read pays for one part of so many of a second read.
const READS_EACH: i64 = 20;
/// Second reads that calm times pay for in advance.
const BURST_COUNT: i64 = 50;
/// Fewer reads have no 99th percentile.
const READS_MIN: u64 = 200;
/// The percentile is computed anew after this time, with the reads before it at half their weight.
const RENEWAL_US: u64 = 1_000_000;

/// Times are counted in intervals of a quarter of an octave, from this on.
const TIME_US_MIN: u64 = 64;
const INTERVAL_COUNT: usize = 72;

pub(crate) struct SecondReads {
    is_on: bool,
    clock: Arc<dyn Clock>,
    counts: [AtomicU32; INTERVAL_COUNT],
    renewed_us: AtomicU64,
    /// 0: not known.
    delay_us: AtomicU64,
    /// Below 0: of second reads that are not paid for yet.
    credit: AtomicI64,
    count: AtomicU64,
    won_count: AtomicU64,
}

/// What second reads have cost and brought.
#[derive(Clone, Debug, Serialize)]
pub struct SecondReadStats {
    /// Whether they are on.
    pub on: bool,
    /// Microseconds after which one is sent; `None`: too few reads to know.
    pub delay_us: Option<u64>,
    /// Second reads that were sent.
    pub count: u64,
    /// Of these, answered before the first.
    pub won_count: u64,
}

impl SecondReads {
    pub(crate) fn new(is_on: bool, clock: Arc<dyn Clock>) -> Arc<SecondReads> {
        Arc::new(SecondReads {
            is_on,
            clock,
            counts: [const { AtomicU32::new(0) }; INTERVAL_COUNT],
            renewed_us: AtomicU64::new(0),
            delay_us: AtomicU64::new(0),
            credit: AtomicI64::new(0),
            count: AtomicU64::new(0),
            won_count: AtomicU64::new(0),
        })
    }

    pub(crate) fn stats(&self) -> SecondReadStats {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        SecondReadStats {
            on: self.is_on,
            delay_us: Some(load(&self.delay_us)).filter(|&delay_us| delay_us > 0),
            count: load(&self.count),
            won_count: load(&self.won_count),
        }
    }

    /// Notes a first attempt that has taken this long.
    pub(crate) fn note_first(&self, time_us: u64) {
        if !self.is_on {
            return;
        }
        self.counts[interval_of(time_us)].fetch_add(1, Ordering::Relaxed);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        let most = READS_EACH * BURST_COUNT;
        let paid = |credit| (credit < most).then_some(credit + 1);
        // Nothing to pay where there is enough.
        self.credit.fetch_update(set, fetch, paid).unwrap_or(most);
    }

    pub(crate) fn note_sent(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.credit.fetch_sub(READS_EACH, Ordering::Relaxed);
    }

    pub(crate) fn note_won(&self) {
        self.won_count.fetch_add(1, Ordering::Relaxed);
    }

    /// When to send the second read; `None`: not at all.
    fn delay(&self) -> Option<Duration> {
        let now_us = self.clock.monotonic_ns() / 1_000;
        let renewed_us = self.renewed_us.load(Ordering::Relaxed);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        if now_us.saturating_sub(renewed_us) >= RENEWAL_US
            && self.renewed_us.compare_exchange(renewed_us, now_us, set, fetch).is_ok()
        {
            self.renew();
        }
        let delay_us = self.delay_us.load(Ordering::Relaxed);
        let has_credit = self.credit.load(Ordering::Relaxed) >= READS_EACH;
        (delay_us > 0 && has_credit).then(|| Duration::from_micros(delay_us))
    }

    fn renew(&self) {
        let mut counts = [0_u64; INTERVAL_COUNT];
        for (count, kept) in counts.iter_mut().zip(&self.counts) {
            let halved = |count: u32| Some(count / 2);
            let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
            *count = kept.fetch_update(set, fetch, halved).unwrap_or_default().into();
        }
        let total: u64 = counts.iter().sum();
        if total < READS_MIN {
            return;
        }
        let mut slower = total;
        let interval = counts.iter().position(|count| {
            slower -= count;
            slower * 100 <= total
        });
        let delay_us = end_us_of(interval.unwrap_or(INTERVAL_COUNT - 1));
        self.delay_us.store(delay_us, Ordering::Relaxed);
    }
}

fn interval_of(time_us: u64) -> usize {
    let octave = (time_us.saturating_sub(1) / TIME_US_MIN).checked_ilog2().unwrap_or(0) as usize;
    let quarters = (4 * octave)..INTERVAL_COUNT - 1;
    quarters.take(4).find(|&index| time_us <= end_us_of(index)).unwrap_or(INTERVAL_COUNT - 1)
}

/// The longest time of an interval.
fn end_us_of(index: usize) -> u64 {
    let octave_us = TIME_US_MIN << (index / 4);
    octave_us + octave_us / 4 * (index as u64 % 4 + 1)
}

impl fmt::Debug for SecondReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecondReads")
    }
}

impl SpeculativeExecutionPolicy for SecondReads {
    fn max_retry_count(&self, _context: &Context) -> usize {
        self.delay().is_some().into()
    }

    fn retry_interval(&self, _context: &Context) -> Duration {
        // Where it is not known, none is sent: any time will do.
        self.delay().unwrap_or(Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests;
