//! The evidence of attempts, for [`crate::explain`]: what the client saw in windows of the interval
//! log, beside the kernel's account, the events and the recording of the subject.
//!
//! Attempts that do not count are read as well: what disturbed them can be explained. A history of
//! the server (`history.json`) adds its slowest requests with their phases and, to each window, the
//! phases of its requests and the time that threads of the server waited for a CPU.

use super::account;
use super::directory::Directory;
use super::hlog::{self, Line, RESPONSE, SEND_LAG, SERVICE};
use crate::explain::evidence::{
    Evidence, LockWait, MachineWindow, OperationWindow, Phase, Window, sum_ns,
};
use crate::explain::history;
use crate::record::{Attempt, Watch, WatchSample};
use kvant_base::wait::WaitKind;
use kvant_base::{Error, Result};
use kvant_env::host;
use kvant_profiler::recording::{Kind, Recording};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Two samples of the kernel's account this far apart show that the generator's machine, or the
/// generator, stood still: they are taken every 100 ms.
const SAMPLES_APART_MAX_NS: u64 = 250_000_000;

/// An attempt and its evidence.
#[derive(Clone, Debug)]
pub struct AttemptEvidence {
    /// [`Attempt::number`].
    pub number: u32,
    /// [`Attempt::case`].
    pub case: usize,
    /// Its directory, relative to the run's.
    pub dir: String,
    /// What is known of it.
    pub evidence: Evidence,
}

/// The evidence of the attempts of the run in `dir` that have an interval log; `only`: of one.
/// The second value has those that cannot be read, a sentence each.
///
/// # Errors
/// As [`super::analyse`]; `Invalid` if there is no such attempt.
pub fn evidence(dir: &Path, only: Option<u32>) -> Result<(Vec<AttemptEvidence>, Vec<String>)> {
    let directory = Directory::read(dir)?;
    let chosen = |attempt: &&Attempt| only.is_none_or(|number| attempt.number == number);
    let mut found = Vec::new();
    for attempt in directory.attempts.iter().filter(chosen) {
        if !host::is_file(&directory.file(attempt.number, "load.hlog")) {
            continue;
        }
        let read = directory.unless_damaged(attempt.number, of_attempt(&directory, attempt));
        found.extend(read.filter(|evidence| !evidence.windows.is_empty()).map(|evidence| {
            AttemptEvidence {
                number: attempt.number,
                case: attempt.case,
                dir: Directory::dir_of(attempt.number),
                evidence,
            }
        }));
    }
    let damaged: Vec<String> = directory
        .damaged
        .take()
        .into_iter()
        .map(|(number, problem)| format!("attempt {number} is left out: {problem}"))
        .collect();
    match only {
        Some(number) if found.is_empty() && damaged.is_empty() => {
            let problem = format!("attempt {number} does not exist or has no responses");
            Err(Error::invalid(problem).with_file(dir))
        }
        _ => Ok((found, damaged)),
    }
}

pub(super) fn of_attempt(directory: &Directory, attempt: &Attempt) -> Result<Evidence> {
    let file = |name: &str| directory.file(attempt.number, name);
    let case = &directory.run.cases[attempt.case];
    let mut windows = windows(&file("load.hlog"), attempt.measure_start_ns)?;
    let watch: Watch = super::directory::read_optional(&file("watch.json"))?.unwrap_or_default();
    for window in &mut windows {
        window.machine = machine(&watch, window.start_ns, window.end_ns());
    }
    let wall_ns = i128::from(attempt.start_wall_ms) * 1_000_000;
    let mut source =
        format!("attempt {}: {} {} {}", attempt.number, case.subject, case.workload, case.phase);
    if !case.cell.is_empty() {
        source += &format!(" ({})", case.cell.join(", "));
    }
    let mut evidence = Evidence {
        source,
        wall_origin_ns: i64::try_from(wall_ns - i128::from(attempt.start_ns)).ok(),
        cpu_count: cpu_count(directory),
        is_of_client: true,
        events: directory.events(attempt.number)?,
        windows,
        ..Evidence::default()
    };
    match host::read_bytes(&file("history.json")) {
        // It is by the clock of the subject.
        Ok(_) if attempt.clock.is_some() => {}
        Ok(json) => {
            let of_server = history::evidence(&json, "history.json")?;
            add_server_view(&mut evidence.windows, &of_server.windows);
            evidence.requests = of_server.requests;
            evidence.cpu = of_server.cpu;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(Error::io("read", &file("history.json"), error)),
    }
    if let Some(recording) = directory.recording(attempt.number)? {
        evidence.lock_waits = lock_waits(&evidence.windows, attempt, &recording);
    }
    Ok(evidence)
}

/// CPUs of the subject and the generator, which the kernel's account is of.
fn cpu_count(directory: &Directory) -> u32 {
    let run = &directory.run;
    if run.server_cpus.is_empty() || run.generator_cpus.is_empty() {
        return u32::try_from(run.host.cpu_count).unwrap_or(u32::MAX);
    }
    let mut cpus = [run.server_cpus.as_slice(), &run.generator_cpus].concat();
    cpus.sort_unstable();
    cpus.dedup();
    u32::try_from(cpus.len()).unwrap_or(u32::MAX)
}

/// The intervals of the log with the response times of each kind of requests.
fn windows(log: &Path, begin_ns: u64) -> Result<Vec<Window>> {
    let mut by_start: BTreeMap<u64, Window> = BTreeMap::new();
    let mut service_ns: BTreeMap<(u64, String), f64> = BTreeMap::new();
    let mut late_ns: BTreeMap<u64, f64> = BTreeMap::new();
    let is_wanted =
        |tag: &str| tag.ends_with(RESPONSE) || tag.ends_with(SERVICE) || tag == SEND_LAG;
    hlog::each_line(log, &is_wanted, &mut |tag, line| {
        if let Some(operation) = tag.strip_suffix(SERVICE) {
            service_ns.insert((line.start_ns, operation.to_owned()), sum_ns(&values(line)));
        } else if let Some(operation) = tag.strip_suffix(RESPONSE) {
            let window = by_start.entry(line.start_ns).or_insert_with(|| Window {
                start_ns: begin_ns + line.start_ns,
                length_ns: line.length_ns,
                ..Window::default()
            });
            let of = OperationWindow {
                count: line.histogram.count(),
                values: values(line),
                ..OperationWindow::default()
            };
            window.operations.insert(operation.to_owned(), of);
        } else {
            late_ns.insert(line.start_ns, sum_ns(&values(line)));
        }
    })?;
    for (start_ns, window) in &mut by_start {
        let all: u64 = window.operations.values().map(|of| of.count).sum();
        for (operation, of) in &mut window.operations {
            let part = of.count as f64 / all.max(1) as f64;
            of.late_ns = (late_ns.get(start_ns).copied().unwrap_or(0.0) * part) as u64;
            if let Some(service_ns) = service_ns.get(&(*start_ns, operation.clone())) {
                let before_ns = (of.sum_ns() - service_ns).max(0.0) as u64;
                of.connection_wait_ns = before_ns.saturating_sub(of.late_ns);
            }
        }
    }
    Ok(by_start.into_values().collect())
}

/// Each bucket's value and count.
fn values(line: &Line) -> Vec<(u64, u64)> {
    let buckets = line.histogram.as_hdr().iter_recorded();
    buckets
        .map(|bucket| (bucket.value_iterated_to(), bucket.count_since_last_iteration()))
        .collect()
}

/// Adds what only the server knows of the time of each window. Its own windows begin at other
/// times; within one, time passes evenly.
fn add_server_view(windows: &mut [Window], of_server: &[Window]) {
    for window in windows {
        let first = of_server.partition_point(|seen| seen.end_ns() <= window.start_ns);
        let overlapping: Vec<(&Window, f64)> = of_server[first..]
            .iter()
            .take_while(|seen| seen.start_ns < window.end_ns())
            .map(|seen| {
                let from_ns = seen.start_ns.max(window.start_ns);
                let to_ns = seen.end_ns().min(window.end_ns());
                (seen, (to_ns - from_ns) as f64 / seen.length_ns as f64)
            })
            .collect();
        let waits = overlapping.iter().filter_map(|(seen, part)| {
            seen.machine.run_queue_wait_ns.map(|wait_ns| wait_ns as f64 * part)
        });
        window.machine.run_queue_wait_ns =
            waits.reduce(|sum, wait_ns| sum + wait_ns).map(|sum| sum as u64);
        window.machine.has_resent = overlapping.iter().any(|(seen, _)| seen.machine.has_resent);
        for (operation, of) in &mut window.operations {
            let mut count = 0.0;
            let mut sums_ns = [0.0; Phase::ALL.len()];
            let mut block_read_ns = 0.0;
            for (seen, part) in &overlapping {
                let Some(seen) = seen.operations.get(operation) else { continue };
                let Some(phases_ns) = seen.phases_ns else { continue };
                count += seen.count as f64 * part;
                for (sum, phase_ns) in sums_ns.iter_mut().zip(phases_ns) {
                    *sum += phase_ns as f64 * part;
                }
                block_read_ns += seen.block_read_ns as f64 * part;
            }
            if count > 0.0 {
                let factor = of.count as f64 / count;
                of.phases_ns = Some(sums_ns.map(|sum| (sum * factor) as u64));
                of.block_read_ns = (block_read_ns * factor) as u64;
            }
        }
    }
}

/// What the counters grew by between two times.
fn machine(watch: &Watch, from_ns: u64, to_ns: u64) -> MachineWindow {
    let grown = |counter: fn(&WatchSample) -> Option<u64>| {
        let from = account::at(watch, from_ns, counter)?;
        Some((account::at(watch, to_ns, counter)? - from).max(0.0) as u64)
    };
    let is_gap = |pair: &[WatchSample]| {
        pair[1].at_ns - pair[0].at_ns > SAMPLES_APART_MAX_NS
            && pair[0].at_ns < to_ns
            && pair[1].at_ns > from_ns
    };
    MachineWindow {
        server_cpu_ns: grown(|sample| sample.server_cpu_ns),
        generator_cpu_ns: grown(|sample| Some(sample.generator_cpu_ns)),
        all_cpu_ns: grown(WatchSample::tasks_cpu_ns),
        stolen_ns: grown(|sample| sample.stolen_ns),
        run_queue_wait_ns: None,
        has_resent: false,
        is_generator_paused: watch.samples.windows(2).any(is_gap),
        is_memory_slow: watch
            .slow_memory
            .iter()
            .any(|slow| slow.start_ns < to_ns && slow.end_ns > from_ns),
    }
}

/// Waits for locks, from the samples of a recording.
fn lock_waits(windows: &[Window], attempt: &Attempt, recording: &Recording) -> Vec<LockWait> {
    let of_locks =
        recording.samples.iter().filter(|one| one.kind == Kind::Wait(WaitKind::Contention));
    of_locks
        .filter_map(|sample| {
            let end_ns = recording.facts.started_wall_ns + sample.time_ns + sample.duration_ns;
            let at_ns = u64::try_from(attempt.monotonic_ns(end_ns)).unwrap_or(0);
            let next = windows.partition_point(|window| window.start_ns <= at_ns);
            let window = next.checked_sub(1).filter(|at| windows[*at].end_ns() > at_ns)?;
            Some(LockWait {
                name: recording.names.get(sample.name as usize).cloned().unwrap_or_default(),
                window,
                operation: sample.tag.activity.name().to_owned(),
                length_ns: sample.duration_ns,
                waited_ns: sample.weight,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
