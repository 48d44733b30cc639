//! A load by an external program, for servers that do not speak HTTP.
//!
//! The program's output says how many responses there were. Latencies are not known.

use super::context::{Context, Problem};
use super::measurement::{Measured, Measurement, result_file};
use super::process::{self, Process};
use super::progress::Progress;
use super::stop::Stop;
use super::subject::Running;
use crate::plan::{Requests, Resolved};
use kvant_base::Error;
use kvant_env::host;
use kvant_load::record::Interval;
use kvant_load::report::json::PhaseResult;
use kvant_load::{LoadConfig, Outcome, Phase, Rate, verdict};
use std::fs::File;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Between two looks at the program.
const LOOK_PERIOD: Duration = Duration::from_millis(50);
/// How much longer than planned the program may take: it may fill or warm up.
const EXTRA_MAX: Duration = Duration::from_secs(60);

/// Runs the program of a case to its end.
///
/// # Errors
/// [`Problem::Subject`] if it fails or its output has no number.
pub(super) fn run(
    context: &Context<'_>,
    resolved: &Resolved,
    running: &Running,
    progress: &mut Progress,
) -> Result<Measurement, Problem> {
    let Requests::Command { command: words, count_after, is_rate } = &resolved.workload.requests
    else {
        return Err(Error::invalid("the workload is no program").into());
    };
    let planned = resolved.phase.duration;
    let places = [
        ("{port}", running.port().to_string()),
        ("{seconds}", planned.as_secs().max(1).to_string()),
    ];
    let text = words.join(" ");
    progress.now(&format!("runs {text}"));
    let output_file = context.scratch.join("generator.txt");
    let failed = |error| Error::io("write", &output_file, error);
    let output = File::create(&output_file).map_err(failed)?;
    let mut command = context.command(words, &places);
    command.stdin(Stdio::null());
    command.stderr(output.try_clone().map_err(failed)?);
    command.stdout(output);
    let start_ns = context.env.clock.monotonic_ns();
    let start_wall_ms = context.env.clock.wall_ms();
    // The generator's CPUs are those of this thread.
    let process = Process::start(command, &process::own_cpus()?, &Stop::default())
        .map_err(|error| Problem::Subject(format!("the generator did not start: {error}")))?;
    let until = Instant::now() + planned + EXTRA_MAX;
    let status = loop {
        if let Some(status) = process.wait(LOOK_PERIOD) {
            break status;
        }
        if context.stop.is_requested() {
            return Err(Problem::Stopped);
        }
        if let Some(end) = running.end() {
            return Err(Problem::Subject(end));
        }
        if Instant::now() >= until {
            return Err(Problem::Subject(format!("`{text}` has not ended")));
        }
    };
    let measured_ns = context.env.clock.monotonic_ns() - start_ns;
    let said =
        host::read_text(&output_file).map_err(|error| Error::io("read", &output_file, error))?;
    if !status.success() {
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        return Err(Problem::Subject(format!("`{text}` failed: {status}: {}", last.trim())));
    }
    let Some(number) = number_after(&said, count_after) else {
        let problem = format!("the output of `{text}` has no number after `{count_after}`");
        return Err(Problem::Subject(problem));
    };
    let completed = match is_rate {
        true => number * measured_ns as f64 / 1e9,
        false => number,
    };
    let completed = completed.round() as u64;
    let phase = Phase {
        rate: Rate::Closed,
        warmup: Duration::ZERO,
        duration: planned,
        request_count_max: None,
    };
    let outcome = Outcome {
        phase,
        start_wall_ms,
        measure_start_ns: Some(start_ns),
        measured_ns,
        total: Interval {
            end_ns: measured_ns,
            planned: completed,
            sent: completed,
            completed,
            ..Interval::default()
        },
        ..Outcome::default()
    };
    let config = LoadConfig { targets: vec![running.target.clone()], ..LoadConfig::default() };
    let mut file = result_file(&config, &text);
    file.phases = vec![PhaseResult::of(&outcome, "command", None)];
    let verdict = verdict::judge(&outcome);
    Ok(Measurement {
        start_ns: Some(start_ns),
        phases: vec![Measured { outcome, verdict }],
        found: None,
        is_closed: true,
        file,
    })
}

/// The number that follows `text`, with or without separators of thousands.
fn number_after(said: &str, text: &str) -> Option<f64> {
    let (_, after) = said.rsplit_once(text)?;
    let start = after.find(|c: char| c.is_ascii_digit())?;
    let is_part = |c: char| c.is_ascii_digit() || ".,_".contains(c);
    let number: String =
        after[start..].chars().take_while(|c| is_part(*c)).filter(|c| !",_".contains(*c)).collect();
    number.trim_end_matches('.').parse().ok()
}

#[cfg(test)]
mod tests;
