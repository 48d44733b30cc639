//! The goals for Kvant, as verdicts on results.

use crate::engine::Kind;
use crate::results::{Results, Run, least_peer};
use crate::workloads::Workload;

/// A ratio within this of 1 is a tie if its range reaches 1.
const TIE: f64 = 0.05;
const AHEAD: f64 = 1.5;
const LMDB_WARM: (&str, f64) = ("readrandom", 0.6);
const LMDB_SHORT_OF_MEMORY: (&str, f64) = ("read4x", 1.0);

pub(crate) struct Verdict {
    pub(crate) subject: String,
    pub(crate) goal: String,
    pub(crate) value: String,
    pub(crate) is_met: bool,
}

pub(crate) fn verdicts(results: &Results) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let mut ahead_count = 0;
    // At a constant rate all engines do as many operations.
    let is_race = results.rate.is_none();
    for workload in results.workloads() {
        if is_race
            && let Some(peer) = results.fastest_peer(workload)
            && let Some(ratio) = results.ratio(workload, peer, Run::ops_per_second)
        {
            ahead_count += usize::from(ratio.median >= AHEAD);
            verdicts.push(Verdict {
                subject: format!("{}: operations/s", workload.name),
                goal: ">= 1.0 x the best LSM peer".into(),
                value: format!(
                    "{:.2} x {} ({:.2} to {:.2})",
                    ratio.median,
                    peer.name(),
                    ratio.min,
                    ratio.max
                ),
                is_met: ratio.median >= 1.0 || ratio.median >= 1.0 - TIE && ratio.max >= 1.0,
            });
        }
        verdicts.extend(results.latency_kinds(workload).into_iter().filter_map(|kind| {
            let p999 = |engine| results.latency(workload, engine, kind, |latency| latency.p999);
            at_most_the_least(&format!("{}: p99.9 of {kind}, us", workload.name), |engine| {
                Some(p999(engine)? / 1e3)
            })
        }));
        verdicts.extend(write_cost(results, workload));
        verdicts.extend(memory(results, workload));
        for (name, least) in [LMDB_WARM, LMDB_SHORT_OF_MEMORY] {
            if is_race
                && name == workload.name
                && let Some(ratio) = results.ratio(workload, Kind::Lmdb, Run::ops_per_second)
            {
                verdicts.push(Verdict {
                    subject: format!("{name}: operations/s"),
                    goal: format!(">= {least} x lmdb"),
                    value: format!("{:.2} x", ratio.median),
                    is_met: ratio.median >= least,
                });
            }
        }
    }
    if is_race {
        let workload_count = results.workloads().count();
        verdicts.push(Verdict {
            subject: "all workloads".into(),
            goal: format!("half of them >= {AHEAD} x the best LSM peer"),
            value: format!("{ahead_count} of {workload_count}"),
            is_met: ahead_count * 2 >= workload_count,
        });
    }
    verdicts
}

/// Write amplification and disk, of workloads that write.
fn write_cost(results: &Results, workload: &Workload) -> Vec<Verdict> {
    let amplification = |engine| results.median(workload, engine, Run::write_amplification);
    if amplification(Kind::Kvant).is_none_or(|value| value == 0.0) {
        return Vec::new();
    }
    let disk = |engine| {
        let mib = |run: &Run| run.figures.disk_bytes as f64 / f64::from(1 << 20);
        results.median(workload, engine, mib)
    };
    let name = workload.name;
    let written = at_most_the_least(&format!("{name}: written/user bytes"), amplification);
    let disk = at_most_the_least(&format!("{name}: disk, MiB"), disk);
    written.into_iter().chain(disk).collect()
}

/// The verdict that Kvant's figure is at most the least of the LSM peers.
fn at_most_the_least(subject: &str, figure: impl Fn(Kind) -> Option<f64>) -> Option<Verdict> {
    let own = figure(Kind::Kvant)?;
    let (peer, least) = least_peer(figure)?;
    Some(Verdict {
        subject: subject.into(),
        goal: format!("<= {least:.2} ({})", peer.name()),
        value: format!("{own:.2}"),
        is_met: own <= least,
    })
}

fn memory(results: &Results, workload: &Workload) -> Option<Verdict> {
    let runs = || results.runs(workload, Kind::Kvant).map(|run| &run.figures);
    let worst = runs().max_by_key(|figures| figures.memory.now_bytes)?;
    let mib = |bytes: u64| bytes >> 20;
    Some(Verdict {
        subject: format!("{}: resident memory at the end, MiB", workload.name),
        goal: format!("<= {}", mib(worst.memory_bytes_set)),
        value: mib(worst.memory.now_bytes).to_string(),
        is_met: worst.memory.now_bytes <= worst.memory_bytes_set,
    })
}
