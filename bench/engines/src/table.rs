//! Results as Markdown.

use crate::engine::Kind;
use crate::goals::Verdict;
use crate::latency::Latency;
use crate::results::{Results, Run};
use crate::workloads::Workload;
use std::fmt::Write;

pub(crate) fn markdown(results: &Results, verdicts: &[Verdict]) -> String {
    let mut out = String::new();
    let rounds = results.runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
    let disturbed = results.runs.iter().filter(|run| run.is_disturbed).count();
    let speed = results.rate.map_or("full speed".into(), |rate| {
        format!("{} operations/s, from which moments times count", self::rate(rate as f64))
    });
    line(
        &mut out,
        &format!(
            "{} records of 16 + 100 bytes (larger ones fewer), {rounds} rounds, cache {} MiB, \
             memory {} MiB; {speed}; {}. {} runs, of which {disturbed} were disturbed.\n",
            results.records,
            results.cache_bytes >> 20,
            results.memory_bytes >> 20,
            results.machine,
            results.runs.len(),
        ),
    );
    ratios(results, &mut out);
    figures(results, &mut out);
    goals(verdicts, &mut out);
    out
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("writing into a string");
}

/// A row of a table.
fn row<T: AsRef<str>>(out: &mut String, cells: &[T]) {
    let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    line(out, &format!("| {} |", cells.join(" | ")));
}

fn head(out: &mut String, cells: &[&str]) {
    row(out, cells);
    row(out, &vec!["---"; cells.len()]);
}

/// Kvant against the others: more than 1 is better for operations, less than 1 for the rest.
fn ratios(results: &Results, out: &mut String) {
    line(out, "### Kvant by the best LSM peer\n");
    head(
        out,
        &[
            "workload",
            "operations/s",
            "peer",
            "ratio",
            "range",
            "CPU ratio",
            "CPU ratio with debt",
            "by lmdb",
            "by redb",
        ],
    );
    for workload in results.workloads() {
        let Some(peer) = results.fastest_peer(workload) else { continue };
        let Some(ratio) = results.ratio(workload, peer, Run::ops_per_second) else { continue };
        let by = |peer, figure: fn(&Run) -> f64| {
            results
                .ratio(workload, peer, figure)
                .map_or("-".into(), |ratio| format!("{:.2}", ratio.median))
        };
        let rate_of =
            |engine| rate(results.median(workload, engine, Run::ops_per_second).unwrap_or(0.0));
        let cells = [
            workload.name.into(),
            rate_of(Kind::Kvant),
            format!("{} {}", peer.name(), rate_of(peer)),
            format!("**{:.2}**", ratio.median),
            format!("{:.2} to {:.2}", ratio.min, ratio.max),
            by(peer, Run::cpu_us_per_op),
            by(peer, Run::settled_cpu_us_per_op),
            by(Kind::Lmdb, Run::ops_per_second),
            by(Kind::Redb, Run::ops_per_second),
        ];
        row(out, &cells);
    }
}

fn figures(results: &Results, out: &mut String) {
    line(out, "\n### Medians\n");
    line(
        out,
        "CPU in microseconds per operation, with debt: until background work was done. Times of a \
         single operation in microseconds. Arrival: how long a request that arrives at a random \
         time waits for the operation in flight, in microseconds.\n",
    );
    head(
        out,
        &[
            "workload",
            "engine",
            "operations/s",
            "CPU",
            "with debt",
            "p50 / p99 / p99.9 / max",
            "arrival p99 / p99.9",
            "written by user",
            "disk MiB",
            "resident MiB: peak, end",
            "disturbed",
        ],
    );
    for workload in results.workloads() {
        for engine in Kind::ALL {
            if let Some(cells) = figures_of(results, workload, engine) {
                row(out, &cells);
            }
        }
    }
}

fn figures_of(results: &Results, workload: &Workload, engine: Kind) -> Option<[String; 11]> {
    let median = |figure: fn(&Run) -> f64| results.median(workload, engine, figure);
    let mib = |figure: fn(&Run) -> u64| {
        let bytes = results.median(workload, engine, |run| figure(run) as f64)?;
        Some(format!("{:.0}", bytes / f64::from(1 << 20)))
    };
    let times = |percentiles: &[fn(&Latency) -> u64]| {
        let of_kind = |kind: &str| {
            let times = percentiles.iter().map(|percentile| {
                let time = results.latency(workload, engine, kind, percentile).unwrap_or(0.0);
                microseconds(time / 1e3)
            });
            format!("{kind} {}", times.collect::<Vec<_>>().join(" / "))
        };
        let kinds = results.latency_kinds(workload).into_iter().map(of_kind);
        kinds.collect::<Vec<_>>().join("; ")
    };
    let amplification = median(Run::write_amplification)?;
    let disturbed = results.runs(workload, engine).filter(|run| run.is_disturbed).count();
    let lost = results.runs(workload, engine).map(|run| run.figures.lost_count).max()?;
    Some([
        workload.name.into(),
        if lost == 0 { engine.name().into() } else { format!("{} (lost {lost})", engine.name()) },
        rate(median(Run::ops_per_second)?),
        microseconds(median(Run::cpu_us_per_op)?),
        microseconds(median(Run::settled_cpu_us_per_op)?),
        times(&[
            |latency| latency.p50,
            |latency| latency.p99,
            |latency| latency.p999,
            |latency| latency.max,
        ]),
        // At a constant rate the times of operations are those of arrivals.
        match results.rate {
            None => times(&[|latency| latency.arrival_p99, |latency| latency.arrival_p999]),
            Some(_) => "-".into(),
        },
        if amplification == 0.0 { "-".into() } else { format!("{amplification:.2}") },
        mib(|run| run.figures.disk_bytes)?,
        format!(
            "{}, {}",
            mib(|run| run.figures.memory.peak_bytes)?,
            mib(|run| run.figures.memory.now_bytes)?
        ),
        if disturbed == 0 { String::new() } else { disturbed.to_string() },
    ])
}

fn goals(verdicts: &[Verdict], out: &mut String) {
    let missed = verdicts.iter().filter(|verdict| !verdict.is_met).count();
    line(out, &format!("\n### Goals: {} met, {missed} missed\n", verdicts.len() - missed));
    head(out, &["subject", "Kvant", "goal", ""]);
    for Verdict { subject, goal, value, is_met } in verdicts {
        let outcome = if *is_met { "met" } else { "**missed**" };
        row(out, &[subject.as_str(), value, goal, outcome]);
    }
}

/// Operations a second with a thousands separator, or decimals below ten.
fn rate(per_second: f64) -> String {
    if per_second < 10.0 {
        return format!("{per_second:.2}");
    }
    let digits = format!("{per_second:.0}");
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Three significant digits, or all before the point.
fn microseconds(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => rate(value),
    }
}
