//! Latency spikes, and the events that they coincide with.
//!
//! A spike is a column of the time line whose p99 is above a bound. That spikes fall into an event
//! says nothing by itself: an event that lasts half of the time has half of all columns. So an
//! event is named only if spikes are more frequent in it than elsewhere, beyond chance and over
//! several of its occurrences.

use super::units::{digits, time};
use crate::model::{Lane, LatencyColumn, Text, TimeLine};

/// A column whose p99 is so many times the median column's is a spike ...
const SPIKE_FACTOR: f64 = 3.0;
/// ... if it is also longer than this, in nanoseconds.
const SPIKE_NS_MIN: u64 = 1_000_000;
/// Spikes that a finding needs, of all and within an event.
const SPIKES_MIN: usize = 3;
/// Occurrences of an event that must have spikes.
const OCCURRENCES_MIN: usize = 2;
/// How many times as frequent spikes must be during an event as over the whole time.
const LIFT_MIN: f64 = 2.0;
/// Probability of so many spikes within an event by chance, above which it is not named.
const CHANCE_MAX: f64 = 0.01;

/// An event during which spikes are frequent, or all of them.
struct Coincidence<'a> {
    lane: &'a str,
    /// Spikes during the event.
    spikes: usize,
    /// Columns during the event.
    columns: usize,
}

/// What is said of the spikes of a time line: none if there are too few.
pub(super) fn sentences(line: &TimeLine, name: &str) -> Vec<Text> {
    let bound_ns = bound(&line.columns);
    let is_spike = |column: &&LatencyColumn| column.p99_ns > bound_ns;
    let spikes: Vec<&LatencyColumn> = line.columns.iter().filter(is_spike).collect();
    if spikes.len() < SPIKES_MIN {
        return Vec::new();
    }
    let (count, all) = (spikes.len(), line.columns.len());
    let named: Vec<&Lane> =
        line.lanes.iter().filter(|lane| stands_out(lane, line, bound_ns)).collect();
    let mut texts: Vec<Text> = named
        .iter()
        .map(|lane| {
            let Coincidence { lane, spikes, columns } = coincidence(lane, line, bound_ns);
            let part = |a: usize, b: usize| digits(100.0 * a as f64 / b as f64);
            let (during, overall) = (part(spikes, columns), part(count, all));
            let lift = digits(lift(spikes, columns, count, all));
            Text {
                en: format!(
                    "{name}: {spikes} of {count} latency spikes fall into a {lane}: {during} % of \
                     the {columns} intervals during it are spikes, {overall} % of all {all} \
                     ({lift} times as many)."
                ),
                ru: format!(
                    "{name}: {spikes} из {count} всплесков задержки приходятся на {lane}: \
                     всплесков {during} % из {columns} интервалов во время него, {overall} % из \
                     всех {all} (в {lift} раза больше)."
                ),
            }
        })
        .collect();
    let is_free = |column: &&&LatencyColumn| !named.iter().any(|lane| overlaps(lane, column));
    let unexplained = spikes.iter().filter(is_free).count();
    if unexplained > 0 {
        let bound = time(bound_ns as f64);
        texts.push(Text {
            en: format!(
                "{name}: {unexplained} of {count} latency spikes (p99 above {bound} in {all} \
                 intervals) coincide with no event beyond chance."
            ),
            ru: format!(
                "{name}: {unexplained} из {count} всплесков задержки (p99 выше {bound}, интервалов \
                 {all}) не совпали ни с одним событием чаще случайного."
            ),
        });
    }
    texts
}

/// The p99 above which a column is a spike.
fn bound(columns: &[LatencyColumn]) -> u64 {
    let mut p99: Vec<u64> = columns.iter().map(|column| column.p99_ns).collect();
    p99.sort_unstable();
    let median = p99.get(p99.len() / 2).copied().unwrap_or(0);
    ((median as f64 * SPIKE_FACTOR) as u64).max(SPIKE_NS_MIN)
}

fn overlaps(lane: &Lane, column: &LatencyColumn) -> bool {
    lane.spans.iter().any(|(from, to, _)| *from < column.end_ns && *to >= column.start_ns)
}

fn coincidence<'a>(lane: &'a Lane, line: &TimeLine, bound_ns: u64) -> Coincidence<'a> {
    let during = || line.columns.iter().filter(|column| overlaps(lane, column));
    Coincidence {
        lane: &lane.name,
        spikes: during().filter(|column| column.p99_ns > bound_ns).count(),
        columns: during().count(),
    }
}

/// Whether spikes are frequent during an event, beyond chance.
fn stands_out(lane: &Lane, line: &TimeLine, bound_ns: u64) -> bool {
    let Coincidence { spikes, columns, .. } = coincidence(lane, line, bound_ns);
    let all = line.columns.len();
    let all_spikes = line.columns.iter().filter(|column| column.p99_ns > bound_ns).count();
    // Spikes next to each other are often one: they count as evidence of one occurrence.
    let hit = lane.spans.iter().filter(|(from, to, _)| {
        line.columns.iter().any(|column| {
            column.p99_ns > bound_ns && *from < column.end_ns && *to >= column.start_ns
        })
    });
    spikes >= SPIKES_MIN
        && hit.count() >= OCCURRENCES_MIN
        && lift(spikes, columns, all_spikes, all) >= LIFT_MIN
        && chance(spikes, columns, all_spikes, all) <= CHANCE_MAX
}

/// How many times as frequent spikes are in `columns` as in `all` columns.
fn lift(spikes: usize, columns: usize, all_spikes: usize, all: usize) -> f64 {
    (spikes as f64 / columns.max(1) as f64) / (all_spikes as f64 / all.max(1) as f64)
}

/// Probability of at least `spikes` in `columns` drawn from `all`, `all_spikes` of which are spikes
/// (hypergeometric distribution).
fn chance(spikes: usize, columns: usize, all_spikes: usize, all: usize) -> f64 {
    let ln_choose = |n: usize, k: usize| -> f64 {
        (0..k).map(|i| ((n - i) as f64 / (k - i) as f64).ln()).sum()
    };
    let most = columns.min(all_spikes);
    let whole = ln_choose(all, columns);
    let of = |k: usize| {
        // So many columns without a spike there are not.
        if columns - k > all - all_spikes {
            return 0.0;
        }
        (ln_choose(all_spikes, k) + ln_choose(all - all_spikes, columns - k) - whole).exp()
    };
    (spikes..=most).map(of).sum()
}

#[cfg(test)]
mod tests;
